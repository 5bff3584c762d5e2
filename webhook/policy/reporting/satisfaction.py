"""Whether some node meets what an object requires: the condition Satisfiable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.crd.conditions import Said
from webhook.policy.feasibility import feasibility
from webhook.policy.findings import Kind
from webhook.policy.set_judgement import MOST_LOOKS_AT_NODES
from webhook.policy.together.nodeless import nodeless

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.nodes import Node
    from webhook.policy.feasibility import Concern, Reach
    from webhook.policy.findings import Finding
    from webhook.policy.policy_set import PolicySet
    from webhook.policy.together.policy_view import Policy

SATISFIABLE: Final = "Satisfiable"
_MOST_CONCERNS: Final = 5
_NONE_YET: Final = "no node is there at this moment; a class says that they are made on demand"


def satisfaction(
    policies: PolicySet,
    nodes: Sequence[Node] | None,
    ready: Sequence[Policy] = (),
    faults: Sequence[Finding] = (),
) -> Mapping[str, Said]:
    """What is to be said of each policy and class of a set, by place: `placementpolicies/spot`.

    `nodes` is None where they are not known. Of nodes that are met no number is told: it would be
    another with every node that comes or goes. `faults` hold whatever nodes there are. `ready` are
    the policies, to be held against the nodes together.
    """
    return {**_by_nodes(policies, nodes, ready), **_by_faults(faults)}


def _by_faults(faults: Sequence[Finding]) -> Mapping[str, Said]:
    by_place: dict[str, list[Finding]] = {}
    for each in faults:
        by_place.setdefault(each.file, []).append(each)
    return {
        place: Said(
            SATISFIABLE,
            "False",
            found[0].kind.title().replace("-", ""),
            "; ".join(each.text for each in found[:_MOST_CONCERNS]),
        )
        for place, found in by_place.items()
    }


def _by_nodes(
    policies: PolicySet, nodes: Sequence[Node] | None, ready: Sequence[Policy]
) -> Mapping[str, Said]:
    if not nodes:
        return dict.fromkeys(_places(policies), _unknown(nodes))
    found = feasibility(policies, nodes)
    together = nodeless(ready, ready, policies.classes, nodes, MOST_LOOKS_AT_NODES)
    concerns: dict[str, list[Concern]] = {}
    for concern in (*found.concerns, *together):
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
    found = any(each.about is not Kind.NOT_CHECKED for each in concerns)
    if wrong or (reach.chosen == 0 and found):
        kind = Kind.NO_NODE if reach.chosen == 0 else wrong[0].about
        reason = "NoNode" if kind is Kind.NO_NODE else "TaintsNotTolerated"
        return Said(SATISFIABLE, "False", reason, message)
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
