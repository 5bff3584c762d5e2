"""One document's tree to its model, or to everything that is wrong with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic import ValidationError

from webhook.policy import nodes
from webhook.policy.messages import NULL, sentence
from webhook.policy.scalars import Disputed
from webhook.strict import UNKNOWN_FIELD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_core import ErrorDetails

    from webhook.policy.findings import Path
    from webhook.policy.forms import Forms, M

# What pydantic puts at the end of a path if it is the key of a mapping that is wrong.
_KEY: Final = "[key]"


class Wrong(NamedTuple):
    """One error of a document: its path from the document's root, its place, its message."""

    path: Path
    place: nodes.Place
    message: str


def judge(node: nodes.Node, forms: Forms[M]) -> tuple[M | None, list[Wrong]]:
    """The document's model, if nothing is wrong with it, and what is wrong."""
    data = forms.value(node)
    if not isinstance(data, dict):
        return None, [Wrong((), node.place, forms.wanted)]
    kind = data.get("kind")
    known = forms.models.get(kind) if isinstance(kind, str) else None
    if known is None:
        place = nodes.locate(node, ("kind",))
        return None, [Wrong(("kind",), place, forms.unknown(kind))]
    wrong = [Wrong(path, nodes.locate(node, path), NULL) for path in _nulls(node, forms)]
    model = None
    try:
        model = known.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        said = {each.path for each in wrong}
        lines = error.errors(include_url=False)
        wrong += [_wrong(line, node) for line in lines if line["loc"] not in said]
    said = {each.path for each in wrong}
    wrong += [each for each in _unreadable(node, forms) if each.path not in said]
    if model is not None and not wrong:
        wrong = [Wrong(at, nodes.locate(node, at), what) for at, what in forms.further(model)]
    return (None if wrong else model), wrong


def identity(node: nodes.Node) -> tuple[str, str] | None:
    """Kind and name of a document, broken or not, as far as it says them."""
    kind, name = nodes.find(node, ("kind",)), nodes.find(node, ("metadata", "name"))
    if isinstance(kind, nodes.Scalar) and isinstance(name, nodes.Scalar):
        return kind.text, name.text
    return None


def _scalars(node: nodes.Node, forms: Forms[M]) -> Iterator[tuple[Path, nodes.Scalar]]:
    for path, child in nodes.walk(node):
        if isinstance(child, nodes.Scalar) and not forms.unjudged(path):
            yield path, child


def _nulls(node: nodes.Node, forms: Forms[M]) -> list[Path]:
    return [
        path
        for path, scalar in _scalars(node, forms)
        if scalar.value is None and not forms.nulls(path)
    ]


def _unreadable(node: nodes.Node, forms: Forms[M]) -> Iterator[Wrong]:
    """Scalars that a model which takes anything would take, and of which kubectl makes others."""
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


def _wrong(line: ErrorDetails, node: nodes.Node) -> Wrong:
    path = line["loc"]
    at_key = line["type"] == UNKNOWN_FIELD
    if path[-1:] == (_KEY,) and nodes.find(node, path) is None:
        path, at_key = path[:-1], True
    leaf = nodes.find(node, path)
    written = leaf.text if isinstance(leaf, nodes.Scalar) and not at_key else None
    return Wrong(path, nodes.locate(node, path, at_key=at_key), sentence(line, written))
