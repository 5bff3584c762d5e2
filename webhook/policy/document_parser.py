"""Validate one document's tree against its model, found in a table of kinds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from pydantic import ValidationError

from webhook.policy import yaml_tree
from webhook.policy.yaml_tree import Disputed
from webhook.shortening import cut
from webhook.strict import OWN_ERROR, UNKNOWN_FIELD, Strict, guess, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pydantic_core import ErrorDetails

    from webhook.policy.findings import Caution, Path
    from webhook.strict import Problem

# The end of pydantic's path if the key of a mapping is wrong.
KEY: Final = "[key]"
NULL: Final = "is null; give a value, or remove the field"

_WANTED: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    # Of values that Python hands over.
    "bytes_type": "bytes",
    "sequence_str": "a list",
    "is_instance_of": "a list",
}
_QUOTED_VALUE: Final = re.compile(r"'([^']*)'")
M = TypeVar("M", bound=Strict)
_OWN_METADATA: Final = ("name", "labels", "annotations")


def written_by_the_server(path: Path) -> bool:
    """Return whether the API server writes this path, where nulls and unknown fields are usual."""
    return path[:1] == ("status",) or (
        path[:1] == ("metadata",) and len(path) > 1 and path[1] not in _OWN_METADATA
    )


def _never(_: object) -> bool:
    return False


def _nothing(_: object) -> tuple[()]:
    return ()


@dataclass(frozen=True, slots=True)
class Forms(Generic[M]):
    """A table of the known kinds, with settings for documents of all of them.

    models: by kind.
    called: the name of such documents in messages: "policy documents".
    unjudged: whether a path is not validated.
    nulls: whether a path may be null.
    value: converts a document's tree to the input of its model.
    further: errors of a document whose fields are all valid.
    cautions: warnings about likely mistakes in a valid document.
    foreign: whether a document, as plain values, is of another program, and is skipped.
    apart: a list whose items stand alone: errors in some are no reason not to read the others.
    """

    models: Mapping[str, type[M]]
    called: str
    unjudged: Callable[[Path], bool] = _never
    nulls: Callable[[Path], bool] = _never
    value: Callable[[yaml_tree.Node], Any] = yaml_tree.value
    further: Callable[[M], Iterable[Problem]] = _nothing
    cautions: Callable[[M], Iterable[Caution]] = _nothing
    foreign: Callable[[Mapping[str, Any]], bool] = _never
    apart: str = ""

    @property
    def expected(self) -> str:
        """The message for something that is not a document."""
        if len(self.models) == 1:
            return f"want a document of kind {next(iter(self.models))}"
        return f"want a document with apiVersion and kind, one of {', '.join(self.models)}"

    def unknown(self, kind: object) -> str:
        """Return the message for an unknown or missing kind."""
        kinds = ", ".join(self.models)
        hint = guess(kind, tuple(self.models)) if isinstance(kind, str) else ""
        if len(self.models) == 1:
            return f"{self.expected}{'' if kind is None else f', not {kind}'}{hint}"
        if kind is None:
            return f"is required: one of {kinds}"
        return f"{quoted(kind)} is not one of {kinds}, the kinds of {self.called}{hint}"


class Wrong(NamedTuple):
    """One error of a document: its path from the document's root, its place, its message."""

    path: Path
    place: yaml_tree.Place
    message: str


class Judged(NamedTuple, Generic[M]):
    """What was read of one document, and its errors.

    model:    None if it has errors, except in items of the list that stand alone
    node:     the tree of the model
    left_out: how many such items are not in the model
    """

    model: M | None
    wrong: list[Wrong]
    node: yaml_tree.Node
    left_out: int = 0


