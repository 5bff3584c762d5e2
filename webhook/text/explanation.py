"""The explanation of decisions as text: policies, fields, audits, exceptions, and nodes."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

import click

from webhook import names
from webhook.decision.audit import NOT_JUDGED_TEXT
from webhook.decision.decision import TOGETHER
from webhook.decision.stamp import HASH_LENGTH
from webhook.evaluation.result import PolicyAnswer, answers, describe_exception
from webhook.policy.findings import path_text
from webhook.shortening import cut, one_line, shortened
from webhook.text.layout import hanging, section, table
from webhook.text.value_text import setting_text
from webhook.workloads.template import PodTemplate, ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from webhook.decision.decision import Decision
    from webhook.evaluation.replicas import Replicas
    from webhook.evaluation.surveys import Surveys
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import PolicySet

# Reasons that repeat the outcome.
_BARE: Final = ("set", "added", "appended")
# By the result, the outcome of a setting, the answer of a policy, and the state of a live pod.
_COLOURS: Final = {
    **dict.fromkeys(("placed", "set", "applies", "same"), "green"),
    **dict.fromkeys(("left-alone", "not-sent", "not sent", "set aside", "lost"), "yellow"),
    **dict.fromkeys(("dropped", "removed", "otherwise", "would", "unknown"), "yellow"),
    **dict.fromkeys(("rejected", "reject", "refused", "no stamp"), "red"),
    "audit": "cyan",
}
# A word, a policy, and a text.
Row = tuple[str, str, str]
# Of a policy's description the first sentence, up to so many characters.
_SENTENCE: Final = 60
# Of the policies that do not match, so many are listed unless all are asked for.
_MOST_OTHERS: Final = 10
# A condition of many terms is cut: -o json has it whole.
_CONDITION: Final = 200


def styled(rows: Iterable[Row]) -> list[list[str]]:
    """Return rows with their words in colour."""
    return [[in_colour(word), *others] for word, *others in rows]


def in_colour(word: str, text: str = "") -> str:
    """Return the word, or a text about it, in the colour of the word."""
    return click.style(text or word, fg=_COLOURS.get(word))


def lines(replicas: Replicas, policies: PolicySet, *, every: bool) -> Iterator[str]:
    """Yield the explanation of pods with equal decisions; `every` is that of `sections`."""
    yield click.style(f"{replicas.subject}: ", bold=True) + verdict(replicas)
    yield from table(head(replicas), 2)
    for title, rows in sections(replicas, policies, every=every):
        yield from section(title, rows)
    yield from warning_lines(replicas.warnings)


def sections(
    replicas: Replicas, policies: PolicySet, *, every: bool
) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the sections policies, fields, audits and nodes: each a title and its rows, maybe
    none.

    Without `every`, many policies that do not match are a count.
    """
    decision = replicas.decision
    title = f"Policies (set {policies.hash[:HASH_LENGTH]})"
    yield title, styled(_policy_rows(answers(replicas.evaluation), every=every))
    yield fields_title(decision), field_rows(decision.trace)
    audited = styled(audit_lines(replicas, policies))
    yield "If the policies under Audit were enforced", audited
    if nodes := replicas.evaluation.nodes:
        yield f"Nodes: {nodes_text(nodes)}", _nodes(nodes)


def _policy_rows(found: Sequence[PolicyAnswer], *, every: bool) -> Iterator[Row]:
    matching = sum(each.answer != "no" for each in found)
    others = len(found) - matching
    listed = found if every or others <= _MOST_OTHERS else found[:matching]
    yield from ((each.answer, each.name, _why(each)) for each in listed)
    if len(listed) < len(found):
        yield "no", f"{others} others", "do not match: --all lists them, --policy NAME shows one"


def warning_lines(warnings: Sequence[str]) -> Iterator[str]:
    if warnings:
        yield ""
        yield "  " + click.style("Warnings", bold=True)
    for warning in warnings:
        yield from hanging(warning, 6, " " * 4)


def head(replicas: Replicas) -> list[list[str]]:
    """Return where the pods are from, who they are, and why they are rejected."""
    template, decision = replicas.template, replicas.decision
    place = template.source.place(template.path)
    if not template.is_pod:
        place += f" ({path_text(template.path)})"
    rows = [["from", one_line(place)]]
    identity = decision.identity
    if identity is None:
        rows.append(["cure", cure(template)])
    else:
        facts = {
            "run": identity.run or "-",
            "kind": identity.kind,
            "framework": identity.framework or "-",
            "role": identity.role or "-",
            "index": ranges(replicas.replica_indexes, replicas.more) or "-",
            "coordinator": "yes" if identity.coordinator else "no",
            "marked-by": identity.source,
        }
        text = " ".join(f"{key}={value}" for key, value in facts.items())
        rows.append(["identity", one_line(text)])
    return [*rows, *(["because", each] for each in reasons(replicas))]


