"""Merging of tolerations: removal by Prevent, the order for eviction, then what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.placement.capacity import names_taint
from webhook.placement.tolerations import NO_EXECUTE, covered, covers, joined, normal, with_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.ledger import Ledger
    from webhook.placement.merge import MergeContext
    from webhook.placement.merge_capacity import Settled
    from webhook.placement.pod import PodPlacement
    from webhook.placement.settings import TolerationSetting
    from webhook.placement.shapes import Toleration


def merge(
    bundle: Bundle,
    pod: PodPlacement,
    capacity: Sequence[Settled],
    context: MergeContext,
    ledger: Ledger,
) -> list[Toleration]:
    """The pod's tolerations under the bundle and the capacity modes that apply."""
    own = _without_prevented(bundle, pod.tolerations, capacity, context, ledger)
    result = with_seconds(own, bundle.specific) if bundle.specific else own
    for setting in bundle.tolerations:
        result = _with_setting(setting, result, own, context.default_toleration_seconds, ledger)
    for settled in capacity:
        if settled.mode.tolerates and settled.capacity.taints:
            result = joined(result, settled.capacity.tolerations)
    return pod.tolerations if result == pod.tolerations else result


def _filled_in(toleration: Toleration, seconds: Mapping[str, int]) -> bool:
    """Whether it is what the DefaultTolerationSeconds admission plugin puts into every pod."""
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
    capacity: Sequence[Settled],
    context: MergeContext,
    ledger: Ledger,
) -> list[Toleration]:
    """Tolerations that name a prevented class's taints, and no other class's, go."""
    wanted = [setting.toleration for setting in bundle.tolerations]
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
    own: Sequence[Toleration],
    seconds: Mapping[str, int],
    ledger: Ledger,
) -> list[Toleration]:
    """`result` with one setting in it; `own` is what the pod brought, and keeps."""
    toleration = setting.toleration
    if setting.is_default:
        if setting.if_null and not all(_filled_in(t, seconds) for t in own):
            ledger.note(setting, "kept", "the pod has tolerations of its own")
            return result
        # Where it stands already a second one of the API server's default is the author's own, and
        # taking its place would make every call change one more.
        for at, other in enumerate(result if toleration not in result else ()):
            same_key = other.get("key") == toleration.get("key")
            if same_key and _filled_in(other, seconds) and covers(toleration, other):
                ledger.note(setting, "set", "instead of the API server's default")
                return [*result[:at], toleration, *result[at + 1 :]]
    if toleration in own:
        ledger.note(setting, "kept", "the pod says so itself")
    elif not covered(toleration, own):
        ledger.note(setting, "set", "added")
    elif not setting.is_default and normal(toleration).effect == NO_EXECUTE:
        ledger.note(setting, "set", "put before what tolerates the same taint")
    else:
        ledger.note(setting, "kept", "the pod tolerates it already")
    return result if covered(toleration, result) else [*result, toleration]
