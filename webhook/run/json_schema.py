"""The JSON Schema and the reference of a Run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.policy.json_schema import document_schema, page_of
from webhook.run.model import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME: Final = names.RUN_KIND.lower()
_OF_THE_STATUS: Final = (
    "RunStatus",
    "RoleStatus",
    "ReplicaNodes",
    "Usage",
    "Recovering",
    "ReplicaHistory",
    "HistoryEvent",
    "Incident",
    "GangStatus",
    "GangWait",
    "LastFailure",
    "Condition",
)
_BY_THE_SERVER: Final = "Set by the API server."
# By class and field.
IN_A_RUN: Final[Mapping[tuple[str, str], str]] = {
    ("Environment", "nodeSelector"): "Labels that the node must have.",
    ("Environment", "tolerations"): "Taints that the pods tolerate; all layers are combined.",
    ("Environment", "affinity"): "The pods' affinity and anti-affinity to nodes and pods. Each of "
    "its lists replaces that of an earlier layer.",
    ("Environment", "topologySpreadConstraints"): "How the pods are spread over topology domains.",
    ("Environment", "nodeName"): "The node, which bypasses the scheduler and taints.",
    ("Environment", "priorityClassName"): "The PriorityClass.",
    ("Environment", "schedulerName"): "The scheduler.",
    ("Environment", "runtimeClassName"): "The RuntimeClass.",
    ("Environment", "terminationGracePeriodSeconds"): "The time that the pods have to stop, in "
    "seconds. Default: 30. Policies treat 30 as unset.",
    ("Environment", "securityContext"): "The pods' security context, merged key by key.",
    ("Environment", "labels"): "Labels of the pods. Fairlead sets the labels of the replica.",
    ("Environment", "annotations"): "Annotations of the pods.",
    ("Environment", "capacity"): "The capacity classes that the pods request. Each pod gets the "
    "annotation fairlead.dev/capacity, which policies treat as the pod's own setting.",
    ("NodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"): (
        "The nodes on which the pods may run."
    ),
    ("NodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"): (
        "The nodes that the scheduler prefers."
    ),
    ("PodAffinity", "requiredDuringSchedulingIgnoredDuringExecution"): (
        "Terms that must hold when a pod is scheduled."
    ),
    ("PodAffinity", "preferredDuringSchedulingIgnoredDuringExecution"): (
        "Terms that the scheduler prefers."
    ),
    ("Toleration", "tolerationSeconds"): "The time that a pod stays on a node after it gets the "
    "taint, in seconds. Default: without a limit. Only with effect NoExecute.",
    (
        "CapacitySetting",
        "mode",
    ): "Allow tolerates the class's taints. Prefer also prefers its nodes, "
    "by weight; cluster autoscalers ignore preferences. Constrain tolerates the taints and "
    "requires its nodes. Prevent excludes its nodes, and removes tolerations that match only its "
    "taints. None requests nothing, and disables the defaults of policies.",
    ("CapacitySetting", "class"): "The name of a CapacityClass of the cluster's policies.",
}


def raw() -> dict[str, Any]:
    """Return pydantic's schema of the model, with `$defs` by class and descriptions for a Run.

    Raises KeyError if IN_A_RUN names a field that does not exist.
    """
    whole = Run.model_json_schema(by_alias=True)
    definitions = whole["$defs"]
    for (name, field), description in IN_A_RUN.items():
        definitions[name]["properties"][field]["description"] = description
    metadata = definitions["RunMetadata"]["properties"]
    for field, value in metadata.items():
        if value["description"] == _BY_THE_SERVER:
            metadata[field] = {"description": _BY_THE_SERVER}
    # The controller writes all fields of the status, so they need no defaults.
    del whole["properties"]["status"]["default"]
    for name in _OF_THE_STATUS:
        for value in definitions[name]["properties"].values():
            value.pop("default", None)
    return whole


def schema() -> dict[str, Any]:
    """Return the schema of a Run document, draft 2020-12."""
    return document_schema(names.RUN_KIND, raw())


def page() -> str:
    """Return the reference page: every field with its type and description."""
    return page_of(names.RUN_KIND, schema())
