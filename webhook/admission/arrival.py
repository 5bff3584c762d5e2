"""A pod that is about to be created, and what of its cluster a decision depends on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from webhook import names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import datetime

    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject

# What the DefaultTolerationSeconds admission plugin gives unless the API server is told otherwise.
DEFAULT_TOLERATION_SECONDS = {names.TAINT_NOT_READY: 300, names.TAINT_UNREACHABLE: 300}


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster's defaults, which count as nobody's word, and its nodes.

    default_priority_class:      the PriorityClass with globalDefault; empty if there is none
    default_toleration_seconds:  what the DefaultTolerationSeconds plugin gives, by taint
    node:                        gives a node by name, None if there is none of that name; None if
                                 the nodes are not known
    """

    default_priority_class: str = ""
    default_toleration_seconds: Mapping[str, int] = field(
        default_factory=lambda: DEFAULT_TOLERATION_SECONDS
    )
    node: Callable[[str], Node | None] | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """The pod (a v1.Pod). `user` is empty offline: what the pod says of itself is then believed.

    `groups` are the user's. `now` is when it comes, with a time zone. None where nobody says: then
    no exception holds, and none has ended.
    """

    pod: JsonObject
    namespace: str
    namespace_labels: Mapping[str, str]
    user: str = ""
    now: datetime | None = None
    groups: Collection[str] = ()


OF_DAEMON_SET: Final = "made by the DaemonSet controller, which goes by its own template"


def keeps_placement(arrival: Arrival, placement: PodPlacement) -> str:
    """Why defaults and overrides leave the pod alone, or an empty string.

    Requirements hold for a DaemonSet's pod all the same if its own labels mark it (OF_DAEMON_SET).
    """
    # An annotation and an owner reference can be forged, the user of the request cannot.
    if names.MIRROR_POD in placement.annotations and (not arrival.user or _is_node(arrival)):
        return "mirror pod: it is its node's own"
    if arrival.user in ("", names.DAEMON_SET_CONTROLLER) and _owned_by_daemon_set(arrival.pod):
        return OF_DAEMON_SET
    return ""


def _is_node(arrival: Arrival) -> bool:
    """Whether a node asks, by what the node authorizer goes by (package nodeidentifier)."""
    return arrival.user.startswith(names.NODE_USERS) and names.NODE_GROUP in arrival.groups


def _owned_by_daemon_set(pod: JsonObject) -> bool:
    owners = pod["metadata"].get("ownerReferences")
    return isinstance(owners, list) and any(
        isinstance(owner, dict)
        and owner.get("kind") == "DaemonSet"
        and owner.get("controller") is True
        and str(owner.get("apiVersion")).startswith("apps/")
        for owner in owners
    )
