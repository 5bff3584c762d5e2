"""Which nodes the wishes of a policy choose, and which of their taints they do not tolerate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.placement import node_affinity
from webhook.placement.node_wishes import condition_of
from webhook.placement.tolerations import EXCLUDING_EFFECTS, passing, tolerates
from webhook.placement.wishes import CapacityWish, MemberWish, TolerationWish, Wish

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import Taint, Term, Toleration


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
        elif isinstance(wish, CapacityWish) and wish.mode.tolerates:
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
    if isinstance(wish, MemberWish):
        return wish.map != "nodeSelector" or bool(node.labels.get(wish.key) == wish.value)
    condition = condition_of(wish)
    return condition is None or _meets(condition, node)


def _meets(terms: Iterable[Term], node: Node) -> bool:
    return node_affinity.holds(terms, node.labels, node.name)
