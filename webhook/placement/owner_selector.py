"""The selector by which a pod's owner counts its pods: a label that is added may break it.

A controller releases a pod that its selector no longer matches, and creates another one: with a
policy's label on each, without end. Source: PodControllerRefManager.ClaimPods of
k8s.io/kubernetes/pkg/controller, v1.36.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.placement.nodes import format_requirement
from webhook.placement.shapes import as_object, objects_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.placement.shapes import Requirement

STATEFUL_SET: Final = "StatefulSet"
_TEMPLATE_HASH: Final = "pod-template-hash"
# Kinds whose selector has expressions, by API group, with their resources; it is immutable. The
# selector of a ReplicationController only asks for labels, which no added label can break.
SELECTING: Final[Mapping[tuple[str, str], str]] = {
    ("apps", "DaemonSet"): "daemonsets",
    ("apps", "Deployment"): "deployments",
    ("apps", "ReplicaSet"): "replicasets",
    ("apps", STATEFUL_SET): "statefulsets",
    ("batch", "Job"): "jobs",
}


class CountedPods(NamedTuple):
    """How an owner counts its pods: `conditions` and `first` as in OwnerSelector."""

    conditions: tuple[Requirement, ...] = ()
    first: int = 0


class OwnerSelector(NamedTuple):
    """What a pod's owner requires of labels that the pod does not have.

    owner:      its kind and name, for messages
    conditions: the requirements of its selector that a further label may break
    unread:     why the selector is not known; empty if it is
    first:      the ordinal of its first pod, if it is a StatefulSet
    """

    owner: str
    conditions: tuple[Requirement, ...] = ()
    unread: str = ""
    first: int | None = None

    def broken_by(self, key: str, value: str) -> str:
        """Return the first requirement that a pod with this further label does not meet, or ""."""
        for condition in self.conditions:
            # Any other operator, or NotIn without values, is not valid: whom it selects is unknown.
            holds = (
                condition["operator"] == "NotIn"
                and condition["values"]
                and value not in condition["values"]
            )
            if condition["key"] == key and not holds:
                return format_requirement(condition)
        return ""


def written_owner(kind: str, name: str, labels: Mapping[str, Any]) -> tuple[str, str]:
    """Return kind and name of the object that an author writes for this owner of a pod.

    `labels` are those of the pod, or of the owner. A Deployment reverts changes to its ReplicaSet,
    whose name ends in the value of a label (pkg/controller/deployment/sync.go, getNewReplicaSet).
    """
    digest = labels.get(_TEMPLATE_HASH)
    if kind == "ReplicaSet" and digest and name.endswith(f"-{digest}"):
        return "Deployment", name.removesuffix(f"-{digest}")
    return kind, name


def selector_of(workload: Mapping[str, Any]) -> OwnerSelector:
    """Return the selector of an object of these kinds."""
    metadata = as_object(workload.get("metadata"))
    kind, name = str(workload.get("kind")), str(metadata.get("name") or "")
    written = written_owner(kind, name, as_object(metadata.get("labels")))
    first = first_of(workload) if kind == STATEFUL_SET else None
    return OwnerSelector(" ".join(written), conditions_of(workload), first=first)


def first_of(workload: Mapping[str, Any]) -> int:
    """Return the ordinal of a StatefulSet's first pod (spec.ordinals.start)."""
    start = as_object(as_object(workload.get("spec")).get("ordinals")).get("start")
    return start if isinstance(start, int) and start > 0 else 0


def conditions_of(workload: Mapping[str, Any]) -> tuple[Requirement, ...]:
    """Return the requirements of a workload's selector that a further label may break.

    `In`, `Exists` and matchLabels ask for a label, which a pod of the workload has already. All
    others count, also those that are not valid.
    """
    selector = as_object(as_object(workload.get("spec")).get("selector"))
    return tuple(
        {"key": expression["key"], "operator": operator, "values": _texts(expression.get("values"))}
        for expression in objects_in(selector.get("matchExpressions"))
        if isinstance(expression.get("key"), str)
        and (operator := str(expression.get("operator"))) not in ("In", "Exists")
    )


def _texts(values: object) -> list[str]:
    return [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
