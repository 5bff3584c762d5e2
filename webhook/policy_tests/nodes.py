"""The nodes of a policy test: short as they are written, whole as placement sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook import names
from webhook.placement.nodes import Node

if TYPE_CHECKING:
    from webhook.placement.shapes import Taint
    from webhook.policy_tests import model


def whole(node: model.Node) -> Node:
    """The node, with the labels that the kubelet gives every node."""
    labels = {
        names.HOSTNAME_LABEL: node.name,
        names.OS_LABEL: "linux",
        "kubernetes.io/arch": "amd64",
        **(node.labels or {}),
    }
    taints: list[Taint] = [
        {"key": taint.key, "value": taint.value or "", "effect": taint.effect}
        for taint in node.taints or ()
    ]
    return Node(node.name, labels, taints)
