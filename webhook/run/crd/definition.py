"""The CustomResourceDefinition of the Run, as an object."""

from __future__ import annotations

from typing import Any, Final

from webhook import names
from webhook.placement.schema.syntax import MAX_NAME
from webhook.run.crd.lists import LISTS
from webhook.run.crd.placement_rules import TOO_DEEP
from webhook.run.crd.run_rules import RULES
from webhook.run.crd.structural import Structural
from webhook.run.json_schema import raw

Json = dict[str, Any]

NAME: Final = f"{names.RUNS}.{names.GROUP}"
# `kubectl get flrun`: `run` alone is the singular, and other groups have runs too.
SHORT_NAME: Final = "flrun"
_TEXT: Final = {"type": "string"}
_COLUMNS: Final = (
    # header, type, path, priority: 1 is shown with `-o wide` alone
    ("Phase", "string", ".status.phase", 0),
    ("Framework", "string", ".spec.framework", 0),
    ("Replicas", "string", ".status.replicasReady", 0),
    ("Restarts", "integer", ".status.restarts", 0),
    ("Age", "date", ".metadata.creationTimestamp", 0),
    ("Kind", "string", ".spec.kind", 1),
    ("Disruptions", "integer", ".status.disruptions", 1),
    ("Duration", "string", ".status.duration", 1),
    ("Message", "string", ".status.message", 1),
)


def custom_resource_definition() -> Json:
    """The definition, as `kubectl apply` takes it (apiextensions.k8s.io/v1)."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": names.GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": names.RUN_KIND,
                "listKind": f"{names.RUN_KIND}List",
                "plural": names.RUNS,
                "singular": names.RUN_KIND.lower(),
                "shortNames": [SHORT_NAME],
                "categories": ["all", "fairlead"],
            },
            "versions": [
                {
                    "name": names.VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [_column(*column) for column in _COLUMNS],
                    "schema": {"openAPIV3Schema": _schema()},
                }
            ],
        },
    }


def _column(name: str, kind: str, path: str, priority: int) -> Json:
    column: Json = {"name": name, "type": kind, "jsonPath": path}
    return {**column, "priority": priority} if priority else column


def _schema() -> Json:
    """The schema of the whole object. Of its metadata nothing but the name can be restricted."""
    whole = raw()
    structural = Structural(whole["$defs"], RULES, LISTS, "IndexSpec", TOO_DEEP)
    name = {**_TEXT, "maxLength": MAX_NAME}
    return {
        "description": whole["description"],
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": _TEXT,
            "kind": _TEXT,
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