def judge(node: yaml_tree.Node, forms: Forms[M]) -> Judged[M]:
    """Return the document's model, without the items that have errors, and all errors."""
    model, wrong = _judge(node, forms)
    items = yaml_tree.find(node, (forms.apart,)) if forms.apart else None
    if not wrong or not isinstance(node, yaml_tree.Mapping):
        return Judged(model, wrong, node)
    if not isinstance(items, yaml_tree.Sequence):
        return Judged(None, wrong, node)
    kept, problems, rest = [*enumerate(items.items)], [*wrong], node
    while wrong:
        paths = [problem.path for problem in wrong]
        bad = {path[1] for path in paths if path[:1] == (forms.apart,) and len(path) > 1}
        of_items = all(path[:1] == (forms.apart,) and len(path) > 1 for path in paths)
        if not of_items or len(bad) == len(kept):
            return Judged(None, problems, node)
        kept = [pair for at, pair in enumerate(kept) if at not in bad]
        key, _ = node.entries[forms.apart]
        left = yaml_tree.Sequence(items.place, [item for _, item in kept])
        rest = yaml_tree.Mapping(node.place, {**node.entries, forms.apart: (key, left)})
        # Only the items that are left are read again, under the positions that they had.
        model, wrong = _judge(rest, forms)
        numbers = [number for number, _ in kept]
        problems += [
            problem._replace(path=_numbered(problem.path, forms.apart, numbers))
            for problem in wrong
        ]
    return Judged(model, problems, rest, len(items.items) - len(kept))


def _numbered(path: Path, name: str, numbers: Sequence[int]) -> Path:
    if path[:1] == (name,) and len(path) > 1 and isinstance(path[1], int):
        return (name, numbers[path[1]], *path[2:])
    return path


def _judge(node: yaml_tree.Node, forms: Forms[M]) -> tuple[M | None, list[Wrong]]:
    """Return the document's model if it has no errors, and its errors."""
    data = forms.value(node)
    if not isinstance(data, dict):
        return None, [Wrong((), node.place, forms.expected)]
    kind = data.get("kind")
    model_class = forms.models.get(kind) if isinstance(kind, str) else None
    if model_class is None:
        place = yaml_tree.locate(node, ("kind",))
        return None, [Wrong(("kind",), place, forms.unknown(kind))]
    wrong = [
        Wrong(path, yaml_tree.locate(node, path), NULL)
        for path, scalar in _scalars(node, forms)
        if scalar.value is None and not forms.nulls(path)
    ]
    model = None
    try:
        model = model_class.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        reported = {problem.path for problem in wrong}
        lines = error.errors(include_url=False)
        wrong += [locate_error(line, node) for line in lines if line["loc"] not in reported]
    reported = {problem.path for problem in wrong}
    wrong += [problem for problem in _unreadable(node, forms) if problem.path not in reported]
    if model is not None and not wrong:
        wrong = [Wrong(at, yaml_tree.locate(node, at), what) for at, what in forms.further(model)]
    return (None if wrong else model), wrong


def identity(node: yaml_tree.Node) -> tuple[str, str] | None:
    """Kind and name of a document, also of one with errors; None if one is missing."""
    kind, name = yaml_tree.find(node, ("kind",)), yaml_tree.find(node, ("metadata", "name"))
    if isinstance(kind, yaml_tree.Scalar) and isinstance(name, yaml_tree.Scalar):
        return kind.text, name.text
    return None


def _scalars(node: yaml_tree.Node, forms: Forms[M]) -> Iterator[tuple[Path, yaml_tree.Scalar]]:
    for path, child in yaml_tree.walk(node):
        if isinstance(child, yaml_tree.Scalar) and not forms.unjudged(path):
            yield path, child


def _unreadable(node: yaml_tree.Node, forms: Forms[M]) -> Iterator[Wrong]:
    """Scalars that are ambiguous: kubectl would read another value."""
    for path, scalar in _scalars(node, forms):
        if isinstance(scalar.value, Disputed):
            what = (
                f"{scalar.text} can be read as text or as {scalar.value.meaning}; quote it, or "
                "write it plainly"
            )
            yield Wrong(path, scalar.place, what)
        elif isinstance(scalar.value, float) and not math.isfinite(scalar.value):
            what = f"{scalar.text} is a number that JSON does not have; quote it if it is text"
            yield Wrong(path, scalar.place, what)


