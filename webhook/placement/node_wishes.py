"""The wishes about what a node's labels must be, whatever field they are written in."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from webhook.placement import node_affinity
from webhook.placement.bundle import Demand
from webhook.placement.wishes import CapacityWish, MemberWish, RequiredWish, Wish

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.placement.bundle import Bundle
    from webhook.placement.shapes import Term

NodeWish: TypeAlias = MemberWish | RequiredWish | CapacityWish


def node_wishes(bundle: Bundle) -> tuple[NodeWish, ...]:
    """Those of a bundle, field by field."""
    return (*bundle.members.get("nodeSelector", ()), *bundle.required, *bundle.capacity)


def condition_of(wish: Wish) -> tuple[Term, ...] | None:
    """The terms of which one must hold; None for a nodeSelector key, or a mode without any."""
    match wish:
        case RequiredWish():
            return wish.terms
        case CapacityWish():
            return wish.condition
    return None


def limits_nodes(wish: Wish) -> bool:
    """Whether the wish asks something of a node's labels."""
    if isinstance(wish, MemberWish):
        return wish.map == "nodeSelector"
    return condition_of(wish) is not None


def keys_of(wish: NodeWish) -> frozenset[str]:
    """The label keys that the wish is about."""
    match wish:
        case MemberWish():
            return frozenset({wish.key})
        case CapacityWish():
            return wish.capacity.keys
    return node_affinity.keys(wish.terms)


def conjoined(
    terms: list[Term] | None, conditions: Iterable[Sequence[Term] | None]
) -> list[Term] | None:
    """`terms` AND every condition that is one; None for no condition. Raises TooManyTerms."""
    for condition in conditions:
        if condition is not None:
            terms = list(condition) if terms is None else node_affinity.narrowed(terms, condition)
    return terms


def with_wishes(base: Demand, wishes: Sequence[NodeWish]) -> Demand:
    """`base` with the conditions of more wishes."""
    if not wishes:
        return base
    members = {w.key: w.value for w in wishes if isinstance(w, MemberWish)}
    return Demand({**base.selector, **members}, conjoined(base.terms, map(condition_of, wishes)))
