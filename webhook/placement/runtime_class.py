"""What a pod's RuntimeClass, and plugins that may run, leave unknown about its nodes.

The API server merges the class's nodeSelector and tolerations into the pod, and adds its overhead
to the requests. Source: k8s.io/kubernetes v1.36, plugin/pkg/admission/runtimeclass. Fairlead does
not read these classes.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from webhook.placement.nodes import obstacle
from webhook.placement.tolerations import tolerates

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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


def deciding_plugins(
    pod: PodPlacement,
    requests: Mapping[str, int],
    nodes: Iterable[Node],
    added: Mapping[str, Sequence[Toleration]],
) -> tuple[str, ...]:
    """Return the plugins whose tolerations decide which of the nodes admit the pod.

    `added`: the tolerations that each of them adds, if it runs.
    """
    wide = tolerating(pod, added)
    plugins: dict[str, None] = {}
    for node in nodes:
        by = [
            name
            for name, tolerations in added.items()
            if any(
                tolerates(toleration, taint) for toleration in tolerations for taint in node.taints
            )
        ]
        if by and obstacle(pod, requests, node) and obstacle(wide, requests, node) is None:
            plugins |= dict.fromkeys(by)
    return tuple(plugins)


def tolerating(pod: PodPlacement, added: Mapping[str, Sequence[Toleration]]) -> PodPlacement:
    """Return the pod with the tolerations of these plugins."""
    return pod._replace(tolerations=[*pod.tolerations, *chain(*added.values())])
