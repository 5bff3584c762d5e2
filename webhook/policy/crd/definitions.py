"""The CustomResourceDefinitions of policies, classes, exceptions and sources, as objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic.json_schema import models_json_schema

from webhook import names
from webhook.crd.definition import (
    KEEPS_UNKNOWN,
    TEXT,
    Called,
    Column,
    Structural,
    definition,
    list_by_keys,
    placement_lists,
)
from webhook.dns_names import MAX_SUBDOMAIN
from webhook.placement.schema.placement import MAX_FROM
from webhook.placement.schema.syntax import COUNTED_KEY_PATTERN, KEY_PATTERN, MAX_LISTED
from webhook.policy.crd.policy_rules import RULES
from webhook.policy.model import PARTS
from webhook.policy.policy_documents import KNOWN
from webhook.policy.status_model import MODELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.crd.definition import Lists
    from webhook.lenient import Reported

Json = dict[str, Any]

_CLUSTER: Final = "Cluster"
# Not in `all`, which users expect to list the objects of one namespace.
_CATEGORIES: Final = ("fairlead",)
_ACCEPTED: Final = '.status.conditions[?(@.type=="Accepted")]'
# For a list in the spec, the API server would print JSON in the column.
_SUMMARY: Final = ".status.summary"
_AGE: Final = Column("Age", "date", ".metadata.creationTimestamp")
_REASON: Final = Column("Reason", "string", f"{_ACCEPTED}.reason", wide=True)
_SATISFIABLE: Final = Column(
    "Satisfiable", "string", '.status.conditions[?(@.type=="Satisfiable")].status', wide=True
)
_IN_FORCE: Final = Column("In force", "string", '.status.conditions[?(@.type=="InForce")].status')
_INTERCEPTED: Final = Column(
    "Intercepted", "string", '.status.conditions[?(@.type=="Intercepted")].status'
)
_POLICY_COLUMNS: Final = (
    Column("Priority", "integer", ".spec.priority"),
    Column("Enforcement", "string", ".spec.enforcement"),
    Column("Rollout", "string", _SUMMARY),
    Column("Pods decided", "integer", ".status.podsDecided"),
    Column("Accepted", "string", f"{_ACCEPTED}.status"),
    _IN_FORCE,
    _AGE,
    Column("Rejected", "integer", ".status.podsRejected", wide=True),
    Column("Last match", "date", ".status.lastMatch", wide=True),
    _SATISFIABLE,
    _REASON,
    Column("Description", "string", ".spec.description", wide=True),
)
_CLASS_COLUMNS: Final = (
    Column("Complement of", "string", ".spec.complementOf"),
    Column("Accepted", "string", f"{_ACCEPTED}.status"),
    _AGE,
    _SATISFIABLE,
    _REASON,
    Column("Nodes", "string", _SUMMARY, wide=True),
)
_EXCEPTION_COLUMNS: Final = (
    Column("Policies", "string", _SUMMARY),
    Column("Until", "string", ".spec.until"),
    _IN_FORCE,
    Column("Reason", "string", ".spec.reason"),
    _AGE,
    Column("Accepted", "string", f"{_ACCEPTED}.status", wide=True),
)
_SOURCE_COLUMNS: Final = (
    Column("System", "string", ".spec.system"),
    Column("Precedence", "integer", ".spec.identity.precedence"),
    Column("Marks", "string", _SUMMARY),
    Column("Accepted", "string", f"{_ACCEPTED}.status"),
    _INTERCEPTED,
    _AGE,
    _REASON,
)
# By kind, the short name and the columns.
_KINDS: Final[Mapping[str, tuple[str, tuple[Column, ...]]]] = {
    names.POLICY_KIND: ("pp", _POLICY_COLUMNS),
    names.CLASS_KIND: ("cc", _CLASS_COLUMNS),
    names.EXCEPTION_KIND: ("pe", _EXCEPTION_COLUMNS),
    names.SOURCE_KIND: ("rsrc", _SOURCE_COLUMNS),
}


def _called(kind: str) -> Called:
    return Called(kind, names.POLICY_RESOURCES[kind], _CLUSTER, _KINDS[kind][0], _CATEGORIES)


AS_IN_DEFAULTS: Final = f"As in {PARTS[0]}."
# The definitions' names by kind: resource and group.
RESOURCES: Final[Mapping[str, str]] = {kind: _called(kind).resource for kind in _KINDS}
_PLACEMENTS: Final = ("Defaults", "PlacementSettings", "Requirements")
# Rules check each key.
_MAPPINGS: Final = (
    *((name, field) for name in _PLACEMENTS for field in ("nodeSelector", "labels", "annotations")),
    ("LabelSelector", "matchLabels"),
    ("Shape", "labels"),
)
_KEY_LISTS: Final = (
    ("PodAffinityTerm", "matchLabelKeys"),
    ("PodAffinityTerm", "mismatchLabelKeys"),
    ("TopologySpreadConstraint", "matchLabelKeys"),
)
_REPORTS: Final = tuple(model.__name__ for model in MODELS.values())

LISTS: Final[Lists] = {
    **placement_lists(*_PLACEMENTS),
    **{at: {"maxProperties": MAX_LISTED} for at in _MAPPINGS},
    **{at: {"maxItems": MAX_LISTED} for at in _KEY_LISTS},
    ("Requirements", "values"): list_by_keys(MAX_LISTED, "field", "key"),
    **{(name, "nodeSelectorFrom"): list_by_keys(MAX_FROM, "key") for name in _PLACEMENTS},
    **{(name, "tolerationsFrom"): list_by_keys(MAX_FROM, "key", "effect") for name in _PLACEMENTS},
    ("PolicySpec", "exclude"): {"maxItems": MAX_LISTED},
    ("ExceptionSpec", "policies"): {"x-kubernetes-list-type": "set"},
    # Longer than any valid timestamp, so that a rule with a message reports values a little too
    # long.
    ("ExceptionSpec", "until"): {"maxLength": MAX_SUBDOMAIN},
    ("CapacityClassSpec", "nodes"): {"maxItems": MAX_LISTED},
    ("Shape", "matchExpressions"): {"maxItems": MAX_LISTED},
    ("Shape", "taints"): {"maxItems": MAX_LISTED},
    **{(name, "conditions"): list_by_keys(0, "type") for name in _REPORTS},
    **{(name, "servedHashes"): list_by_keys(0, "replica") for name in _REPORTS},
}


def custom_resource_definitions() -> Mapping[str, Json]:
    """Return the definition of each kind as an apiextensions.k8s.io/v1 object."""
    return {
        kind: definition(_called(kind), columns, _schema(kind))
        for kind, (_, columns) in _KINDS.items()
    }


def _refer(parts: Mapping[str, Json]) -> None:
    """Describe the fields in the fields of a placement once, under defaults.

    They are most of the definition, and the same in all parts of a policy.
    """
    first, *others = (parts[part]["properties"] for part in PARTS)
    for part in others:
        for field in part:
            if field in first:
                _refer_to(first[field], part[field])


def _refer_to(described: Json, same: Json) -> None:
    for key in ("items", "additionalProperties"):
        if key in described and key in same:
            _refer_to(described[key], same[key])
    for field, child in same.get("properties", {}).items():
        described_child = described["properties"].get(field)
        if described_child and described_child["description"] == child["description"]:
            child["description"] = AS_IN_DEFAULTS
            _refer_to(described_child, child)


def _schema(kind: str) -> Json:
    """Return the schema of the object. In metadata, rules restrict only the name."""
    status = MODELS[names.POLICY_RESOURCES[kind]]
    spec: Any = KNOWN[kind].model_fields["spec"].annotation
    definitions = _definitions(kind, status)
    # An older definition must not drop what narrows a policy (decision 100). /validate refuses
    # unknown fields.
    structural = Structural(definitions, RULES, LISTS, keeps_unknown=True)
    fields = definitions[kind]["properties"]
    written = structural.definition(spec.__name__)
    if kind == names.POLICY_KIND:
        _refer(written["properties"])
    return {
        "description": definitions[kind]["description"],
        "type": "object",
        KEEPS_UNKNOWN: True,
        "required": ["spec"],
        "properties": {
            "apiVersion": TEXT,
            "kind": TEXT,
            "metadata": {"type": "object", "properties": {"name": TEXT, "generateName": TEXT}},
            "spec": {
                **written,
                "description": fields["spec"]["description"],
            },
            "status": structural.definition(status.__name__),
        },
        "x-kubernetes-validations": [rule.schema() for rule in RULES[kind]],
    }


def _definitions(kind: str, status: type[Reported]) -> Mapping[str, Json]:
    """Return pydantic's schemas of the models of a kind, by class."""
    _, whole = models_json_schema(
        [(KNOWN[kind], "validation"), (status, "validation")], by_alias=True
    )
    definitions: Mapping[str, Json] = whole["$defs"]
    # The controller writes all fields of the status, so they need no defaults.
    for name in (status.__name__, "Condition", "Served"):
        for field in definitions[name]["properties"].values():
            field.pop("default", None)
    counted: Mapping[str, Json] = _with_counted_keys(definitions)
    return counted


def _with_counted_keys(node: Any) -> Any:
    """Return the schema with the strictest pattern for label keys."""
    if isinstance(node, list):
        return [_with_counted_keys(item) for item in node]
    if isinstance(node, dict):
        return {key: _with_counted_keys(value) for key, value in node.items()}
    return COUNTED_KEY_PATTERN if node == KEY_PATTERN else node
