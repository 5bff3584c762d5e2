"""The explanation of a decision: the result of each policy, audits, exceptions, and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from webhook import names
from webhook.cli.live.value_text import setting_text
from webhook.evaluation.result import describe_exception

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from webhook.admission.decision import Decision
    from webhook.evaluation.replicas import Replicas
    from webhook.evaluation.world import Surveys
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import PolicySet
    from webhook.workloads.template import PodTemplate

# Reasons that repeat the outcome.
_BARE: Final = ("set", "added", "appended")
_COLOURS = {
    "placed": "green",
    "rejected": "red",
    "refused": "red",
    "left-alone": "yellow",
    "not-sent": "yellow",
}


def audit_lines(replicas: Replicas, policies: PolicySet) -> Iterator[tuple[str, str, str]]:
    """Yield what would change if the policies under Audit were enforced: word, policy, field and
    value.

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
    """Return the entries of the trace that would be new if the policies under Audit were
    enforced."""
    trace = decision.audited.trace if decision.audited else ()
    return [entry for entry in trace if entry not in decision.trace]


def credited_to(entry: Entry) -> str:
    """Return the policy and part of an entry of the trace."""
    return f"{entry.policy}, {entry.part}" if entry.policy else "the pod itself"


def describe_reason(entry: Entry, policies: PolicySet) -> str:
    """Return the reason of an entry, with the value of the setting if the reason does not have
    it."""
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


def exception_lines(decision: Decision, now: datetime | None) -> Iterator[str]:
    """Yield a line for each exception that took policies away."""
    for exception, policies in decision.set_aside.by:
        which = "policy" if len(policies) == 1 else "policies"
        yield f"{which} {', '.join(policies)} set aside: {describe_exception(exception, now)}"


def verdict(replicas: Replicas) -> str:
    """Return what happens to the pods, in a few words, in the colour of the result."""
    if replicas.refusals:
        return click.style("the API server refuses it", fg="red")
    return click.style(_verdict(replicas.decision), fg=_COLOURS.get(replicas.decision.result))


def result(replicas: Replicas) -> str:
    """Return what happens to the pods, in a word, in its colour."""
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


def nodes_text(found: Surveys) -> str:
    """Return how many nodes admit the pods, and how many did before policies."""
    last = found.last
    count = str(len(last.admitted))
    if found.none_left:
        count = click.style(count, fg="red")
    text = f"{count} of {last.total} admit the pod"
    if found.unread:
        return f"unknown, RuntimeClass {found.unread} is not read; {text} without it"
    if found.on_demand:
        return f"{text} now; class {', '.join(found.on_demand)} creates them on demand"
    if found.after is None:
        return text
    if found.unread_before:
        return f"{text}; before is unknown, RuntimeClass {found.unread_before} is not read"
    if found.after.admitted == found.before.admitted:
        return f"{text}, the same as before"
    return f"{text}, {len(found.before.admitted)} did before"


def took_part(decision: Decision) -> list[str]:
    """Return the policies that were applied; `(not in full)` if a setting has no effect."""
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
    """Return how to make pods without a run part of one."""
    if template.source.is_labelled and not template.is_pod:
        return (
            f"the label {names.RUN} is on the {template.source.kind} itself; put it into "
            f"{template.labels_path}"
        )
    return f"to make it part of a run, put the label {names.RUN}: NAME into {template.labels_path}"
