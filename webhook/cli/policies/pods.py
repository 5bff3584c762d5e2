"""The pods and workloads that one policy has to do with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook.cli.live.focus import NoSuchPolicy
from webhook.cli.policies.words import EVERYWHERE, where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.cli.policies.policies_in_force import LivePod, PoliciesInForce, Template


@dataclass(frozen=True, slots=True)
class PodsOf:
    """Of one policy: live pods in which it took part and that it matches now (`both`), that it
    does not match any more (`no_more`), in which it would take part (`would`), and in which it
    would not for an exception (`excepted`); workloads. `audited`: it is under Audit somewhere.
    """

    name: str
    both: Sequence[LivePod]
    no_more: Sequence[LivePod]
    would: Sequence[LivePod]
    excepted: Sequence[LivePod]
    templates: Sequence[Template]
    audited: bool


def pods_of(gathered: PoliciesInForce, name: str) -> PodsOf:
    """What the policy of that name has to do with. Raises NoSuchPolicy."""
    stamped = [pod for pod in gathered.pods if name in pod.stamped]
    if name not in gathered.models and not stamped:
        said = f"{name}: no such policy in {gathered.source}"
        raise NoSuchPolicy(said, name, gathered.models)
    return PodsOf(
        name,
        [pod for pod in stamped if name in pod.matching],
        [
            pod._replace(failed={name: _gone(gathered, pod, name)})
            for pod in stamped
            if name not in pod.matching
        ],
        [pod for pod in gathered.pods if name in pod.matching and name not in pod.stamped],
        [pod for pod in gathered.pods if name in pod.excepted and name not in pod.stamped],
        [each for each in gathered.templates if name in each.matching],
        name in gathered.models and where(gathered.models[name]) != EVERYWHERE,
    )


def _gone(gathered: PoliciesInForce, pod: LivePod, name: str) -> str:
    if name not in gathered.models:
        return "no policy of that name is in force any more"
    return pod.failed.get(name) or "the pod belongs to no run any more"
