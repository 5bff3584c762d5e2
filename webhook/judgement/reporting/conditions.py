"""Compute the conditions Accepted (the object is in force) and Satisfiable (a node meets it).

A set is loaded whole (decision 29): one object with errors keeps all new objects out of force.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.crd.conditions import ConditionUpdate
from webhook.evaluation.plugins import UNREAD
from webhook.judgement.together.effort import UNFINISHED
from webhook.judgement.together.warnings import of_nodes
from webhook.policy.feasibility import Concern, feasibility
from webhook.policy.findings import Kind
from webhook.policy.status_model import CALLED
from webhook.shortening import cut, first_few

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webhook.judgement.set_judgement import SetJudgement
    from webhook.judgement.together.warnings import Budget, Prepared
    from webhook.placement.nodes import Node
    from webhook.policy.feasibility import MatchedNodes
    from webhook.policy.findings import Finding
    from webhook.policy.policy_set import PolicySet
    from webhook.policy.status_model import ObservedObject, Version

ACCEPTED: Final = "Accepted"
# A message has to fit a terminal; the log of the webhook has all of it.
_MOST_FINDINGS: Final = 5
_MOST_NAMED: Final = 3
_MOST_CHARACTERS: Final = 2000
SATISFIABLE: Final = "Satisfiable"
# Its reason if a policy was not checked together with all others.
NOT_CHECKED: Final = "NotChecked"
_MOST_CONCERNS: Final = 5
_NONE_YET: Final = "there is no node now; a class creates them on demand"


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The condition of every object, by place, and the last compiled set.

    conditions: each with the version that it describes
    in_force: the versions in the last good set
    policies: that set; None if unknown, although another process may have compiled one
    faulty:   the places of the objects that keep the newest set from compiling
    ready:    the policies of that set, prepared for checks against each other
    faults:   the errors with which that set is in force
    unchecked: the places of policies that were not checked together with all others
    """

    conditions: Mapping[str, tuple[Version, ConditionUpdate]] = field(default_factory=dict)
    in_force: Mapping[str, Version] = field(default_factory=dict)
    policies: PolicySet | None = None
    faulty: tuple[str, ...] = ()
    ready: Prepared | None = None
    faults: Sequence[Finding] = ()
    unchecked: frozenset[str] = frozenset()


def remembered(objects: Iterable[ObservedObject]) -> Acceptance:
    """Return the last good set by the objects' own statuses, for a process that starts."""
    in_force = {
        observed_object.place: observed_object.version
        for observed_object in objects
        for condition in observed_object.status.conditions
        if condition.type == ACCEPTED
        and condition.status == "True"
        and condition.observed_generation == observed_object.generation
    }
    return Acceptance(in_force=in_force)


def judge_objects(
    judge: Callable[[Mapping[str, bytes]], SetJudgement],
    objects: Mapping[str, ObservedObject],
    before: Acceptance,
    newer: Callable[[Mapping[str, bytes]], Mapping[str, str]] = lambda _: {},
) -> Acceptance:
    """Judge the objects as they are now. `judge` is like Objects.judged.

    newer: what objects have, by place, that only later versions know.
    """
    versions = {place: observed_object.version for place, observed_object in objects.items()}
    judgement = judge({place: observed_object.text for place, observed_object in objects.items()})
    findings = _by_place(judgement.findings)
    if judgement.policies is None:
        faulty = tuple(
            place
            for place, place_findings in findings.items()
            if place in objects and any(finding.severity == "error" for finding in place_findings)
        )
        later = newer({place: objects[place].text for place in faulty})
        conditions = {
            place: (
                observed_object.version,
                _while_refused(observed_object, findings.get(place, ()), faulty, before, later),
            )
            for place, observed_object in objects.items()
        }
        return replace(before, conditions=conditions, faulty=faulty)
    conditions = {
        place: (observed_object.version, _in_force(findings.get(place, ())))
        for place, observed_object in objects.items()
    }
    faults = [finding for finding in judgement.findings if finding.is_fault]
    unchecked = frozenset(
        finding.file for finding in judgement.findings if finding.kind is Kind.NOT_CHECKED
    )
    return Acceptance(
        conditions, versions, judgement.policies, (), judgement.ready, faults, unchecked
    )


