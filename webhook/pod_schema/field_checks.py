"""Check a pod template's fields and types against the pod schema.

tools/pod_schema.py makes the schema. An unknown field is an error if its name is close to a known
one, because that is a typo. Otherwise it is a warning, because the cluster may be newer.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from webhook.placement.quantity import InvalidQuantity, nanos
from webhook.strict import guess, quoted, under

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Path: TypeAlias = tuple[str | int, ...]
# Maximum number of faults reported for one template. Suggestions for typos take time.
MAX_FAULTS: Final = 50
TEMPLATE: Final = "PodTemplateSpec"
POD: Final = "Pod"
# Fields whose values have not changed in years: newer clusters reject other values, too.
_SETTLED: Final = frozenset(
    {"dnsPolicy", "effect", "imagePullPolicy", "protocol", "whenUnsatisfiable"}
)
# Fields of later versions that are close to known ones: no typos. tests/cluster/test_pod_schema.py
# finds them. From 1.37: `defaultUser` of volumes, beside `defaultMode`.
_LATER: Final = frozenset({"defaultUser"})
# Prefix of the keys of Kubernetes' strategic merge, which the templates of a Run's roles may have.
_DIRECTIVE: Final = "$"


class Fault(NamedTuple):
    """An error or a warning at a path of a template. `at_key`: about the field's name."""

    path: Path
    message: str
    severity: Literal["error", "warning"] = "error"
    at_key: bool = False


class Schema(NamedTuple):
    """The Kubernetes version, and the fields of each type with their kinds."""

    version: str
    types: Mapping[str, Mapping[str, str]]


@cache
def schema() -> Schema:
    content = json.loads(files(__package__).joinpath("kubernetes.json").read_text("utf-8"))
    return Schema(content["kubernetes"], content["types"])


def fields_of(kind: str) -> dict[str, str]:
    return {name.rstrip("!"): field_kind for name, field_kind in schema().types[kind].items()}


def faults(value: Any, kind: str = TEMPLATE, *, whole: bool = True) -> Iterator[Fault]:
    """Yield the faults in the fields of a template or a pod, at most 50.

    `whole`: the template is not merged into another one, so missing fields are faults.
    """
    yield from islice(_value(value, kind, (), whole=whole), MAX_FAULTS)


def mappings(value: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the mappings of a list, each with its path; none if `value` is not a list."""
    for position, element in enumerate(value if isinstance(value, list) else ()):
        if isinstance(element, dict):
            yield (*path, position), element


def _value(value: Any, kind: str, path: Path, *, whole: bool) -> Iterator[Fault]:
    if value is None:
        # The API server treats null like a missing field.
        return
    if kind.startswith("[]"):
        if not isinstance(value, list):
            yield Fault(path, f"want a list, not {_noun(value)}")
            return
        for position, item in enumerate(value):
            yield from _value(item, kind[2:], (*path, position), whole=whole)
    elif kind.startswith("{}"):
        if not isinstance(value, dict):
            yield Fault(path, f"want a mapping, not {_noun(value)}")
            return
        for key, item in value.items():
            yield from _value(item, kind[2:], (*path, key), whole=whole)
    elif kind in schema().types:
        yield from _fields(value, kind, path, whole=whole)
    else:
        yield from _scalar(value, kind, path)


def _fields(value: Any, kind: str, path: Path, *, whole: bool) -> Iterator[Fault]:
    field_kinds = fields_of(kind)
    if isinstance(value, list) and len(field_kinds) == 1:
        yield Fault(path, under(*field_kinds))
        return
    if not isinstance(value, dict):
        yield Fault(path, f"want a mapping, not {_noun(value)}")
        return
    meant = ""
    for key, item in value.items():
        if key in field_kinds:
            yield from _value(item, field_kinds[key], (*path, key), whole=whole)
        elif not str(key).startswith(_DIRECTIVE):
            fault = _unknown(str(key), kind, (*path, key), field_kinds)
            meant += fault.message
            yield fault
    if whole:
        for name in schema().types[kind]:
            missing = name.endswith("!") and value.get(name[:-1]) is None
            # A misspelt name is reported already.
            if missing and repr(name[:-1]) not in meant:
                yield Fault((*path, name[:-1]), "is required")


def _unknown(key: str, kind: str, path: Path, field_kinds: Mapping[str, str]) -> Fault:
    if key not in _LATER and (hint := guess(key, tuple(field_kinds))):
        return Fault(path, f"there is no such field{hint}", at_key=True)
    text = (
        f"Kubernetes {schema().version} has no such field in a {kind}; clusters that are not newer "
        "drop it: remove it"
    )
    return Fault(path, text, "warning", at_key=True)


def _scalar(value: Any, kind: str, path: Path) -> Iterator[Fault]:
    if kind.startswith("="):
        words = kind[1:].split("|")
        if not isinstance(value, str):
            yield Fault(path, f"want one of {', '.join(filter(None, words))}, not {_noun(value)}")
        elif value and value not in words:
            yield _other_word(value, words, path)
    elif kind == "quantity":
        yield from _quantity(value, path)
    elif kind != "object" and not _has_type(value, kind):
        advice = "; put it in quotes" if kind == "string" and not _is_container(value) else ""
        yield Fault(path, f"want {_WANTED[kind]}, not {_noun(value)}{advice}")


def _other_word(value: str, words: list[str], path: Path) -> Fault:
    text = f"{quoted(value)} is not one of {', '.join(filter(None, words))}"
    if hint := guess(value, tuple(words)):
        return Fault(path, text + hint)
    severity: Literal["error", "warning"] = "error" if path[-1] in _SETTLED else "warning"
    return Fault(path, f"{text}, the values of Kubernetes {schema().version}", severity)


def _quantity(value: Any, path: Path) -> Iterator[Fault]:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        yield Fault(path, f"want a quantity, such as 500m or 16Gi, not {_noun(value)}")
        return
    try:
        nanos(value)
    except InvalidQuantity as error:
        yield Fault(path, str(error))


_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "int-or-string": (int, str),
}
_WANTED: Final = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "int-or-string": "a whole number or a string",
}


def _has_type(value: Any, kind: str) -> bool:
    """Return True if a value has this type in JSON: 1.0 is an integer, true is not a number."""
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, float) and value.is_integer() and int in _TYPES[kind]:
        return True
    return isinstance(value, _TYPES[kind])


def _is_container(value: Any) -> bool:
    return isinstance(value, dict | list)


def _noun(value: Any) -> str:
    if _is_container(value):
        return "a mapping" if isinstance(value, dict) else "a list"
    return quoted(value) if isinstance(value, str) else json.dumps(value)
