"""Which of a test's nodes admit a pod, and what shuts it out of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook import names
from webhook.placement import node_affinity
from webhook.placement.tolerations import untolerated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Requirement, Taint, Term
    from webhook.policy_tests.model import Node


def labels_of(node: Node) -> dict[str, str]:
    """The node's labels, with those that the kubelet gives every node."""
    return {
        names.HOSTNAME_LABEL: node.name,
        names.OS_LABEL: "linux",
        "kubernetes.io/arch": "amd64",
        **(node.labels or {}),
    }


def shut_out(pod: PodPlacement, node: Node) -> str:
    """What keeps the pod off the node; empty if the node admits it.

    Only labels and taints are looked at, as the scheduler's plugins NodeName, NodeAffinity and
    TaintToleration do; not resources, volumes or other pods.
    """
    labels = labels_of(node)
    if pod.node_name and pod.node_name != node.name:
        return f"the pod is bound to {pod.node_name}"
    for key, value in pod.node_selector.items():
        if labels.get(key) != value:
            return f"nodeSelector {key}={value}: {_label(key, labels)}"
    if pod.required is not None:
        reasons = [_fails(term, labels, node.name) for term in pod.required]
        if all(reasons) or not reasons:
            return f"required node affinity: {', and '.join(dict.fromkeys(reasons)) or 'no term'}"
    taints: list[Taint] = [
        {"key": taint.key, "value": taint.value or "", "effect": taint.effect}
        for taint in node.taints or ()
    ]
    taint = untolerated(taints, pod.tolerations)
    if taint is not None:
        value = f"={taint['value']}" if taint["value"] else ""
        return f"taint {taint['key']}{value}:{taint['effect']} is not tolerated"
    return ""


def _fails(term: Term, labels: Mapping[str, str], name: str) -> str:
    if node_affinity.is_empty(term):
        return "an empty term matches no node"
    failed = node_affinity.failed(term, labels, name)
    return "" if failed is None else f"{_written(failed)}: {_label(failed['key'], labels)}"


def _written(requirement: Requirement) -> str:
    values = requirement.get("values")
    return f"{requirement['key']} {requirement['operator']}" + (f" {values}" if values else "")


def _label(key: str, labels: Mapping[str, str]) -> str:
    return f"the node has {labels[key]!r}" if key in labels else "the node has no such label"
