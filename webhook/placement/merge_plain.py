"""Merge independent fields: maps, scalars, affinity lists, topology spread.

nodeSelector, required node affinity and tolerations, which depend on one another, have modules of
their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.placement.fields import PLAIN_MAPS, SCALARS
from webhook.placement.pod import PREFERRED_NODES
from webhook.placement.settings import ListSetting, ScalarSetting, SpreadSetting
from webhook.placement.topology import spread_pair
from webhook.placement.trace import quoted, quoted_both

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.capacity_setting import CapacitySetting
    from webhook.placement.fields import Field
    from webhook.placement.owner_selector import OwnerSelector
    from webhook.placement.pod import PodPlacement
    from webhook.placement.settings import MemberSetting
    from webhook.placement.shapes import Json, JsonObject
    from webhook.placement.trace import Ledger


def merge(
    bundle: Bundle,
    pod: PodPlacement,
    default_priority_class: str,
    selector: OwnerSelector | None,
    ledger: Ledger,
) -> PodPlacement:
    """Merge maps and scalars; `selector` is that of MergeContext."""
    changes: dict[str, Any] = {}
    for field in PLAIN_MAPS:
        if settings := bundle.members.get(field.name):
            owner = selector if field.selected else None
            changes[field.attribute] = _members(field, settings, pod, owner, ledger)
    maxima: list[ScalarSetting] = []
    for setting in bundle.of(ScalarSetting):
        field = SCALARS[setting.name]
        value: str | int = getattr(pod, field.attribute)
        unset = value in field.unwritten(default_priority_class)
        if setting.is_maximum:
            maxima.append(setting)
        elif _applies(field, setting, value, f"has {quoted(value)}", ledger, unset=unset):
            changes[field.attribute] = setting.value
    # After settings that may lower the value; the lowest maximum first, because it meets the
    # others.
    for setting in sorted(maxima, key=lambda maximum: int(maximum.value)):
        field = SCALARS[setting.name]
        pod_value: int = getattr(pod, field.attribute)
        if _lowers(field, setting, pod_value, changes.get(field.attribute, pod_value), ledger):
            changes[field.attribute] = setting.value
    return pod._replace(**changes) if changes else pod


def _members(
    field: Field,
    settings: Sequence[MemberSetting],
    pod: PodPlacement,
    selector: OwnerSelector | None,
    ledger: Ledger,
) -> dict[str, Json]:
    pod_members: dict[str, Json] = getattr(pod, field.attribute)
    result = dict(pod_members)
    for setting in settings:
        value = pod_members.get(setting.key)
        if pod.operating_system and field.system_of(setting.key) not in ("", pod.operating_system):
            reason = f"the API server refuses it for os.name {quoted(pod.operating_system)}"
            ledger.note(setting, "skipped", reason)
            continue
        unset = value is None and not (setting.if_null and pod_members)
        if selector and unset and not _may_add(setting, selector, ledger):
            continue
        has = "has others" if value is None else f"has {quoted(value)}"
        if _applies(field, setting, value, has, ledger, unset=unset):
            result[setting.key] = setting.value
    return result if result != pod_members else pod_members


def _may_add(setting: MemberSetting, selector: OwnerSelector, ledger: Ledger) -> bool:
    """Return whether the pod keeps its owner with this label; record it if not.

    A requirement that cannot be met rejects the pod, as ever: its controller tries again. Without
    any other label the pod can do.
    """
    owner = selector.owner
    if selector.unread:
        unread = f"the selector of {owner} is not read: {selector.unread}"
        if setting.part == "requirements":
            ledger.reject(setting, f"cannot be set: {unread}; create the pod again")
        else:
            ledger.warn(setting, "skipped", f"left out: {unread}")
        return False
    if broken := selector.broken_by(setting.key, str(setting.value)):
        what = f"{quoted(setting.value)} takes the pod out of the selector of {owner} ({broken})"
        end = "its controller would create others without end"
        cure = f"exclude these pods in the policy, or create {owner} again with another selector"
        ledger.reject(setting, f"{what}: {end}; {cure}")
        return False
    return True


def _applies(
    field: Field,
    setting: MemberSetting | ScalarSetting,
    value: Json,
    has: str,
    ledger: Ledger,
    *,
    unset: bool,
) -> bool:
    """Return whether the setting replaces the pod's value; `has` describes that value."""
    if value == setting.value:
        ledger.note(setting, "kept", "the pod already has this value")
        return False
    if unset:
        scalar = isinstance(setting, ScalarSetting)
        ledger.note(setting, "set", str(setting.value) if scalar else quoted(setting.value))
        return True
    if setting.is_default:
        ledger.note(setting, "kept", f"the pod {has}")
        return False
    wanted, pod_value = quoted_both(setting.value, value)
    if setting.part == "requirements":
        ledger.reject(setting, f"must be {wanted}; the pod has {pod_value}")
    elif field.overrides == "reject":
        ledger.reject(setting, f"wants {wanted}; the pod has {pod_value}, {field.why}")
    elif field.overrides == "keep":
        ledger.note(setting, "kept", f"{field.why}: {pod_value}")
    else:
        ledger.note(setting, "set", f"{wanted} instead of {pod_value}")
        return True
    return False


