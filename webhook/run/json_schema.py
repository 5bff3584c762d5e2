"""The JSON Schema of a Run, for editors; and its reference as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.policy.json_schema import document_schema
from webhook.policy.reference import page_of
from webhook.run.model import Run

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME: Final = names.RUN_KIND.lower()
_OF_THE_STATUS: Final = (
    "RunStatus",
    "RoleStatus",
    "Recovering",
    "Incident",
    "LastFailure",
    "Condition",
)
_BY_THE_SERVER: Final = "Set by the API server."
# By class and field.
IN_A_RUN: Final[Mapping[tuple[str, str], str]] = {
    ("Environment", "nodeSelector"): "Labels that the node must have.",
    ("Environment", "tolerations"): "Taints that the pods tolerate; those of all layers join.",
    ("Environment", "affinity"): "What draws the pods to nodes and to other pods, or keeps them "
    "from them. Each of its lists replaces that of an earlier layer.",
    ("Environment", "topologySpreadConstraints"): "How pods are spread over places.",
    ("Environment", "nodeName"): "The node itself. It passes by the scheduler and by taints.",
    ("Environment", "priorityClassName"): "The PriorityClass.",
    ("Environment", "schedulerName"): "The scheduler.",
    ("Environment", "runtimeClassName"): "The RuntimeClass.",
    ("Environment", "terminationGracePeriodSeconds"): "How long the pods may take to end after "
    "they are told to, in seconds; 30 if nobody says. To policies 30 counts as unset.",
    ("Environment", "securityContext"): "The pods' security context, merged key by key.",
    ("Environment", "labels"): "Labels of the pods. Those that tell a replica are Fairlead's.",
    ("Environment", "annotations"): "Annotations of the pods.",
    ("Environment", "capacity"): "What the pods have to do with capacity classes. Each pod says "
    "so in its annotation fairlead.dev/capacity, and policies take it for the pod's own word.",
    ("NodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"): (
        "The nodes that the pods may run on."
    ),
    ("NodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"): (
        "The nodes that the pods had better run on."
    ),
    ("PodAffinity", "requiredDuringSchedulingIgnoredDuringExecution"): (
        "Must hold when a pod is scheduled."
    ),
    ("PodAffinity", "preferredDuringSchedulingIgnoredDuringExecution"): (
        "Had better hold when a pod is scheduled."
    ),
    ("Toleration", "tolerationSeconds"): "How long a pod stays on a node that gets the taint, in "
    "seconds; left out, for ever. Only with effect NoExecute.",
    (
        "CapacitySetting",
        "mode",
    ): "Allow tolerates the class's taints. Prefer also prefers its nodes, "
    "by weight; cluster autoscalers ignore preferences. Constrain tolerates, and requires its "
    "nodes. Prevent keeps the pods off its nodes, and takes away tolerations of its taints alone. "
    "None asks for nothing, and keeps the defaults of policies away.",
    ("CapacitySetting", "class"): "The name of a CapacityClass of the cluster's policies.",
}


def raw() -> dict[str, Any]:
    """What pydantic makes of the model, with the words that fit a Run, and `$defs` by class.

    Raises KeyError if there are words for a field that is not there.
    """
    whole = Run.model_json_schema(by_alias=True)
    definitions = whole["$defs"]
    for (name, field), description in IN_A_RUN.items():
        definitions[name]["properties"][field]["description"] = description
    metadata = definitions["RunMetadata"]["properties"]
    for field, value in metadata.items():
        if value["description"] == _BY_THE_SERVER:
            metadata[field] = {"description": _BY_THE_SERVER}
    # Whoever writes the status writes all that is known: nothing is filled in.
    del whole["properties"]["status"]["default"]
    for name in _OF_THE_STATUS:
        for value in definitions[name]["properties"].values():
            value.pop("default", None)
    return whole


def schema() -> dict[str, Any]:
    """The schema of a document of kind Run, draft 2020-12."""
    return document_schema(names.RUN_KIND, raw())


def page() -> str:
    """The page of the Run: every field with its type and meaning."""
    return page_of(names.RUN_KIND, schema())
