"""The explanation of a decision: the result of each policy, audits, exceptions, and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import click

from webhook import names
from webhook.admission.arrival import keeps_placement
from webhook.admission.engine import subject_of
from webhook.cli.live.value_text import setting_text
from webhook.placement import pod as pods
from webhook.shortening import harmless
from webhook.times import format_span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from webhook.admission.arrival import Arrival
    from webhook.admission.decision import Decision
    from webhook.evaluation.replicas import Replicas
    from webhook.placement.trace import Entry
    from webhook.policy.exceptions import PolicyException
    from webhook.policy.policy_set import Policy, PolicySet
    from webhook.policy.subject import Subject
    from webhook.workloads.template import PodTemplate

# applies: it was applied; audit: it would be applied; set aside: it matches, but is not applied;
# no: it does not match.
Answer: TypeAlias = Literal["applies", "audit", "set aside", "no"]
# Reasons that repeat the outcome.
_BARE: Final = ("set", "added", "appended")
_ORDER: tuple[Answer, ...] = ("applies", "audit", "set aside", "no")
_COLOURS = {
    "placed": "green",
    "rejected": "red",
    "refused": "red",
    "left-alone": "yellow",
    "not-sent": "yellow",
}


class PolicyAnswer(NamedTuple):
    """What one policy does to the pods; `why` is the condition that fails, or a reason.

    `ended` names exceptions that would set it aside if they had not ended.
    """

    name: str
    priority: int
    answer: Answer
    why: str
    ended: str = ""


def answers(replicas: Replicas, policies: PolicySet) -> list[PolicyAnswer]:
    """The answer of every policy, in their order, those that match first.

    Empty for pods without a run, and for pods that are not sent to the webhook.
    """
    decision, arrival = replicas.decision, replicas.arrival
    if decision.identity is None or decision.result == "not-sent":
        return []
    subject = subject_of(arrival, pods.parse_pod(arrival.pod), decision.identity, policies)
    found = [
        answer_of(at, decision, arrival, subject, policies) for at in range(len(policies.policies))
    ]
    return sorted(found, key=lambda each: _ORDER.index(each.answer))


def answer_of(
    at: int, decision: Decision, arrival: Arrival, subject: Subject, policies: PolicySet
) -> PolicyAnswer:
    """The answer of the policy at this position, for a decision on a pod of a run."""
    policy = policies.policies[at]
    answer: Answer = "no"
    if policy.name in decision.policies:
        answer, why = "applies", policy.description
        if fields := decision.unfulfilled.get(policy.name):
            why = f"without effect: {', '.join(fields)}"
    elif decision.audited and policy.name in decision.audited.policies:
        answer, why = "audit", _audited(policy, arrival.namespace)
    elif failed := policy.failed(subject):
        why = failed
    else:
        answer, why = "set aside", _aside(at, decision, arrival, policies)
    remark = "; ".join(exception_reasons(decision, policy.name, arrival.now))
    if policy.name in decision.set_aside.policies:
        answer, why, remark = "set aside", remark, ""
    return PolicyAnswer(policy.name, policy.priority, answer, why, remark)


def _audited(policy: Policy, namespace: str) -> str:
    if not policy.enforced:
        return policy.description
    return f"it is not rolled out to the namespace {namespace} yet"


def _aside(at: int, decision: Decision, arrival: Arrival, policies: PolicySet) -> str:
    """Why a policy that matches is not applied, in the order of the engine's steps."""
    if decision.result == "left-alone":
        return "it matches, but the pod is left alone"
    if not decision.allowed and not decision.trace:
        return "it matches, but the pod is rejected before policies are applied"
    if keeps := keeps_placement(arrival, pods.parse_pod(arrival.pod)):
        return f"it matches, but it requires nothing, and the pod is {keeps}"
    system = policies.systems.get(at)
    nodes = f"nodes that run {system[1]}" if system else "another operating system"
    return f"it matches, but it is for {nodes}"


def audit_lines(replicas: Replicas, policies: PolicySet) -> Iterator[tuple[str, str, str]]:
    """What would change if the policies under Audit were enforced: word, policy, field and value.

    This includes settings of enforced policies with another outcome.
    """
    audited = replicas.decision.audited
    if audited is None:
        return
    if not audited.differs:
        yield "same", ", ".join(audited.policies), "nothing would change"
    elif audited.rejections:
        yield from (("reject", "", rejection) for rejection in audited.rejections)
    else:
        for entry in audit_entries(replicas.decision):
            yield (
                entry.outcome,
                credited_to(entry),
                f"{entry.field}: {describe_reason(entry, policies)}",
            )


def audit_entries(decision: Decision) -> list[Entry]:
    """The entries of the trace that would be new if the policies under Audit were enforced."""
    trace = decision.audited.trace if decision.audited else ()
    return [entry for entry in trace if entry not in decision.trace]


