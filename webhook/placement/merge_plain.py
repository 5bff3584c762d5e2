"""Merging of the fields that stand for themselves: maps, scalars, affinity lists, spread.

nodeSelector, required node affinity and tolerations, which depend on one another, have modules of
their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.placement.fields import PLAIN_MAPS, SCALARS
from webhook.placement.pod import PREFERRED_NODES
from webhook.placement.trace import quoted, quoted_both
from webhook.placement.wishes import spread_pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.fields import Field
    from webhook.placement.ledger import Ledger
    from webhook.placement.merge_capacity import Settled
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Json, JsonObject
    from webhook.placement.wishes import ListWish, MemberWish, ScalarWish


def merge(
    bundle: Bundle, pod: PodPlacement, default_priority_class: str, ledger: Ledger
) -> PodPlacement:
    """The pod with the fields that stand for themselves as the bundle has them."""
    changes: dict[str, Any] = {}
    for field in PLAIN_MAPS:
        if wishes := bundle.members.get(field.name):
            changes[field.attribute] = _members(field, wishes, pod, ledger)
    maxima: list[ScalarWish] = []
    for wish in bundle.scalars:
        field = SCALARS[wish.name]
        if wish.is_maximum:
            maxima.append(wish)
        elif _applies(field, wish, pod, default_priority_class, ledger):
            changes[field.attribute] = wish.value
    # After what may set a lower value, and the lowest first, for it is within the others.
    for wish in sorted(maxima, key=lambda each: int(each.value)):
        field = SCALARS[wish.name]
        own: int = getattr(pod, field.attribute)
        if _lowers(field, wish, own, changes.get(field.attribute, own), ledger):
            changes[field.attribute] = wish.value
    return pod._replace(**changes) if changes else pod


def _members(
    field: Field, wishes: Sequence[MemberWish], pod: PodPlacement, ledger: Ledger
) -> dict[str, Json]:
    own: dict[str, Json] = getattr(pod, field.attribute)
    result = dict(own)
    for wish in wishes:
        value = own.get(wish.key)
        if pod.operating_system and field.system_of(wish.key) not in ("", pod.operating_system):
            reason = f"the API server refuses it for os.name {quoted(pod.operating_system)}"
            ledger.note(wish, "skipped", reason)
        elif value == wish.value:
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
        elif field.overrides == "keep":
            ledger.note(wish, "kept", f"{field.why}: {quoted(value)}")
        else:
            result[wish.key] = wish.value
            wanted, said = quoted_both(wish.value, value)
            ledger.note(wish, "set", f"{wanted} instead of {said}")
    return result if result != own else own


def _applies(
    field: Field, wish: ScalarWish, pod: PodPlacement, default_priority_class: str, ledger: Ledger
) -> bool:
    """Whether the pod's field is set to the wish's value."""
    value: str | int = getattr(pod, field.attribute)
    if value == wish.value:
        ledger.note(wish, "kept", "the pod says so itself")
    elif value in field.unwritten(default_priority_class):
        ledger.note(wish, "set", str(wish.value))
        return True
    elif wish.part == "requirements":
        wanted, said = quoted_both(wish.value, value)
        ledger.reject(wish, f"must be {wanted}; the pod says {said}")
    elif wish.is_default:
        ledger.note(wish, "kept", f"the pod says {quoted(value)}")
    elif field.overrides == "reject":
        wanted, said = quoted_both(wish.value, value)
        what = f"wants {wanted}; the pod says {said}"
        ledger.reject(wish, f"{what}, {field.why}")
    else:
        wanted, said = quoted_both(wish.value, value)
        ledger.note(wish, "set", f"{wanted} instead of {said}")
        return True
    return False


def _lowers(field: Field, wish: ScalarWish, own: int, value: int, ledger: Ledger) -> bool:
    """Whether a maximum is set: the pod came with `own`, and has `value` by now."""
    most = int(wish.value)
    if own > most and own not in field.unwritten(""):
        ledger.reject(wish, f"must be at most {most}; the pod says {own}")
    elif value > most:
        ledger.note(wish, "set", str(most))
        return True
    else:
        ledger.note(wish, "kept", f"{value} is within it")
    return False


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
        if settled.mode.prefers:
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