def locate_error(line: ErrorDetails, node: yaml_tree.Node) -> Wrong:
    """Return one error of pydantic's about the document of this tree, with its place."""
    path = line["loc"]
    at_key = line["type"] == UNKNOWN_FIELD
    if path[-1:] == (KEY,) and yaml_tree.find(node, path) is None:
        path, at_key = path[:-1], True
    leaf = yaml_tree.find(node, path)
    written = leaf.text if isinstance(leaf, yaml_tree.Scalar) and not at_key else None
    return Wrong(path, yaml_tree.locate(node, path, at_key=at_key), sentence(line, written))


def sentence(error: ErrorDetails, written: str | None = None) -> str:
    """Return the message without the place. `written` is the scalar's text in the file."""
    kind, value = error["type"], error["input"]
    if kind.startswith(OWN_ERROR):
        return error["msg"]
    if kind == "missing":
        return "is required"
    if value is None:
        return NULL
    if kind in _WANTED:
        return _other_type(kind, value, written)
    describe = _KNOWN.get(kind)
    return describe(error.get("ctx", {}), value, written) if describe else error["msg"]


def _noun(value: object) -> str:
    match value:
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case dict():
            return "a mapping"
    return "something else"


def _other_type(kind: str, value: object, written: str | None) -> str:
    wanted = _WANTED[kind]
    text = written if written is not None else str(value)
    match value:
        case list() | dict():
            return f"want {wanted}, not {_noun(value)}"
        case Disputed() if kind == "string_type":
            return f"{text} can be read as {value.meaning}; quote it: {text!r}"
        case Disputed():
            plainly = "in decimal" if kind == "int_type" else "true or false"
            return f"{text} can be read as text or as {value.meaning}; write it {plainly}"
        case str() if kind == "int_type" and re.fullmatch(r"-?[0-9]+", value, re.ASCII):
            return f"want {wanted}, not text; remove the quotes around {quoted(value)}"
        case str() if kind == "bool_type" and value.lower() in ("true", "false"):
            return f"want {wanted}, not text; remove the quotes around {quoted(value)}"
    if kind == "string_type":
        return f"want text, and {cut(text, 60)} is {_noun(value)}; quote it: {quoted(text)}"
    return f"want {wanted}, not {quoted(text)}"


def _literal(context: dict[str, Any], value: object, written: str | None) -> str:
    expected: str = context["expected"]
    # Words are in quotes, and false is not.
    words = tuple(_QUOTED_VALUE.findall(expected))
    allowed = ", ".join(words) or expected.lower()
    if isinstance(value, list | dict):
        return f"want one of {allowed}, not {_noun(value)}"
    plain = str(value) if written is None else written
    text = quoted(plain)
    if isinstance(value, bool) and f"'{value}'" in expected:
        return f'{text} is not text, one of {allowed}: write it in quotes, "{value}"'
    return f"{text} is not one of {allowed}{guess(plain, words)}"


def _too_few(context: dict[str, Any], value: object, _: str | None) -> str:
    least = context["min_length"]
    if not value:
        return f"is empty; give at least {least} item, or remove the field"
    return f"want at least {least} items, not {context['actual_length']}"


_KNOWN: Final[dict[str, Callable[[dict[str, Any], object, str | None], str]]] = {
    "literal_error": _literal,
    "too_short": _too_few,
    "too_long": lambda context, *_: (
        f"want at most {context['max_length']} item(s), not {context['actual_length']}"
    ),
    "string_too_short": lambda *_: "is empty; give a value, or remove the field",
    "string_too_long": lambda context, *_: f"want at most {context['max_length']} characters",
    "string_pattern_mismatch": lambda context, value, _: (
        f"{quoted(value)} does not match {context['pattern']}"
    ),
    "greater_than_equal": lambda context, value, _: (
        f"{value} is too small; the least is {context['ge']}"
    ),
    "less_than_equal": lambda context, value, _: (
        f"{value} is too large; the most is {context['le']}"
    ),
}
