"""The CustomResourceDefinition of the Run, as an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.crd.definition import TEXT, Called, Column, definition
from webhook.crd.lists import by, placement_lists
from webhook.crd.placement_rules import TOO_DEEP
from webhook.crd.structural import Structural
from webhook.placement.schema.limits import MAX_LISTED
from webhook.placement.schema.syntax import MAX_NAME
from webhook.run.crd.run_rules import RULES
from webhook.run.json_schema import raw
from webhook.run.model.replica import MAX_OVERRIDES
from webhook.run.model.spec import MAX_EXIT_CODES, MAX_PORTS
from webhook.run.rendezvous.table import ROLES

if TYPE_CHECKING:
    from webhook.crd.lists import Lists

Json = dict[str, Any]

# `kubectl get flrun`: `run` alone is the singular, and other groups have runs too.
_CALLED: Final = Called(names.RUN_KIND, names.RUNS, "Namespaced", "flrun", ("all", "fairlead"))
NAME: Final = _CALLED.resource
_COLUMNS: Final = (
    Column("Phase", "string", ".status.phase"),
    Column("Framework", "string", ".spec.framework"),
    Column("Replicas", "string", ".status.replicasReady"),
    Column("Restarts", "integer", ".status.restarts"),
    Column("Age", "date", ".metadata.creationTimestamp"),
    Column("Kind", "string", ".spec.kind", wide=True),
    Column("Disruptions", "integer", ".status.disruptions", wide=True),
    Column("Duration", "string", ".status.duration", wide=True),
    Column("Message", "string", ".status.message", wide=True),
)
LISTS: Final[Lists] = {
    **placement_lists("Environment"),
    ("RunSpec", "replicas"): {"maxProperties": max(len(roles.known) for roles in ROLES.values())},
    ("RunSpec", "ports"): by(MAX_PORTS, "port"),
    ("RunSpec", "disruptionExitCodes"): {
        "maxItems": MAX_EXIT_CODES,
        "x-kubernetes-list-type": "set",
    },
    ("ReplicaSpec", "byIndex"): by(MAX_OVERRIDES, "index"),
    ("Resources", "claims"): by(MAX_LISTED, "name"),
    ("RunStatus", "conditions"): by(0, "type"),
}


def custom_resource_definition() -> Json:
    """The definition, as `kubectl apply` takes it (apiextensions.k8s.io/v1)."""
    return definition(_CALLED, _COLUMNS, _schema())


def _schema() -> Json:
    """The schema of the whole object. Of its metadata nothing but the name can be restricted."""
    whole = raw()
    structural = Structural(whole["$defs"], RULES, LISTS, "IndexSpec", TOO_DEEP)
    name = {**TEXT, "maxLength": MAX_NAME}
    return {
        "description": whole["description"],
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": TEXT,
            "kind": TEXT,
            "metadata": {"type": "object", "properties": {"name": name, "generateName": name}},
            "spec": {
                **structural.definition("RunSpec"),
                "description": whole["properties"]["spec"]["description"],
            },
            "status": {
                **structural.definition("RunStatus"),
                "description": whole["properties"]["status"]["description"],
            },
        },
        "x-kubernetes-validations": [rule.schema() for rule in RULES["Run"]],
    }
