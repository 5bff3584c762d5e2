"""The explanation of decisions as text: policies, fields, audits, exceptions, and nodes."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

import click

from webhook import names
from webhook.decision.decision import TOGETHER
from webhook.decision.stamp import HASH_LENGTH
from webhook.evaluation.answer import answer_of, word_of
from webhook.evaluation.result import PolicyAnswer, answers, describe_exception
from webhook.policy.findings import path_text
from webhook.shortening import cut, one_line, shortened
from webhook.text.layout import aligned, hanging, section, titled
from webhook.text.value_text import setting_text
from webhook.workloads.template import PodTemplate, ranges

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from webhook.decision.decision import Decision
    from webhook.evaluation.evaluation import Evaluation
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
    **dict.fromkeys(("rejected", "reject", "refused", "no node", "no stamp"), "red"),
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


def in_colour(word: str) -> str:
    return click.style(word, fg=_COLOURS.get(word))


def colour_of(word: str) -> str | None:
    """Return the colour of a result, an outcome or a state; None if it has none."""
    return _COLOURS.get(word)


def lines(replicas: Replicas, policies: PolicySet, *, every: bool) -> Iterator[str]:
    """Yield the explanation of pods with equal decisions; `every` is that of `sections`."""
    yield from first_line(replicas)
    yield from aligned(head(replicas), 2)
    for title, rows in sections(replicas, policies, every=every):
        yield from section(title, rows)
    yield from warning_lines(replicas.warnings)


def first_line(replicas: Replicas, subject: str = "") -> Iterator[str]:
    """Yield the answer about the pods, after their subject."""
    yield from titled(
        subject or replicas.subject, answer_of(replicas), colour_of(word_of(replicas))
    )


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
        yield "Nodes", _nodes(nodes)


def _policy_rows(policy_answers: Sequence[PolicyAnswer], *, every: bool) -> Iterator[Row]:
    matching = sum(policy_answer.answer != "no" for policy_answer in policy_answers)
    others = len(policy_answers) - matching
    listed = policy_answers if every or others <= _MOST_OTHERS else policy_answers[:matching]
    yield from (
        (policy_answer.answer, policy_answer.name, _why(policy_answer)) for policy_answer in listed
    )
    if len(listed) < len(policy_answers):
        yield "no", f"{others} others", "do not match: --all lists them, --policy NAME shows one"


def warning_lines(warnings: Sequence[str]) -> Iterator[str]:
    if warnings:
        yield ""
        yield "  " + click.style("Warnings", bold=True)
    for warning in warnings:
        yield from hanging(warning, 6, " " * 4)


def head(replicas: Replicas) -> list[list[str]]:
    """Return where the pods are from, and who they are."""
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
    return rows


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
        for entry in sorted(trace, key=lambda entry: order[entry.field])
    )


def _nodes(surveys: Surveys) -> list[list[str]]:
    survey = surveys.last
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
        what = f"open without {surveys.unread.what}" if surveys.unread.what else "open to it"
        rows.insert(0, [count, f"{what}: {shortened(survey.admitted)}"])
    return rows


def audit_lines(replicas: Replicas, policies: PolicySet) -> Iterator[Row]:
    """Yield what would change if the policies under Audit were enforced, each alone: word, policy,
    field and value; and all together, if only that changes more.

    This includes settings of enforced policies with another outcome.
    """
    audited = replicas.evaluation.audited
    if audited is None:
        return
    silent: dict[tuple[str, str], list[str]] = {}
    for policy, effect in audited.notable.items():
        if effect.outcome == "same":
            silent.setdefault(("same", "nothing would change"), []).append(policy)
        elif effect.unknown:
            silent.setdefault(("unknown", f"not judged: {effect.unknown}"), []).append(policy)
        if effect.outcome == "rejects":
            who = "" if policy != TOGETHER else ", ".join(audited.policies)
            yield from (("reject", who or policy, rejection) for rejection in effect.rejections)
    for entry in audit_entries(replicas.evaluation):
        text = f"{entry.field}: {describe_reason(entry, policies)}"
        yield entry.outcome, credited_to(entry), text
    yield from (
        (word, ", ".join(policy_names), text) for (word, text), policy_names in silent.items()
    )


def audit_entries(evaluation: Evaluation) -> list[Entry]:
    """Return the new entries of the trace if policies under Audit that change pods were enforced,
    each alone."""
    effects = evaluation.audited.notable.values() if evaluation.audited else ()
    changing = (
        effect for effect in effects if effect.outcome in ("changes", "not-judged") or effect.nodes
    )
    return [
        *dict.fromkeys(e for effect in changing for e in effect.new_entries(evaluation.decision))
    ]


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


def cure(template: PodTemplate) -> str:
    """Return how to make pods without a run part of one."""
    if template.source.is_labelled and not template.is_pod:
        return (
            f"the label {names.RUN} is on the {template.source.kind} itself; put it into "
            f"{template.labels_path}"
        )
    return (
        f"to make it part of a run, put the label {names.RUN}: NAME into {template.labels_path}, "
        f"or {names.PLACE}: all on its namespace"
    )
