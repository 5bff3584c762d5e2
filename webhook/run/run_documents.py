"""Read Run files to Runs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook import names
from webhook.policy import reader, yaml_tree
from webhook.policy.document_parser import Forms, written_by_the_server
from webhook.run.json_schema import schema
from webhook.run.model import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

Document: TypeAlias = reader.Document[Run]
Runs: TypeAlias = reader.Documents[Run]

_OTHERS: Final = ("PlacementPolicy", "CapacityClass", "PolicyTest")
Json = dict[str, Any]


def without_nulls(document: Any) -> Any:
    """Return the document as plain values, without the nulls that the API server drops.

    It drops a null in a known field or in a mapping. The remaining nulls are errors (in an unknown
    field or a list), or belong to a pod. Source: PruneNonNullableNullsWithoutDefaults and Default,
    k8s.io/apiextensions-apiserver, pkg/apiserver/schema/defaulting.
    """
    return _pruned(document, _schema())


@cache
def _schema() -> Json:
    return schema()


def _pruned(value: Any, node: Json) -> Any:
    if "$ref" in node:
        node = _schema()["$defs"][node["$ref"].rpartition("/")[2]]
    match value:
        case list():
            return [_pruned(item, node.get("items", {})) for item in value]
        case dict():
            known = node.get("properties", {})
            others = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
            other = others[0] if isinstance(others[0], dict) else None
            return {
                key: _pruned(child, known.get(key, other or {}))
                for key, child in value.items()
                if child is not None or (key not in known and other is None)
            }
    return value


def read_runs(files: Mapping[str, bytes]) -> Runs:
    """Read Run files, YAML or JSON, by name; never raises, whatever their content.

    Other objects in the files, such as a volume claim or a policy, are skipped and listed in
    `foreign`. A null means that the field is left out, as it does to the API server.
    """
    return reader.read_files(files, _RUNS)


def _is_foreign(document: Mapping[str, Any]) -> bool:
    """Return True for objects of other groups, and for other kinds of Fairlead."""
    version, kind = document.get("apiVersion"), document.get("kind")
    # A Run in another group is more likely a typo in the group than a foreign object.
    if not isinstance(version, str) or not isinstance(kind, str) or kind == names.RUN_KIND:
        return False
    return not version.startswith(names.PREFIX) or kind in _OTHERS


def _everywhere(_: object) -> bool:
    return True


def _value(node: yaml_tree.Node) -> Any:
    return without_nulls(yaml_tree.value(node))


_RUNS: Final = Forms(
    {names.RUN_KIND: Run},
    "runs",
    unjudged=written_by_the_server,
    nulls=_everywhere,
    value=_value,
    foreign=_is_foreign,
)
