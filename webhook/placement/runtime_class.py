"""What a pod's RuntimeClass leaves unknown about its nodes.

The API server merges the class's nodeSelector and tolerations into the pod, and adds its overhead
to the requests. Source: k8s.io/kubernetes v1.36, plugin/pkg/admission/runtimeclass. Fairlead does
not read these classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.placement.nodes import obstacle

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Toleration

FIELD: Final = "runtimeClassName"
EVERY_TAINT: Final[Toleration] = {"operator": "Exists"}


def unread_class(pod: PodPlacement, requests: Mapping[str, int], nodes: Iterable[Node]) -> str:
    """Return the pod's RuntimeClass, if that decides which of the nodes admit it; else no text.

    A class can tolerate taints, and cannot admit a pod to a node whose labels exclude it, or that
    is too small.
    """
    name = pod.runtime_class_name
    if not name:
        return ""
    tolerant = pod._replace(tolerations=[EVERY_TAINT])
    return name if any(obstacle(tolerant, requests, node) is None for node in nodes) else ""