def _lowers(
    field: Field, setting: ScalarSetting, pod_value: int, value: int, ledger: Ledger
) -> bool:
    """Return whether a maximum is set: the pod was sent with `pod_value`, and has `value` now."""
    most = int(setting.value)
    if pod_value > most and pod_value not in field.unwritten(""):
        ledger.reject(setting, f"must be at most {most}; the pod has {pod_value}")
    elif value > most:
        ledger.note(setting, "set", str(most))
        return True
    else:
        ledger.note(setting, "kept", f"{value} is within it")
    return False


def lists(
    bundle: Bundle, pod: PodPlacement, capacity: Sequence[CapacitySetting], ledger: Ledger
) -> dict[str, list[JsonObject]]:
    """Preferred node affinity, pod affinity and anti-affinity; capacity's preferences too."""
    result = pod.lists
    for setting in bundle.of(ListSetting):
        if setting.is_default and pod.lists.get(setting.name):
            ledger.note(setting, "kept", "the pod has a list of its own")
            continue
        result = _appended(result, setting.name, setting.entries)
        _note_list(setting, pod, ledger)
    for settled in capacity:
        if settled.mode.prefers:
            entries = settled.capacity.preferences(settled.weight)
            result = _appended(result, PREFERRED_NODES, entries)
    return result


def _note_list(setting: ListSetting, pod: PodPlacement, ledger: Ledger) -> None:
    pod_entries = pod.lists.get(setting.name, [])
    if all(entry in pod_entries for entry in setting.entries):
        ledger.note(setting, "kept", "the pod already has this value")
    else:
        ledger.note(setting, "set", "appended" if pod_entries else "set")


def _appended(
    lists: dict[str, list[JsonObject]], name: str, entries: Sequence[Any]
) -> dict[str, list[JsonObject]]:
    pod_entries = lists.get(name, [])
    missing: list[JsonObject] = []
    for item in entries:
        if item not in pod_entries and item not in missing:
            missing.append(item)
    return {**lists, name: [*pod_entries, *missing]} if missing else lists


def spread(bundle: Bundle, pod: PodPlacement, ledger: Ledger) -> list[JsonObject]:
    """Topology spread constraints, one for each pair of topologyKey and whenUnsatisfiable."""
    result = pod.topology_spread
    for setting in bundle.of(SpreadSetting):
        if setting.is_default and pod.topology_spread:
            ledger.note(setting, "kept", "the pod has constraints of its own")
            continue
        if setting.constraint in result:
            ledger.note(setting, "kept", "the pod already has this value")
            continue
        pairs = [spread_pair(constraint) for constraint in result]
        if setting.pair in pairs:
            at = pairs.index(setting.pair)
            result = [*result[:at], setting.constraint, *result[at + 1 :]]
            ledger.note(setting, "set", "instead of the pod's own")
        else:
            result = [*result, setting.constraint]
            ledger.note(setting, "set", "appended")
    return result
