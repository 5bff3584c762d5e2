"""Which policy is to be credited with which field of a pod's final placement.

A function of the final pod and the policies, never of who came first: a policy is credited with a
field if the pod holds there what the policy wished. So a second call on our own output credits the
same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.placement import node_affinity
from webhook.placement.fields import MAPS
from webhook.placement.pod import PREFERRED_NODES
from webhook.placement.tolerations import covered
from webhook.placement.wishes import (
    CapacityWish,
    ListWish,
    MemberWish,
    RequiredWish,
    ScalarWish,
    SpreadWish,
    TolerationWish,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Term
    from webhook.placement.wishes import Wish


def credits_of(
    policies: Iterable[str], wishes: Iterable[Wish], final: PodPlacement
) -> dict[str, list[str]]:
    """For each of the policies the fields that it is credited with, sorted, none twice."""
    result: dict[str, list[str]] = {policy: [] for policy in policies}
    for wish in wishes:
        if holds(wish, final) and wish.field not in result[wish.policy]:
            result[wish.policy].append(wish.field)
    for fields in result.values():
        fields.sort()
    return result


def holds(wish: Wish, final: PodPlacement) -> bool:
    """Whether the pod has what the wish asks for."""
    match wish:
        case MemberWish():
            members = getattr(final, MAPS[wish.map].attribute)
            return wish.key in members and bool(members[wish.key] == wish.value)
        case ScalarWish():
            if getattr(final, wish.row.attribute) != wish.value:
                return False
            # A maximum is given only where it is less than what the API server fills in.
            return not wish.is_maximum or int(wish.value) < int(wish.row.silent)
        case TolerationWish():
            return wish.toleration in final.tolerations
        case RequiredWish():
            return _required(wish.terms, final)
        case ListWish():
            own = final.lists.get(wish.name, ())
            return all(item in own for item in wish.entries)
        case SpreadWish():
            return wish.constraint in final.topology_spread
        case CapacityWish():
            return _capacity(wish, final)
    raise TypeError(wish)


def _required(terms: Sequence[Term], final: PodPlacement) -> bool:
    own = [term for term in final.required or () if not node_affinity.is_empty(term)]
    return bool(own) and all(node_affinity.implied(own, terms))


def _capacity(wish: CapacityWish, final: PodPlacement) -> bool:
    terms = wish.condition
    if wish.mode.does_nothing or (terms is not None and not _required(terms, final)):
        return False
    if wish.mode.prefers:
        own = final.lists.get(PREFERRED_NODES, ())
        if not all(item in own for item in wish.capacity.preferences(wish.weight)):
            return False
    tolerations = wish.capacity.tolerations if wish.mode.tolerates else ()
    return all(covered(each, final.tolerations) for each in tolerations)
