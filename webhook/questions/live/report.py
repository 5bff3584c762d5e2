"""Text and JSON output about live objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from webhook.decision.stamp import HASH_LENGTH
from webhook.questions.live import focus as focusing
from webhook.questions.live.answer_text import answer_of_live_pods, answer_of_pod
from webhook.questions.live.missing_stamp import Why, why_unstamped
from webhook.run.controller_reference import controller_of
from webhook.shortening import one_line, shortened
from webhook.text import explanation
from webhook.text.layout import aligned, section, titled
from webhook.text.value_text import both_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.evaluation.replicas import Replicas
    from webhook.policy.policy_set import PolicySet
    from webhook.questions.live.focus import Focus
    from webhook.questions.live.live_pods import Answer, Answers, Difference, LivePod
    from webhook.text.explanation import Row


def lines(answers: Answers, focus: Focus) -> Iterator[str]:
    for number, answer in enumerate(answers.answers):
        if number:
            yield ""
        if answer.is_pod:
            yield from _pod(answer.pods[0], answers, focus)
        else:
            yield from _workload_lines(answer, answers, focus)


def _pod(live: LivePod, answers: Answers, focus: Focus) -> Iterator[str]:
    subject = one_line(f"{live.pod.title} in {live.pod.namespace}")
    unstamped = why_unstamped(live, answers.world)
    if focus:
        yield f"{click.style(subject, bold=True)}, {focus.title}"
        yield from aligned(
            explanation.styled(focusing.of_pod(live, answers.policies, focus, unstamped)), 2
        )
        return
    colour = explanation.colour_of("no stamp" if live.unstamped else live.state)
    yield from titled(subject, answer_of_pod(live), colour)
    yield from aligned(_head(live), 2)
    title = "When it was created"
    if live.stamp:
        then = live.stamp.set_hash
        today = answers.policies.hash_in(live.pod.namespace)[:HASH_LENGTH]
        same = "same as today" if then == today else "today's set differs"
        title += f" (set {then}, {same})"
    yield from section(title, _stamp_lines(live, unstamped))
    for title, rows in explanation.sections(live.today, answers.policies, every=focus.every):
        yield from section(f"Today: {title[0].lower()}{title[1:]}", rows)
    yield from section("Difference", explanation.styled(_differences(live.differences)))
    yield from explanation.warning_lines(live.today.warnings)


def _head(live: LivePod) -> list[list[str]]:
    metadata = live.pod.metadata
    made = f"the cluster, created {metadata.get('creationTimestamp', 'some time ago')}"
    owner = controller_of(live.pod.value)
    if owner is not None:
        made += f" for {owner.get('kind')}/{owner.get('name')}"
    rows = [["from", made], *explanation.head(live.today)[1:], ["author", live.origin.evidence]]
    for policy, unsure in live.origin.unsure:
        text = (
            f"the values that {policy} set in {unsure} are unknown now; they are treated as the "
            "author's"
        )
        rows.append(["unsure", text])
    return rows


def _stamp_lines(live: LivePod, unstamped: Why | None) -> list[list[str]]:
    stamp = live.stamp
    if stamp is None:
        rows = [["no stamp", unstamped.reason], ["cure", unstamped.cure]] if unstamped else []
        return [row for row in rows if row[1]]
    if stamp.left_alone:
        return [["left alone", stamp.left_alone]]
    rows = [[policy, ", ".join(focusing.credited(stamp, policy))] for policy in stamp.policies]
    rows += [
        [", ".join(policies), f"set aside by the exception {name}"]
        for name, policies in stamp.exceptions.items()
    ]
    return rows or [["nothing", "no policy matched"]]


def _differences(differences: Sequence[Difference]) -> Iterator[Row]:
    for difference in differences:
        has, would = both_fields(difference.field, difference.has, difference.would)
        yield "has", ", ".join(difference.then), has
        yield "would", ", ".join(difference.now), would
        yield from (("why", "", why) for why in difference.why)


def _workload_lines(answer: Answer, answers: Answers, focus: Focus) -> Iterator[str]:
    source = answer.source
    title = one_line(f"Live pods of {source.title} in {source.namespace}")
    yield from titled(title, answer_of_live_pods(answer))
    yield from focused_lines(answer.replicas, answers.policies, focus)
    yield from section("Live pods", [*_live(answer, answers, focus)])


def focused_lines(decided: Iterable[Replicas], policies: PolicySet, focus: Focus) -> Iterator[str]:
    """Yield the explanations, or the selected part of each, an empty line between two."""
    for number, replicas in enumerate(decided):
        if number:
            yield ""
        yield from _focused(replicas, policies, focus)


def _focused(replicas: Replicas, policies: PolicySet, focus: Focus) -> Iterator[str]:
    """Yield the explanation, or the part of it that is selected."""
    if not focus:
        yield from explanation.lines(replicas, policies, every=focus.every)
        return
    yield click.style(replicas.subject, bold=True) + f", {focus.title}"
    yield from aligned(explanation.styled(focusing.of_replicas(replicas, policies, focus)), 2)


def _live(answer: Answer, answers: Answers, focus: Focus) -> Iterator[list[str]]:
    yield from explanation.styled(
        (word, str(len(names)), f"{shortened(names)}{detail}")
        for (word, detail), names in _grouped(answer.pods, answers, focus)
    )


def _grouped(
    pods: Sequence[LivePod], answers: Answers, focus: Focus
) -> list[tuple[tuple[str, str], list[str]]]:
    """Return a word and a detail for each group of equal pods, and their names; the largest
    first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for live in pods:
        groups.setdefault(_describe_difference(live, answers, focus), []).append(live.pod.name)
    return sorted(groups.items(), key=lambda item: -len(item[1]))


