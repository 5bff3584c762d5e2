"""A pod that is about to be created, and what of its cluster a decision depends on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webhook import names

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject

# What the DefaultTolerationSeconds admission plugin gives unless the API server is told otherwise.
DEFAULT_TOLERATION_SECONDS = {names.TAINT_NOT_READY: 300, names.TAINT_UNREACHABLE: 300}


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster's defaults, which count as nobody's word.

    default_priority_class:      the PriorityClass with globalDefault; empty if there is none
    default_toleration_seconds:  what the DefaultTolerationSeconds plugin gives, by taint
    """

    default_priority_class: str = ""
    default_toleration_seconds: Mapping[str, int] = field(
        default_factory=lambda: DEFAULT_TOLERATION_SECONDS
    )


@dataclass(frozen=True, slots=True)
class Arrival:
    """The pod (a v1.Pod). `user` is empty offline: what the pod says of itself is then believed.

    `now` is when it comes, with a time zone. None where nobody says: then no exception holds, and
    none has ended.
    """

    pod: JsonObject
    namespace: str
    namespace_labels: Mapping[str, str]
    user: str = ""
    now: datetime | None = None


def keeps_placement(arrival: Arrival, placement: PodPlacement) -> str:
    """Why the pod is left alone whatever the policies say, or an empty string."""
    # An annotation and an owner reference can be forged, the user of the request cannot.
    if names.MIRROR_POD in placement.annotations and (
        not arrival.user or arrival.user.startswith(names.NODE_USERS)
    ):
        return "mirror pod: it is its node's own"
    if arrival.user in ("", names.DAEMON_SET_CONTROLLER) and _owned_by_daemon_set(arrival.pod):
        return "made by the DaemonSet controller, which goes by its own template"
    return ""


def _owned_by_daemon_set(pod: JsonObject) -> bool:
    owners = pod["metadata"].get("ownerReferences")
    return isinstance(owners, list) and any(
        isinstance(owner, dict)
        and owner.get("kind") == "DaemonSet"
        and owner.get("controller") is True
        and str(owner.get("apiVersion")).startswith("apps/")
        for owner in owners
    )
