"""Whether a pod gets no node of a class because of its author's own terms.

Then it is no fallback that the class is given up: the author would get out of an override by
contradicting it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.placement import node_affinity
from webhook.placement.nodes import admits, closed_to, work
from webhook.placement.on_demand import could_make
from webhook.shortening import cut

if TYPE_CHECKING:
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.node_groups import NodeGroups
    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Toleration

# Comparisons of the author's terms with groups of nodes, some 30 ms. The author chooses how many
# terms there are; each of 10,000 nodes is a group if they name the labels of nodes by host.
MOST_LOOKS: Final = 100_000
# Characters of a term in a message.
_TERM_MAX_CHARACTERS: Final = 200
_ALL: Final[list[Toleration]] = [{"operator": "Exists"}]


def why_none_fits(placement: PodPlacement, capacity: CapacityClass, groups: NodeGroups) -> str:
    """Return why the class has no node for the author's own terms; empty if that is not the cause.

    It is the cause if the class has nodes, or an autoscaler for them, no such node meets the
    author's nodeSelector, nodeName and required affinity, and a node outside of the class does.
    Taints, sizes and free room are not compared: policies tolerate the taints of a class, and a
    pod that is too large for the nodes that are left waits for others.
    """
    terms = placement._replace(tolerations=_ALL)
    looks = MOST_LOOKS // work(terms)
    inside: list[Node] = []
    others = False
    for count, group in enumerate(groups.groups_for(terms, capacity.keys), 1):
        node = group.node
        if count > looks:
            return f"the Run's own terms are too long to be compared with class {capacity.name}"
        fits = admits(terms, node)
        if node_affinity.holds(capacity.inside, node.labels, node.name):
            if fits:
                return ""
            inside.append(node)
        else:
            others = others or fits
    if not others:
        return ""
    if capacity.autoscaled:
        if could_make(terms, capacity, inside):
            return ""
    elif not inside:
        return ""
    excluding = {obstacle.condition for node in inside if (obstacle := closed_to(terms, node))}
    what = (
        cut(min(excluding), _TERM_MAX_CHARACTERS)
        if excluding
        else "nodeSelector or required affinity"
    )
    return (
        f"no node of class {capacity.name} meets the Run's own {what}, and nodes outside of the "
        "class do"
    )