def reasons(replicas: Replicas) -> Sequence[str]:
    decision = replicas.decision
    own = [decision.reason] if decision.result in ("rejected", "not-sent") else []
    return [each.removeprefix("fairlead: ") for each in (*own, *replicas.refusals)]


def _why(answer: PolicyAnswer) -> str:
    """Return the condition or the reason; of a policy that counts, what it is for, in one
    sentence."""
    if answer.answer in ("no", "set aside"):
        return answer.why
    what = textwrap.shorten(answer.why.partition(". ")[0], _SENTENCE, placeholder=" …")
    return "; ".join(part for part in (what, answer.ended) if part)


def fields_title(decision: Decision) -> str:
    return "Fields" if decision.allowed else "Fields (none is changed)"


def field_rows(trace: Sequence[Entry]) -> list[list[str]]:
    """Return one row per entry; entries of one field are grouped at the first of them."""
    order = {field: at for at, field in enumerate(dict.fromkeys(e.field for e in trace))}
    return styled(
        (entry.outcome, credited_to(entry), f"{entry.field}: {entry.reason}")
        for entry in sorted(trace, key=lambda each: order[each.field])
    )


def _nodes(found: Surveys) -> list[list[str]]:
    survey = found.last
    width = len(str(survey.total))
    texts = [cut(shut.condition, _CONDITION) for shut in survey.shut]
    rows = [
        # Conditions that begin alike are shown whole.
        [f"{len(shut.nodes):{width}}", f"{condition}: {shortened(shut.nodes)}"]
        for shut, text in zip(survey.shut, texts, strict=True)
        for condition in [text if texts.count(text) == 1 else shut.condition]
    ]
    if survey.admitted:
        count = click.style(f"{len(survey.admitted):{width}}", fg="green")
        what = f"open without {found.unread.what}" if found.unread.what else "open to it"
        rows.insert(0, [count, f"{what}: {shortened(survey.admitted)}"])
    return rows


def audit_lines(replicas: Replicas, policies: PolicySet) -> Iterator[Row]:
    """Yield what would change if the policies under Audit were enforced, each alone: word, policy,
    field and value; and all together, if only that changes more.

    This includes settings of enforced policies with another outcome.
    """
    audited = replicas.decision.audited
    if audited is None:
        return
    by_outcome: dict[str, list[str]] = {}
    for policy, effect in audited.notable.items():
        by_outcome.setdefault(effect.outcome, []).append(policy)
        if effect.outcome == "rejects":
            who = "" if policy != TOGETHER else ", ".join(audited.policies)
            yield from (("reject", who or policy, each) for each in effect.rejections)
    for entry in audit_entries(replicas.decision):
        text = f"{entry.field}: {describe_reason(entry, policies)}"
        yield entry.outcome, credited_to(entry), text
    for word, outcome, text in (
        ("same", "same", "nothing would change"),
        ("unknown", "not-judged", NOT_JUDGED_TEXT),
    ):
        if found := by_outcome.get(outcome):
            yield word, ", ".join(found), text


def audit_entries(decision: Decision) -> list[Entry]:
    """Return the new entries of the trace if policies under Audit that change pods were enforced,
    each alone."""
    effects = decision.audited.notable.values() if decision.audited else ()
    changing = (each for each in effects if each.outcome == "changes")
    return [*dict.fromkeys(entry for each in changing for entry in each.new_entries(decision))]


def credited_to(entry: Entry) -> str:
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
    for exception, policies in decision.set_aside.by:
        which = "policy" if len(policies) == 1 else "policies"
        yield f"{which} {', '.join(policies)} set aside: {describe_exception(exception, now)}"


def verdict(replicas: Replicas) -> str:
    """Return what happens to the pods, in a few words, in the colour of the result."""
    if replicas.refusals:
        return in_colour("refused", "the API server refuses it")
    return in_colour(replicas.decision.result, _verdict(replicas.decision))


def result(replicas: Replicas) -> str:
    """Return what happens to the pods, in a word, in its colour."""
    return in_colour("refused" if replicas.refusals else replicas.decision.result)


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
    """Return how many nodes admit the pods, how many did before policies, and what is not known
    of it."""
    last = found.last
    count = str(len(last.admitted))
    if found.none_left:
        count = click.style(count, fg="red")
    text = f"{count} of {last.total} admit the pod"
    if last.admitted and found.not_judged:
        text = f"at most {text} (not judged: {', '.join(found.not_judged)})"
    if found.unread.what:
        return f"unknown, {found.unread.state}; {text} without it"
    if found.on_demand:
        return f"{text} now; class {', '.join(found.on_demand)} creates them on demand"
    if found.after is None:
        return text
    if found.unread_before.what:
        return f"{text}; before is unknown, {found.unread_before.state}"
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
