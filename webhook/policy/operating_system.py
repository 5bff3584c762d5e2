"""The operating system of a policy's nodes, and of a pod.

Defaults and overrides of a policy for Linux nodes do not apply to a Windows pod, and vice versa.
Requirements always apply. Source: the label
kubernetes.io/os, and v1.PodOS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook import names
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.placement_setting import PARTS, PlacementSetting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Term


def of_pod(pod: PodPlacement) -> str | None:
    """Return the pod's system, from its os, its nodeSelector, or all terms of its required
    affinity.
    """
    return (
        pod.operating_system
        or pod.node_selector.get(names.OS_LABEL)
        or (_of_terms(pod.required) if pod.required else None)
    )


def required_system(settings: Iterable[PlacementSetting]) -> tuple[int, str] | None:
    """Return the first system that the settings name, and the rank of its part (0:
    requirements)."""
    systems: list[tuple[int, str]] = []
    for setting in settings:
        system = _system_of(setting)
        if system is not None:
            systems.append((PARTS.index(setting.part), system))
    return min(systems, default=None)


def _system_of(setting: PlacementSetting) -> str | None:
    # Prevent says where nodes are not.
    if isinstance(setting, CapacitySetting) and setting.mode.excludes:
        return None
    return _of_terms(setting.node_terms or ())


def _of_terms(terms: Sequence[Term]) -> str | None:
    """Return the one operating system that every term names, or None."""
    systems = {_of_term(term) for term in terms}
    return systems.pop() if len(systems) == 1 else None


def _of_term(term: Term) -> str | None:
    for requirement in term.get("matchExpressions") or ():
        values = requirement.get("values") or []
        if (requirement.get("key"), requirement.get("operator")) == (names.OS_LABEL, "In"):
            return values[0] if len(values) == 1 else None
    return None


def other_system(
    matched: tuple[int, ...], systems: Mapping[int, tuple[int, str]], pod: PodPlacement
) -> tuple[int, ...]:
    """Return the matched policies, by position, whose nodes run another system than the pod.

    `systems` has the result of `required_system` for each policy that names one. If the pod names
    none, the policy that is first in the fold decides for all.
    """
    named = [(systems[at], at) for at in matched if at in systems]
    if not named:
        return ()
    wanted = of_pod(pod)
    if wanted is None:
        (_, wanted), _ = min(named, key=lambda item: (item[0][0], item[1]))
    return tuple([at for at in matched if at in systems and systems[at][1] != wanted])
