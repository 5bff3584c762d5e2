"""The explanation of decisions as JSON for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook.admission.audit import report
from webhook.cli import excepted
from webhook.cli.explained import answers, surveys
from webhook.cli.live.focus import Focus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.admission.decision import Audited
    from webhook.cli.decisions import Replicas
    from webhook.placement.nodes import Node, Survey
    from webhook.policy.policy_set import PolicySet

_NOTHING = Focus()


def document(
    decided: Sequence[Replicas],
    policies: PolicySet,
    nodes: Sequence[Node] | None,
    focus: Focus = _NOTHING,
) -> dict[str, Any]:
    """The explanation of all decisions as JSON; with a focus, lists have what is about it."""
    return {
        "set": policies.hash,
        "pods": [of_replicas(replicas, policies, nodes, focus) for replicas in decided],
    }


def of_replicas(
    replicas: Replicas, policies: PolicySet, nodes: Sequence[Node] | None, focus: Focus
) -> dict[str, Any]:
    """The explanation of one decision."""
    template, decision = replicas.template, replicas.decision
    result: dict[str, Any] = {
        "object": template.source.title,
        "namespace": replicas.arrival.namespace,
        "pods": replicas.pods,
        "count": replicas.count,
        "indexes": list(replicas.indexes),
        "place": template.source.place(template.path),
        "identity": decision.identity._asdict() if decision.identity else None,
        "result": decision.result,
        "reason": decision.reason,
        "policies": [
            each._asdict()
            for each in answers(replicas, policies)
            if not focus or focus.has_say(each.name, policies)
        ],
        "trace": [entry._asdict() for entry in decision.trace if focus.entry(entry, policies)],
        "audited": _audited(decision.audited) if decision.audited else None,
        "exceptions": excepted.document(decision),
        "warnings": list(replicas.warnings),
        "patch": list(decision.patch),
    }
    if nodes is not None:
        found = surveys(replicas, nodes, policies)
        result["nodes"] = {
            "before": _survey(found.before),
            "after": _survey(found.after) if found.after else None,
            "onDemand": list(found.on_demand),
        }
    return result


def _audited(audited: Audited) -> dict[str, Any]:
    return {**report(audited), "trace": [entry._asdict() for entry in audited.trace]}


def _survey(survey: Survey) -> dict[str, Any]:
    return {
        "admitted": list(survey.admitted),
        "shut": [shut._asdict() for shut in survey.shut],
    }
