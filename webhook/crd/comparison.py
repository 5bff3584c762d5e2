"""Compare a definition that a cluster has with the one of this version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.crd.definition import KEEPS_UNKNOWN
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Json = Mapping[str, Any]

_NESTED: Final = ("items", "additionalProperties")
_NOTHING: Final[Json] = {}
_MOST_NAMED: Final = 3


class Comparison(NamedTuple):
    """What the cluster's definition is, beside the one of this version.

    lacking: the fields of this version that it does not have, as paths: spec.rollout
    dropped: those of them that the API server drops, on every read and every write
    differs: the schemas are not equal, apart from descriptions
    """

    lacking: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    differs: bool = False

    def report(self, name: str) -> str:
        """Return what the definition of this name lacks; no text if nothing."""
        if not self.lacking:
            return ""
        what = f"the cluster's definition {name} is older than this version: it lacks"
        if self.dropped:
            named = first_few([*self.dropped], _MOST_NAMED)
            return f"{what} {named}, and the API server drops that from all objects"
        return (
            f"{what} {first_few([*self.lacking], _MOST_NAMED)}, which is stored without its rules"
        )


def compare(own: Json, served: Json | None) -> Comparison:
    """Compare two definitions (apiextensions.k8s.io/v1); None: the cluster has none."""
    wanted, found = _schema(own), _schema(served or _NOTHING)
    missing = [
        each
        for part in ("spec", "status")
        for each in _missing(_field(wanted, part), _field(found, part), part)
    ]
    return Comparison(
        tuple(path for path, _ in missing),
        tuple(path for path, kept in missing if not kept),
        _without_text(wanted) != _without_text(found),
    )


def _without_text(node: Any) -> Any:
    """Return the schema without descriptions, which other versions word otherwise."""
    if isinstance(node, list):
        return [_without_text(item) for item in node]
    if not isinstance(node, dict):
        return node
    # A field may have the name.
    described = isinstance(node.get("description"), str)
    return {
        key: _without_text(value)
        for key, value in node.items()
        if not (described and key == "description")
    }


def _schema(definition: Json) -> Json:
    versions = (definition.get("spec") or {}).get("versions") or ()
    found: Iterator[Json] = (
        each["schema"]["openAPIV3Schema"]
        for each in versions
        if each["name"] == names.VERSION and each.get("served") and each.get("schema")
    )
    return next(found, _NOTHING)


def _field(node: Json, name: str) -> Json | None:
    """Return the schema of a field; None if the node does not have it."""
    found: Json | None = (node.get("properties") or {}).get(name)
    return found


def _missing(own: Json | None, served: Json | None, path: str) -> Iterator[tuple[str, bool]]:
    """Yield the outermost fields that are missing, and whether unknown fields are kept there."""
    if own is None:
        return
    if served is None:
        yield path, False
        return
    keeps = bool(served.get(KEEPS_UNKNOWN))
    for name, child in (own.get("properties") or {}).items():
        there = _field(served, name)
        if there is None:
            yield f"{path}.{name}", keeps
        else:
            yield from _missing(child, there, f"{path}.{name}")
    for key in _NESTED:
        inner = own.get(key)
        if isinstance(inner, dict):
            there = served.get(key)
            if isinstance(there, dict):
                yield from _missing(inner, there, f"{path}[]")
            elif inner.get("properties"):
                yield f"{path}[]", keeps


def newer_parts(own: Json, served: Json, document: Json) -> list[str]:
    """Return what of an object's spec the cluster's definition knows and the own one does not.

    Fields and words of closed lists, each with its path: whoever has the own one is older.
    """
    wanted, found = (_field(_schema(each), "spec") for each in (served, own))
    return [*_newer(wanted, found, document.get("spec"), "spec")]


def _newer(served: Json | None, own: Json | None, value: Any, path: str) -> Iterator[str]:
    if served is None:
        return
    if own is None:
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            theirs, ours = (_field(node, key) or _any_field(node) for node in (served, own))
            yield from _newer(theirs, ours, inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            theirs, ours = (node.get("items") for node in (served, own))
            yield from _newer(theirs, ours, inner, f"{path}[{index}]")
    elif value in served.get("enum", ()) and value not in own.get("enum", (value,)):
        yield f"{path}: {value!r}"


def _any_field(node: Json) -> Json | None:
    schema = node.get("additionalProperties")
    return schema if isinstance(schema, dict) else None