def credited_to(entry: Entry) -> str:
    """The policy and part of an entry of the trace."""
    return f"{entry.policy}, {entry.part}" if entry.policy else "the pod itself"


def describe_reason(entry: Entry, policies: PolicySet) -> str:
    """The reason of an entry, with the value of the setting if the reason does not have it."""
    if entry.outcome != "set":
        return entry.reason
    values = [
        text
        for policy in policies.policies
        if policy.name == entry.policy
        for setting in policy.settings
        if (setting.part, setting.field) == (entry.part, entry.field)
        if (text := setting_text(setting))
    ]
    if not values:
        return entry.reason
    remark = "" if entry.reason in _BARE else f" ({entry.reason})"
    return f"{'; '.join(values)}{remark}"


def exception_reasons(decision: Decision, policy: str, now: datetime | None) -> Iterator[str]:
    """Why the policy takes no part, or that it would have taken none; nothing in most cases."""
    for exception, policies in decision.set_aside.by:
        if policy in policies:
            yield _describe_exception(exception, now)
    for exception, policies in decision.set_aside.ended:
        if policy in policies:
            yield f"exception {exception.name} would have set it aside; it {period(exception, now)}"


def period(exception: PolicyException, now: datetime | None) -> str:
    """When it ends or has ended: `until 2026-12-01T18:00:00Z (in 3h)`, `ended 2d ago`."""
    if now is None:
        return f"until {exception.end}"
    left = (exception.until - now).total_seconds()
    if left > 0:
        return f"until {exception.end} (in {format_span(left)})"
    return f"ended {format_span(-left)} ago"


def exception_lines(decision: Decision, now: datetime | None) -> Iterator[str]:
    """A line for each exception that took policies away."""
    for exception, policies in decision.set_aside.by:
        which = "policy" if len(policies) == 1 else "policies"
        yield f"{which} {', '.join(policies)} set aside: {_describe_exception(exception, now)}"


def _describe_exception(exception: PolicyException, now: datetime | None) -> str:
    return f"exception {exception.name} {period(exception, now)}: {harmless(exception.reason)}"


def exception_documents(decision: Decision) -> list[dict[str, Any]]:
    """All of them as JSON: those in force, then those that have ended."""
    return [
        {
            "name": exception.name,
            "inForce": in_force,
            "until": exception.end,
            "reason": exception.reason,
            "policies": list(policies),
        }
        for in_force, taken in ((True, decision.set_aside.by), (False, decision.set_aside.ended))
        for exception, policies in taken
    ]


def verdict(replicas: Replicas) -> str:
    """What happens to the pods, in a few words, in the colour of the result."""
    if replicas.refusals:
        return click.style("the API server refuses it", fg="red")
    return click.style(_verdict(replicas.decision), fg=_COLOURS.get(replicas.decision.result))


def result(replicas: Replicas) -> str:
    """What happens to the pods, in a word, in its colour."""
    word = "refused" if replicas.refusals else replicas.decision.result
    return click.style(word, fg=_COLOURS.get(word))


def _verdict(decision: Decision) -> str:
    match decision.result:
        case "placed":
            return f"placed by {', '.join(took_part(decision)) or 'its own request'}"
        case "unchanged" if decision.policies:
            return f"unchanged: {_as_requested(decision)}"
        case "unchanged" if decision.set_aside.by:
            return "unchanged: exceptions set aside every policy that matches"
        case "unchanged" if decision.audited:
            return "unchanged: no enforced policy matches"
        case "unchanged":
            return "unchanged: no policy matches"
        case "left-alone":
            return f"left alone: {decision.reason}"
        case "rejected":
            return "rejected"
        case "not-sent":
            return "not sent to the webhook: unchanged"
    return "not part of a run: unchanged"


def took_part(decision: Decision) -> list[str]:
    """The policies that were applied; `(not in full)` if a setting has no effect."""
    unfulfilled = decision.unfulfilled
    return [f"{name} (not in full)" if name in unfulfilled else name for name in decision.policies]


def _as_requested(decision: Decision) -> str:
    unfulfilled = decision.unfulfilled
    whole = [name for name in decision.policies if name not in unfulfilled]
    lines = [f"the pod already has what {', '.join(whole)} sets"] if whole else []
    lines += [
        f"{', '.join(fields)} of {name} {'has' if len(fields) == 1 else 'have'} no effect"
        for name, fields in unfulfilled.items()
    ]
    return "; ".join(lines)


def cure(template: PodTemplate) -> str:
    """How to make pods without a run part of one."""
    if template.source.is_labelled and not template.is_pod:
        return (
            f"the label {names.RUN} is on the {template.source.kind} itself; put it into "
            f"{template.labels_path}"
        )
    return f"to make it part of a run, put the label {names.RUN}: NAME into {template.labels_path}"
