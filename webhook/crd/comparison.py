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


def compare(own_definition: Json, served: Json | None) -> Comparison:
    """Compare two definitions (apiextensions.k8s.io/v1); None: the cluster has none."""
    wanted, served_schema = _schema(own_definition), _schema(served or _NOTHING)
    missing = [
        missing_field
        for part in ("spec", "status")
        for missing_field in _missing(_field(wanted, part), _field(served_schema, part), part)
    ]
    return Comparison(
        tuple(path for path, _ in missing),
        tuple(path for path, kept in missing if not kept),
        _without_text(wanted) != _without_text(served_schema),
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
    schemas: Iterator[Json] = (
        version["schema"]["openAPIV3Schema"]
        for version in versions
        if version["name"] == names.VERSION and version.get("served") and version.get("schema")
    )
    return next(schemas, _NOTHING)


def _field(node: Json, name: str) -> Json | None:
    """Return the schema of a field; None if the node does not have it."""
    schema: Json | None = (node.get("properties") or {}).get(name)
    return schema


def _missing(own_schema: Json | None, served: Json | None, path: str) -> Iterator[tuple[str, bool]]:
    """Yield the outermost fields that are missing, and whether unknown fields are kept there."""
    if own_schema is None:
        return
    if served is None:
        yield path, False
        return
    keeps = bool(served.get(KEEPS_UNKNOWN))
    for name, child in (own_schema.get("properties") or {}).items():
        served_child = _field(served, name)
        if served_child is None:
            yield f"{path}.{name}", keeps
        else:
            yield from _missing(child, served_child, f"{path}.{name}")
    for key in _NESTED:
        inner = own_schema.get(key)
        if isinstance(inner, dict):
            served_child = served.get(key)
            if isinstance(served_child, dict):
                yield from _missing(inner, served_child, f"{path}[]")
            elif inner.get("properties"):
                yield f"{path}[]", keeps


def newer_parts(own_definition: Json, served: Json, document: Json) -> list[str]:
    """Return what of an object's spec the cluster's definition knows and the own one does not.

    Fields and words of closed lists, each with its path: whoever has the own one is older.
    """
    wanted, own_schema = (
        _field(_schema(definition), "spec") for definition in (served, own_definition)
    )
    return [*_newer(wanted, own_schema, document.get("spec"), "spec")]


def _newer(served: Json | None, own_schema: Json | None, value: Any, path: str) -> Iterator[str]:
    if served is None:
        return
    if own_schema is None:
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            theirs, ours = (_field(node, key) or _any_field(node) for node in (served, own_schema))
            yield from _newer(theirs, ours, inner, f"{path}.{key}")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            theirs, ours = (node.get("items") for node in (served, own_schema))
            yield from _newer(theirs, ours, inner, f"{path}[{index}]")
    elif value in served.get("enum", ()) and value not in own_schema.get("enum", (value,)):
        yield f"{path}: {value!r}"


def _any_field(node: Json) -> Json | None:
    schema = node.get("additionalProperties")
    return schema if isinstance(schema, dict) else None
