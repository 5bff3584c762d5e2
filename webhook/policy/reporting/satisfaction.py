"""Whether some node meets what an object requires: the condition Satisfiable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.crd.conditions import Said
from webhook.policy.feasibility import feasibility

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.nodes import Node
    from webhook.policy.feasibility import Concern, Reach
    from webhook.policy.policy_set import PolicySet

SATISFIABLE: Final = "Satisfiable"
_MOST_CONCERNS: Final = 5
_NONE_YET: Final = "no node is there at this moment; a class says that they are made on demand"


def satisfaction(policies: PolicySet, nodes: Sequence[Node] | None) -> Mapping[str, Said]:
    """What is to be said of each policy and class of a set, by place: `placementpolicies/spot`.

    `nodes` is None where they are not known. Of nodes that are met no number is told: it would be
    another with every node that comes or goes.
    """
    if not nodes:
        return dict.fromkeys(_places(policies), _unknown(nodes))
    found = feasibility(policies, nodes)
    concerns: dict[str, list[Concern]] = {}
    for concern in found.concerns:
        concerns.setdefault(_place(concern.kind, concern.name), []).append(concern)
    return {
        _place(reach.kind, reach.name): _said(
            reach, concerns.get(_place(reach.kind, reach.name), [])
        )
        for reach in found.reaches
        if not reach.part
    }


def _said(reach: Reach, concerns: Sequence[Concern]) -> Said:
    wrong = [each for each in concerns if each.severity == "error"]
    message = "; ".join(each.message for each in (wrong or concerns)[:_MOST_CONCERNS])
    if reach.chosen == 0 and concerns:
        return Said(SATISFIABLE, "False", "NoNode", message)
    if wrong:
        return Said(SATISFIABLE, "False", "TaintsNotTolerated", message)
    if reach.chosen == 0:
        # Who knows of the class knows that its nodes are made on demand.
        return Said(SATISFIABLE, "True", "MadeOnDemand", _NONE_YET)
    if reach.chosen is None:
        return Said(SATISFIABLE, "True", "AsksForNoNode", message)
    return Said(SATISFIABLE, "True", "NodesFound", message)


def _unknown(nodes: Sequence[Node] | None) -> Said:
    if nodes is None:
        return Said(SATISFIABLE, "Unknown", "NodesNotKnown", "the nodes could not be listed yet")
    return Said(SATISFIABLE, "Unknown", "NoNodes", "there is no node in the cluster")


def _places(policies: PolicySet) -> list[str]:
    return [
        *(_place(names.POLICY_KIND, each.name) for each in policies.policies),
        *(_place(names.CLASS_KIND, name) for name in policies.classes),
    ]


def _place(kind: str, name: str) -> str:
    return f"{names.POLICY_RESOURCES[kind]}/{name}"
