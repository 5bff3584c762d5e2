"""What placement's fields mean in a Run, where the model's descriptions speak of policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

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
