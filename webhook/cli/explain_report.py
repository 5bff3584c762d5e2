"""Text and JSON output of `fairlead explain` for decisions."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any, Final

import click

from webhook.admission.stamp import HASH_LENGTH
from webhook.cli.explanation import (
    audit_lines,
    credited_to,
    cure,
    nodes_text,
    verdict,
)
from webhook.cli.layout import hanging, section, table
from webhook.cli.live.focus import Focus
from webhook.evaluation.result import PolicyAnswer, answers, result_of
from webhook.policy.findings import path_text
from webhook.shortening import cut, one_line, shortened
from webhook.workloads.template import ranges

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.admission.decision import Decision
    from webhook.evaluation.replicas import Replicas
    from webhook.evaluation.world import Surveys
    from webhook.placement.trace import Entry
    from webhook.policy.policy_set import PolicySet

# Of a policy's description the first sentence, up to so many characters.
_SENTENCE: Final = 60
# A condition of many terms is cut: -o json has it whole.
_CONDITION: Final = 200
_OUTCOMES = {
    "set": "green",
    "lost": "yellow",
    "dropped": "yellow",
    "removed": "yellow",
    "rejected": "red",
    "reject": "red",
}
_ANSWERS = {"applies": "green", "audit": "cyan", "set aside": "yellow"}
_NOTHING = Focus()


def lines(replicas: Replicas, policies: PolicySet) -> Iterator[str]:
    """Yield the explanation, line by line."""
    yield click.style(f"{replicas.subject}: ", bold=True) + verdict(replicas)
    yield from table(head(replicas), 2)
    for title, rows in sections(replicas, policies):
        yield from section(title, rows)
    yield from warning_lines(replicas.warnings)


def sections(replicas: Replicas, policies: PolicySet) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield the sections policies, fields, audits and nodes: each a title and its rows, maybe
    none."""
    decision = replicas.decision
    rows = [
        [click.style(each.answer, fg=_ANSWERS.get(each.answer)), each.name, _why(each)]
        for each in answers(replicas.evaluation)
    ]
    yield f"Policies (set {policies.hash[:HASH_LENGTH]})", rows
    yield fields_title(decision), field_rows(decision.trace)
    audited = [
        [click.style(word, fg=_OUTCOMES.get(word)), who, text]
        for word, who, text in audit_lines(replicas, policies)
    ]
    yield "If the policies under Audit were enforced", audited
    if found := replicas.evaluation.nodes:
        yield f"Nodes: {nodes_text(found)}", _nodes(found)


def warning_lines(warnings: Sequence[str]) -> Iterator[str]:
    """Yield the warnings under their title; nothing if there are none."""
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
            "index": ranges(replicas.replica_indexes) or "-",
            "coordinator": "yes" if identity.coordinator else "no",
            "marked-by": identity.source,
        }
        text = " ".join(f"{key}={value}" for key, value in facts.items())
        rows.append(["identity", one_line(text)])
    return [*rows, *(["because", each] for each in reasons(replicas))]


def reasons(replicas: Replicas) -> Sequence[str]:
    """Return why the pods are not placed."""
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
    """Return the line above the fields."""
    return "Fields" if decision.allowed else "Fields (none is changed)"


def field_rows(trace: Sequence[Entry]) -> list[list[str]]:
    """Return one row per entry; entries of one field are grouped at the first of them."""
    order = {field: at for at, field in enumerate(dict.fromkeys(e.field for e in trace))}
    return [
        [
            click.style(entry.outcome, fg=_OUTCOMES.get(entry.outcome)),
            credited_to(entry),
            f"{entry.field}: {entry.reason}",
        ]
        for entry in sorted(trace, key=lambda each: order[each.field])
    ]


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
        what = f"open without RuntimeClass {found.unread}" if found.unread else "open to it"
        rows.insert(0, [count, f"{what}: {shortened(survey.admitted)}"])
    return rows


def document(
    decided: Sequence[Replicas], policies: PolicySet, focus: Focus = _NOTHING
) -> dict[str, Any]:
    """Return the explanation of all decisions as JSON; with a focus, lists have what is about
    it."""
    return {
        "set": policies.hash,
        "pods": [replicas_document(replicas, policies, focus) for replicas in decided],
    }


def replicas_document(replicas: Replicas, policies: PolicySet, focus: Focus) -> dict[str, Any]:
    """Return the explanation of one decision."""
    found = result_of(replicas)
    if focus:
        kept = [each for each in found.policies if focus.has_say(each.name, policies)]
        trace = [each for each in found.trace if focus.entry(each, policies)]
        found = found.model_copy(update={"policies": kept, "trace": trace})
    return found.document()
