"""Merging of the fields that stand for themselves: maps, scalars, affinity lists, spread.

nodeSelector, required node affinity and tolerations, which depend on one another, have modules of
their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook import names
from webhook.placement.pod import PREFERRED_NODES
from webhook.placement.trace import quoted, quoted_both
from webhook.placement.wishes import spread_pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.ledger import Ledger
    from webhook.placement.merge_capacity import Settled
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Json, JsonObject
    from webhook.placement.wishes import ListWish, MemberWish, ScalarWish


def merge(
    bundle: Bundle, pod: PodPlacement, default_priority_class: str, ledger: Ledger
) -> PodPlacement:
    """Labels, annotations, securityContext, and the three class names."""
    changes: dict[str, Any] = {}
    if wishes := bundle.members.get("labels"):
        changes["labels"] = _members(wishes, pod.labels, ledger, change=False)
    if wishes := bundle.members.get("annotations"):
        changes["annotations"] = _members(wishes, pod.annotations, ledger)
    if wishes := _of_system(bundle, pod, ledger):
        changes["security_context"] = _members(wishes, pod.security_context, ledger)
    for wish in bundle.scalars:
        attribute, change = _scalar(wish, pod, default_priority_class, ledger)
        if change:
            changes[attribute] = wish.value
    return pod._replace(**changes) if changes else pod


# The members of a pod's securityContext that the API server takes for either operating system;
# windowsOptions are for Windows, all others for Linux (core/validation: ValidateOS).
_ANY_SYSTEM = frozenset({"runAsNonRoot"})


def _of_system(bundle: Bundle, pod: PodPlacement, ledger: Ledger) -> tuple[MemberWish, ...]:
    """The securityContext wishes that a pod of its operating system may have at all."""
    result = []
    for wish in bundle.members.get("securityContext", ()):
        meant = "windows" if wish.key == "windowsOptions" else "linux"
        if wish.key in _ANY_SYSTEM or pod.operating_system in ("", meant):
            result.append(wish)
        else:
            reason = f"the API server refuses it for os.name {quoted(pod.operating_system)}"
            ledger.note(wish, "skipped", reason)
    return tuple(result)


def _members(
    wishes: Sequence[MemberWish], own: dict[str, Json], ledger: Ledger, *, change: bool = True
) -> dict[str, Json]:
    result = dict(own)
    for wish in wishes:
        value = own.get(wish.key)
        if value == wish.value:
            ledger.note(wish, "kept", "the pod says so itself")
        elif value is None and not (wish.if_null and own):
            result[wish.key] = wish.value
            ledger.note(wish, "set", quoted(wish.value))
        elif wish.part == "requirements":
            wanted, said = quoted_both(wish.value, value)
            ledger.reject(wish, f"must be {wanted}; the pod says {said}")
        elif wish.is_default:
            says = "has others" if value is None else f"says {quoted(value)}"
            ledger.note(wish, "kept", f"the pod {says}")
        elif change:
            result[wish.key] = wish.value
            wanted, said = quoted_both(wish.value, value)
            ledger.note(wish, "set", f"{wanted} instead of {said}")
        else:
            ledger.note(wish, "kept", f"a label that is there is never changed: {quoted(value)}")
    return result if result != own else own


_ATTRIBUTES = {
    "priorityClassName": "priority_class_name",
    "schedulerName": "scheduler_name",
    "runtimeClassName": "runtime_class_name",
}


def _scalar(
    wish: ScalarWish, pod: PodPlacement, default_priority_class: str, ledger: Ledger
) -> tuple[str, bool]:
    """The attribute that the wish is about, and whether it is set."""
    attribute = _ATTRIBUTES[wish.name]
    value: str = getattr(pod, attribute)
    # What the API server filled in is nobody's word.
    filled_in = {
        "priorityClassName": default_priority_class,
        "schedulerName": names.DEFAULT_SCHEDULER,
    }.get(wish.name)
    if value == wish.value:
        ledger.note(wish, "kept", "the pod says so itself")
    elif not value or value == filled_in:
        ledger.note(wish, "set", wish.value)
        return attribute, True
    elif wish.part == "requirements":
        ledger.reject(wish, f"must be {quoted(wish.value)}; the pod says {quoted(value)}")
    elif wish.is_default:
        ledger.note(wish, "kept", f"the pod says {quoted(value)}")
    elif wish.name == "runtimeClassName":
        ledger.reject(
            wish,
            f"wants {quoted(wish.value)}; the pod says {quoted(value)},"
            " whose overhead is in the pod already",
        )
    else:
        ledger.note(wish, "set", f"{quoted(wish.value)} instead of {quoted(value)}")
        return attribute, True
    return attribute, False


def lists(
    bundle: Bundle, pod: PodPlacement, capacity: Sequence[Settled], ledger: Ledger
) -> dict[str, list[JsonObject]]:
    """Preferred node affinity, pod affinity and anti-affinity; capacity's preferences too."""
    result = pod.lists
    for wish in bundle.lists:
        if wish.is_default and pod.lists.get(wish.name):
            ledger.note(wish, "kept", "the pod has a list of its own")
            continue
        result = _appended(result, wish.name, wish.entries)
        _note_list(wish, pod, ledger)
    for settled in capacity:
        if settled.mode == "Prefer":
            entries = settled.capacity.preferences(settled.weight)
            result = _appended(result, PREFERRED_NODES, entries)
    return result


def _note_list(wish: ListWish, pod: PodPlacement, ledger: Ledger) -> None:
    own = pod.lists.get(wish.name, [])
    if all(entry in own for entry in wish.entries):
        ledger.note(wish, "kept", "the pod says so itself")
    else:
        ledger.note(wish, "set", "appended" if own else "set")


def _appended(
    lists: dict[str, list[JsonObject]], name: str, entries: Sequence[Any]
) -> dict[str, list[JsonObject]]:
    own = lists.get(name, [])
    missing: list[JsonObject] = []
    for item in entries:
        if item not in own and item not in missing:
            missing.append(item)
    return {**lists, name: [*own, *missing]} if missing else lists


def spread(bundle: Bundle, pod: PodPlacement, ledger: Ledger) -> list[JsonObject]:
    """Topology spread constraints, of which each (topologyKey, whenUnsatisfiable) stands once."""
    result = pod.topology_spread
    for wish in bundle.spread:
        if wish.is_default and pod.topology_spread:
            ledger.note(wish, "kept", "the pod has constraints of its own")
            continue
        if wish.constraint in result:
            ledger.note(wish, "kept", "the pod says so itself")
            continue
        pairs = [spread_pair(constraint) for constraint in result]
        if wish.pair in pairs:
            at = pairs.index(wish.pair)
            result = [*result[:at], wish.constraint, *result[at + 1 :]]
            ledger.note(wish, "set", "instead of the pod's own")
        else:
            result = [*result, wish.constraint]
            ledger.note(wish, "set", "appended")
    return result