def _describe_difference(live: LivePod, answers: Answers, focus: Focus) -> tuple[str, str]:
    if live.unstamped and (why := why_unstamped(live, answers.world)):
        return "no stamp", f": {why.reason}"
    if live.state != "otherwise":
        return live.state, live.reason and f": {live.reason}"
    differences = [
        str(difference)
        for difference in live.differences
        if not focus or focus.difference(difference)
    ]
    return ("otherwise", f": {'; '.join(differences)}") if differences else ("same", "")


def document(answers: Answers, focus: Focus) -> dict[str, Any]:
    """Return the answers as JSON. With a focus, lists only have entries about it."""
    return {
        "set": answers.policies.hash,
        "same": answers.same,
        "objects": [
            _pod_document(answer.pods[0], answers, focus)
            if answer.is_pod
            else _workload_document(answer, answers, focus)
            for answer in answers.answers
        ],
    }


def _workload_document(answer: Answer, answers: Answers, focus: Focus) -> dict[str, Any]:
    return {
        "object": answer.source.title,
        "namespace": answer.source.namespace,
        "answer": answer_of_live_pods(answer),
        "same": answer.same,
        "today": [focus.document(replicas, answers.policies) for replicas in answer.replicas],
        "pods": [_pod_document(pod, answers, focus) for pod in answer.pods],
    }


def _pod_document(live: LivePod, answers: Answers, focus: Focus) -> dict[str, Any]:
    unstamped = why_unstamped(live, answers.world) if live.unstamped else None
    differences = [
        difference for difference in live.differences if not focus or focus.difference(difference)
    ]
    return {
        "object": live.pod.title,
        "namespace": live.pod.namespace,
        "answer": answer_of_pod(live),
        "same": live.same,
        "author": live.origin.evidence,
        "unsure": live.origin.unsure,
        "stamp": live.stamp.whole if live.stamp else None,
        "unstamped": unstamped.reason if unstamped else None,
        "today": focus.document(live.today, answers.policies),
        "differences": differences,
    }
