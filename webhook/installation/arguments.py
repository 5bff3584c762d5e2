"""The arguments of the one program that a Deployment of ours runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    Json = dict[str, Any]


def with_argument(deployment: Json, argument: str) -> Json:
    """The Deployment with one argument more."""
    template = deployment["spec"]["template"]
    (container,) = template["spec"]["containers"]
    told = {**container, "args": [*container["args"], argument]}
    pod = {**template["spec"], "containers": [told]}
    spec = {**deployment["spec"], "template": {**template, "spec": pod}}
    return {**deployment, "spec": spec}


def has_argument(deployment: Mapping[str, Any], argument: str) -> bool:
    """Whether a container of it is given exactly this argument: people may have added others."""
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return any(argument in (each.get("args") or ()) for each in containers)
