"""The one container of a Deployment of ours, and the arguments of the program in it."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    Json = dict[str, Any]


def with_argument(deployment: Json, argument: str) -> Json:
    """The Deployment with one argument more."""
    changed, _, container = opened(deployment)
    container["args"].append(argument)
    return changed


def opened(deployment: Json) -> tuple[Json, Json, Json]:
    """A copy to be changed; in it the spec of its pods, and of the one container that they have."""
    copy = deepcopy(deployment)
    pod = copy["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    return copy, pod, container


def has_argument(deployment: Mapping[str, Any], argument: str) -> bool:
    """Whether a container of it is given exactly this argument: people may have added others."""
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return any(argument in (each.get("args") or ()) for each in containers)
