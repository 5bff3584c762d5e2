"""Which nodes the wishes of a policy choose, and which of their taints they do not tolerate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.placement import node_affinity
from webhook.placement.tolerations import EXCLUDING_EFFECTS, passing, tolerates
from webhook.placement.wishes import (
    CapacityWish,
    MemberWish,
    RequiredWish,
    TolerationWish,
    Wish,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import Taint, Term, Toleration


def limits_nodes(wish: Wish) -> bool:
    """Whether the wish asks something of a node's labels."""
    match wish:
        case MemberWish():
            return wish.map == "nodeSelector"
        case CapacityWish():
            return wish.condition is not None
    return isinstance(wish, RequiredWish)


def of_class(capacity: CapacityClass, nodes: Iterable[Node]) -> list[Node]:
    """The nodes of a capacity class."""
    return [node for node in nodes if is_of(capacity, node)]


def is_of(capacity: CapacityClass, node: Node) -> bool:
    """Whether a node is of a capacity class."""
    return _meets(capacity.inside, node)


def tolerations_of(wishes: Iterable[Wish]) -> Iterator[Toleration]:
    """What a pod tolerates by the wishes, those about capacity classes among them."""
    for wish in wishes:
        if isinstance(wish, TolerationWish):
            yield wish.toleration
        elif isinstance(wish, CapacityWish) and wish.mode in ("Allow", "Prefer", "Constrain"):
            yield from wish.capacity.tolerations


def untolerated(node: Node, tolerations: Sequence[Toleration]) -> list[Taint]:
    """The lasting taints that keep a pod with these tolerations off the node."""
    return [
        taint
        for taint in node.taints
        if taint.get("effect") in EXCLUDING_EFFECTS
        and not passing(taint)
        and not any(tolerates(toleration, taint) for toleration in tolerations)
    ]


def holds(wish: Wish, node: Node) -> bool:
    """Whether a node's labels meet a wish; one that asks nothing of labels is met."""
    match wish:
        case MemberWish():
            return wish.map != "nodeSelector" or bool(node.labels.get(wish.key) == wish.value)
        case RequiredWish():
            return _meets(wish.terms, node)
        case CapacityWish():
            return wish.condition is None or _meets(wish.condition, node)
    return True


def _meets(terms: Iterable[Term], node: Node) -> bool:
    return node_affinity.holds(terms, node.labels, node.name)