def _in_force(findings: Sequence[Finding]) -> ConditionUpdate:
    """Return the condition of an object that the webhook uses, errors first."""
    faults = [finding for finding in findings if finding.is_fault]
    others = [finding for finding in findings if not finding.is_fault]
    reason = "AcceptedWithErrors" if faults else "Accepted"
    return ConditionUpdate(ACCEPTED, "True", reason, _listed([*faults, *others]))


def _while_refused(
    observed: ObservedObject,
    findings: Sequence[Finding],
    faulty: Sequence[str],
    before: Acceptance,
    later: Mapping[str, str],
) -> ConditionUpdate:
    errors = [finding for finding in findings if finding.severity == "error"]
    in_force = before.in_force.get(observed.place) == observed.version
    if later and (observed.place in later or not errors) and not in_force:
        shown = first_few([f"{place} ({parts})" for place, parts in later.items()], _MOST_NAMED)
        return ConditionUpdate(
            ACCEPTED,
            "Unknown",
            "OlderController",
            f"the leading controller is older than {shown}: it does not know whether the webhook "
            "serves this set; upgrade the controller",
        )
    if errors:
        unknown = all(error.path.endswith("].class") for error in errors)
        reason = "UnknownClass" if unknown else f"Invalid{CALLED[observed.resource].title()}"
        held = "; until this is fixed the last good set stays in force"
        return ConditionUpdate(ACCEPTED, "False", reason, _listed(errors) + held)
    if in_force:
        return ConditionUpdate(ACCEPTED, "True", "Accepted", _listed(findings))
    return ConditionUpdate(
        ACCEPTED,
        "False",
        "RefusedSet",
        "it is valid, but not in force: the last good set stays in force until "
        f"{first_few(faulty, _MOST_NAMED)} is fixed",
    )


