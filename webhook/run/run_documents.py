"""Read Run files to Runs."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic import ValidationError

from webhook import names
from webhook.errors import InvalidRun
from webhook.policy import reader, yaml_tree
from webhook.policy.document_parser import Forms, sentence, written_by_the_server
from webhook.policy.findings import path_text
from webhook.run.json_schema import schema
from webhook.run.model import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

Document: TypeAlias = reader.Document[Run]
Runs: TypeAlias = reader.Documents[Run]

_OTHERS: Final = ("PlacementPolicy", "CapacityClass", "PolicyTest")
Json = dict[str, Any]
# The API server cuts a generateName, and appends so many characters (k8s.io/apiserver, names).
_PREFIX_LENGTH: Final = 58
_SUFFIX: Final = "xxxxx"
# The API server gives each Run a uid, by which its pods are selected. A Run in a file has no uid.
_UNSTORED: Final = {"uid": names.NO_UID, "resourceVersion": "0"}


def without_nulls(document: Any) -> Any:
    """Return the document as plain values, without the nulls that the API server drops.

    It drops a null in a known field or in a mapping. The remaining nulls are errors (in an unknown
    field or a list), or belong to a pod. Source: PruneNonNullableNullsWithoutDefaults and Default,
    k8s.io/apiextensions-apiserver, pkg/apiserver/schema/defaulting.
    """
    # The schema takes long to make, and most documents have no null.
    return _pruned(document, _schema() if _has_null(document) else {})


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    return any(map(_has_null, value)) if isinstance(value, list) else value is None


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
            properties = node.get("properties", {})
            others = [*node.get("patternProperties", {}).values(), node.get("additionalProperties")]
            other = others[0] if isinstance(others[0], dict) else None
            return {
                key: _pruned(child, properties.get(key, other or {}))
                for key, child in value.items()
                if child is not None or (key not in properties and other is None)
            }
    return value


def placeholder_name(prefix: str) -> str:
    """Return a name as the API server generates it from a generateName, always the same."""
    return f"{prefix[:_PREFIX_LENGTH]}{_SUFFIX}"


def typed(raw: Json) -> Run:
    """Return the typed Run of a raw one. Raises InvalidRun with all its problems."""
    try:
        return Run.model_validate(raw, by_alias=True, by_name=False)
    except ValidationError as error:
        lines = error.errors(include_url=False)
        raise InvalidRun(
            [f"{path_text(line['loc'])}: {sentence(line)}" for line in lines]
        ) from None


def run_of(raw: Json, namespace: str) -> Run:
    """Return a Run that may not be stored yet; `namespace` is for one that names none.

    Raises InvalidRun with all errors.
    """
    raw_metadata = raw.get("metadata")
    members = raw_metadata.items() if isinstance(raw_metadata, dict) else ()
    stored_fields = {key: value for key, value in members if value and key != "managedFields"}
    metadata = {**_UNSTORED, "namespace": namespace, **stored_fields}
    metadata.setdefault("name", placeholder_name(str(metadata.get("generateName", "run-"))))
    return typed(without_nulls({**raw, "metadata": metadata}))


def read_runs(files: Mapping[str, bytes], *, placeholders: bool = False) -> Runs:
    """Read Run files, YAML or JSON, by name; never raises, whatever their content.

    Other objects in the files, such as a volume claim or a policy, are skipped and listed in
    `foreign`. A null means that the field is left out, as it does to the API server. With
    `placeholders`, a Run with generateName gets a placeholder for its name; else it is an error.
    """
    return reader.read_files(files, _NAMED_RUNS if placeholders else _RUNS)


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


def _named_value(node: yaml_tree.Node) -> Any:
    value = _value(node)
    metadata = value.get("metadata") if isinstance(value, dict) else None
    if isinstance(metadata, dict) and not metadata.get("name"):
        prefix = metadata.get("generateName")
        if isinstance(prefix, str) and prefix:
            metadata["name"] = placeholder_name(prefix)
    return value


_RUNS: Final = Forms(
    {names.RUN_KIND: Run},
    "runs",
    unjudged=written_by_the_server,
    nulls=_everywhere,
    value=_value,
    foreign=_is_foreign,
)
_NAMED_RUNS: Final = replace(_RUNS, value=_named_value)
