"""Merge the tolerations of a bundle into a pod, and judge the pod's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.placement import plugin_tolerations
from webhook.placement.capacity import names_taint
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.settings import AllowedSetting, TolerationSetting
from webhook.placement.tolerations import (
    NO_EXECUTE,
    covered,
    covers,
    joined,
    normal,
    pattern_of,
    with_seconds,
)
from webhook.placement.trace import QUOTE_LIMIT
from webhook.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.merge import MergeContext
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Toleration
    from webhook.placement.trace import Ledger


def merge(
    bundle: Bundle,
    pod: PodPlacement,
    capacity: Sequence[CapacitySetting],
    context: MergeContext,
    ledger: Ledger,
) -> list[Toleration]:
    """Return the pod's tolerations under the bundle and the capacity modes that apply."""
    tolerations = _without_prevented(bundle, pod.tolerations, capacity, context, ledger)
    result = with_seconds(tolerations, bundle.specific) if bundle.specific else tolerations
    # Most bundles have no such setting, and most pods have tolerations that others added.
    has_own = any(setting.if_null for setting in bundle.of(TolerationSetting)) and _any_own(
        tolerations, context
    )
    for setting in bundle.of(TolerationSetting):
        if setting.if_null and has_own:
            ledger.note(setting, "kept", "the pod has tolerations of its own")
            continue
        result = _with_setting(setting, result, tolerations, context.facts.seconds, ledger)
    for settled in capacity:
        if settled.mode.tolerates and settled.capacity.taints:
            result = joined(result, settled.capacity.tolerations)
    return pod.tolerations if result == pod.tolerations else result


def allowed(
    bundle: Bundle,
    pod: PodPlacement,
    asked: Sequence[CapacitySetting],
    context: MergeContext,
    ledger: Ledger,
) -> PodPlacement:
    """Return the pod without the tolerations that requirements take away; others reject it.

    What policies add is allowed, so that a pod which they have placed may be sent again, and what
    plugins and controllers add. A team's policy adds only what a pod's author could have. A class
    for which the author asks adds tolerations by the author's word.
    """
    adding = (*bundle.of(TolerationSetting), *bundle.of(CapacitySetting))
    given = [pattern_of(t) for setting in adding if not setting.of_team for t in setting.tolerated]
    not_own = plugin_tolerations.added(context.facts)

    def others(tolerations: Sequence[Toleration], setting: AllowedSetting) -> list[Toleration]:
        patterns = (*setting.patterns, *given)
        return [
            toleration
            for toleration in tolerations
            if not any(pattern.allows(toleration) for pattern in patterns)
            and not plugin_tolerations.is_given(toleration, not_own)
        ]

    left = pod.tolerations
    for setting in bundle.of(AllowedSetting):
        wrong = others(left, setting)
        may = setting.describe_allowed
        if wrong and setting.remove and not pod.node_name:
            ledger.warn(setting, "removed", f"takes away {_shown(wrong)}; {may}")
            ledger.removed[setting.policy] = _patterns(wrong)
            left = [toleration for toleration in left if toleration not in wrong]
        elif wrong:
            cure = plugin_tolerations.cure_of(wrong, not_own) or "remove it"
            ledger.reject(setting, f"the pod tolerates {_shown(wrong)}: {cure}; {may}")
        else:
            ledger.note(setting, "kept", "the pod tolerates nothing else")
        for capacity in asked:
            if capacity.mode.tolerates and (
                wrong := others(capacity.capacity.tolerations, setting)
            ):
                request = f"annotation {capacity.capacity.name}={capacity.mode}"
                ledger.reject(setting, f"{request} adds {_shown(wrong)}: remove it; {may}")
    return pod if left == pod.tolerations else pod._replace(tolerations=left)


def _shown(tolerations: Sequence[Toleration]) -> str:
    """Return what they are about, each once: spot=true:NoSchedule, gpu."""
    return cut(", ".join(_patterns(tolerations)), QUOTE_LIMIT)


def _patterns(tolerations: Sequence[Toleration]) -> list[str]:
    return list(dict.fromkeys(str(pattern_of(toleration)) for toleration in tolerations))


def _any_own(tolerations: Sequence[Toleration], context: MergeContext) -> bool:
    """Return whether the pod's author has written one of them."""
    not_own = plugin_tolerations.added(context.facts)
    return any(plugin_tolerations.is_own(toleration, not_own) for toleration in tolerations)


def _filled_in(toleration: Toleration, seconds: Mapping[str, int]) -> bool:
    """Return whether it is what the DefaultTolerationSeconds admission plugin puts into every
    pod."""
    key = toleration.get("key") or ""
    return (
        toleration.get("operator") == "Exists"
        and toleration.get("effect") == NO_EXECUTE
        and key in seconds
        and toleration.get("tolerationSeconds") == seconds[key]
    )


def _without_prevented(
    bundle: Bundle,
    tolerations: list[Toleration],
    capacity: Sequence[CapacitySetting],
    context: MergeContext,
    ledger: Ledger,
) -> list[Toleration]:
    """Remove tolerations for the taints of a prevented class, unless another class has them."""
    wanted = [setting.toleration for setting in bundle.of(TolerationSetting)]
    result = tolerations
    for settled in capacity:
        if not settled.mode.excludes or not settled.capacity.taints:
            continue
        of_others = [
            taint
            for other in context.classes.values()
            if other.name != settled.capacity.name
            for taint in other.taints
        ]
        taints = settled.capacity.taints
        goes = [
            names_taint(t, taints) and not names_taint(t, of_others) and t not in wanted
            for t in result
        ]
        gone = {str(t.get("key")) for t, leaves in zip(result, goes, strict=True) if leaves}
        for key in sorted(gone):
            what = f"{settled.capacity.name}={settled.mode}"
            ledger.warn_pod(f"tolerations[{key}]", "removed", what)
        if gone:
            result = [t for t, leaves in zip(result, goes, strict=True) if not leaves]
    return result


def _with_setting(
    setting: TolerationSetting,
    result: list[Toleration],
    tolerations: Sequence[Toleration],
    seconds: Mapping[str, int],
    ledger: Ledger,
) -> list[Toleration]:
    """Return `result` with one setting merged in; `tolerations` are the pod's own tolerations."""
    toleration = setting.toleration
    if setting.is_default:
        # If the toleration is already present, a second default is the author's own. Replacing it
        # would change one more with every call.
        for at, other in enumerate(result if toleration not in result else ()):
            same_key = other.get("key") == toleration.get("key")
            if same_key and _filled_in(other, seconds) and covers(toleration, other):
                ledger.note(setting, "set", "instead of the API server's default")
                return [*result[:at], toleration, *result[at + 1 :]]
    if toleration in tolerations:
        ledger.note(setting, "kept", "the pod already has this value")
    elif not covered(toleration, tolerations):
        ledger.note(setting, "set", "added")
    elif not setting.is_default and normal(toleration).effect == NO_EXECUTE:
        ledger.note(setting, "set", "put before what tolerates the same taint")
    else:
        ledger.note(setting, "kept", "the pod tolerates it already")
    return result if covered(toleration, result) else [*result, toleration]