def _by_place(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    findings_by_place: dict[str, list[Finding]] = {}
    for finding in findings:
        findings_by_place.setdefault(finding.file, []).append(finding)
    return findings_by_place


def _listed(findings: Sequence[Finding]) -> str:
    """Return the findings without their place, which is the object that has the status."""
    texts = [finding.text for finding in findings[:_MOST_FINDINGS]]
    more = len(findings) - len(texts)
    text = "; ".join([*texts, f"and {more} more"] if more else texts)
    return cut(text, _MOST_CHARACTERS)


def satisfaction(
    accepted: Acceptance, nodes: Sequence[Node] | None, budget: Budget
) -> Mapping[str, ConditionUpdate]:
    """Return the condition of each policy and class of a set, by place: `placementpolicies/spot`.

    `nodes` is None if they are not known. The number of matching nodes is not reported, because it
    changes with every node. Without a set there is no condition.
    """
    if accepted.policies is None:
        return {}
    ready, unchecked = accepted.ready, set(accepted.unchecked)
    beside = [*of_nodes(ready, nodes, budget)] if ready and nodes else []
    unchecked |= {finding.file for finding in beside if finding.kind is Kind.NOT_CHECKED}
    update_by_place = _by_nodes(accepted.policies, nodes, ready, beside)
    for place in unchecked:
        if update_by_place[place].status != "False":
            update_by_place[place] = ConditionUpdate(
                SATISFIABLE, "Unknown", NOT_CHECKED, UNFINISHED
            )
    return {**update_by_place, **_by_faults(accepted.faults)}


def _by_faults(faults: Sequence[Finding]) -> Mapping[str, ConditionUpdate]:
    of_objects = (Kind.SHIPS_ALREADY, Kind.TOO_LARGE)
    return {
        place: ConditionUpdate(
            SATISFIABLE,
            "False",
            place_faults[0].kind.title().replace("-", ""),
            "; ".join(fault.text for fault in place_faults[:_MOST_CONCERNS]),
        )
        for place, place_faults in _by_place(
            fault for fault in faults if fault.kind not in of_objects
        ).items()
    }


def _by_nodes(
    policies: PolicySet,
    nodes: Sequence[Node] | None,
    ready: Prepared | None,
    beside: Sequence[Finding],
) -> dict[str, ConditionUpdate]:
    if not nodes:
        return dict.fromkeys(_places(policies), _unknown(nodes))
    inputs = ready.inputs if ready else UNREAD
    node_feasibility = feasibility(policies, nodes, inputs.runtime_classes, inputs.devices)
    concerns: dict[str, list[Concern]] = {}
    for concern in node_feasibility.concerns:
        concerns.setdefault(_place(concern.kind, concern.name), []).append(concern)
    for finding in beside:
        if finding.kind is Kind.NOT_CHECKED:
            continue
        name = finding.file.partition("/")[2]
        concern = Concern(
            names.POLICY_KIND, name, (), finding.message, finding.severity, finding.kind
        )
        concerns.setdefault(finding.file, []).append(concern)
    # Of the shares of a split, the one with the fewest nodes.
    whole = [reach for reach in node_feasibility.reaches if reach.is_whole]
    whole.sort(key=lambda reach: reach.tolerated or 0, reverse=True)
    audited = {
        _place(names.POLICY_KIND, policy.name)
        for policy in policies.policies
        if not policy.enforced
    }
    return {
        place: _condition(reach, concerns.get(place, []), audited=place in audited)
        for reach in whole
        for place in (_place(reach.kind, reach.name),)
    }


def _condition(
    reach: MatchedNodes, concerns: Sequence[Concern], *, audited: bool
) -> ConditionUpdate:
    wrong = [concern for concern in concerns if concern.severity == "error"]
    message = "; ".join(concern.message for concern in (wrong or concerns)[:_MOST_CONCERNS])
    none = reach.chosen == 0 or (reach.chosen is not None and reach.tolerated == 0)
    if audited and none and concerns and not wrong:
        return ConditionUpdate(SATISFIABLE, "Unknown", "NotEnforced", message)
    depends = [concern.message for concern in concerns if concern.about is Kind.PLUGIN_TOLERATES]
    if depends and not wrong:
        return ConditionUpdate(SATISFIABLE, "Unknown", "DependsOnPlugin", depends[0])
    if wrong or (reach.chosen == 0 and concerns):
        kind = Kind.NO_NODE if reach.chosen == 0 else wrong[0].about
        reason = "NoNode" if kind is Kind.NO_NODE else "TaintsNotTolerated"
        return ConditionUpdate(SATISFIABLE, "False", reason, message)
    if reach.chosen == 0:
        # Who knows of the class knows that its nodes are made on demand.
        return ConditionUpdate(SATISFIABLE, "True", "MadeOnDemand", _NONE_YET)
    if reach.chosen is None:
        return ConditionUpdate(SATISFIABLE, "True", "AsksForNoNode", message)
    return ConditionUpdate(SATISFIABLE, "True", "NodesFound", message)


def _unknown(nodes: Sequence[Node] | None) -> ConditionUpdate:
    if nodes is None:
        return ConditionUpdate(
            SATISFIABLE, "Unknown", "NodesNotKnown", "the nodes could not be listed yet"
        )
    return ConditionUpdate(SATISFIABLE, "Unknown", "NoNodes", "there is no node in the cluster")


def _places(policies: PolicySet) -> list[str]:
    return [
        *(_place(names.POLICY_KIND, policy.name) for policy in policies.policies),
        *(_place(names.CLASS_KIND, name) for name in policies.classes),
    ]


def _place(kind: str, name: str) -> str:
    return f"{names.POLICY_RESOURCES[kind]}/{name}"
