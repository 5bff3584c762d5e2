"""What is said of live objects, as text for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import click

from webhook.admission.stamp import HASH_LENGTH
from webhook.cli import explain_text
from webhook.cli.layout import shortened, table
from webhook.cli.live import focus as focusing
from webhook.cli.live.judged import LivePod
from webhook.cli.live.makers import controller_of
from webhook.cli.live.unstamped import NO_RUN
from webhook.cli.live.value_text import both_fields, both_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.cli.decisions import Replicas
    from webhook.cli.live.focus import Focus, Row
    from webhook.cli.live.judged import Difference
    from webhook.cli.live.question import Answers, LiveWorkload
    from webhook.cli.live.unstamped import Why
    from webhook.policy.policy_set import PolicySet

_COLOURS: Final = {
    "set": "green",
    "same": "green",
    "lost": "yellow",
    "dropped": "yellow",
    "removed": "yellow",
    "otherwise": "yellow",
    "would": "yellow",
    "no stamp": "red",
    "rejected": "red",
}


def lines(answers: Answers, focus: Focus) -> Iterator[str]:
    """All that was asked, object by object."""
    for number, each in enumerate(answers.found):
        if number:
            yield ""
        if isinstance(each, LivePod):
            yield from _pod(each, answers, focus)
        else:
            yield from _of(each, answers, focus)


def _pod(live: LivePod, answers: Answers, focus: Focus) -> Iterator[str]:
    subject = click.style(f"{live.pod.title} in {live.pod.namespace}", bold=True)
    unstamped = _unstamped(live, answers)
    if focus:
        yield f"{subject}, {focus.title}"
        yield from _rows(focusing.of_pod(live, answers.policies, focus, unstamped))
        return
    yield f"{subject}: {_verdict(live)}"
    yield from table(_head(live), 2)
    today = answers.policies.hash[:HASH_LENGTH]
    yield from explain_text.section(_title(live, today), _then(live, unstamped))
    for title, rows in explain_text.sections(live.today, answers.policies, answers.nodes):
        yield from explain_text.section(f"Today: {title[0].lower()}{title[1:]}", rows)
    yield from explain_text.section("Difference", list(_differences(live.differences)))
    yield from explain_text.warning_lines(live.today.warnings)


def _verdict(live: LivePod) -> str:
    if not live.is_run:
        return "not part of a run: no policy is asked about it"
    if not live.today.decision.allowed:
        return click.style("today it would be rejected", fg="red")
    if live.unstamped:
        return click.style("no policy was applied to it: it has no stamp", fg="red")
    if live.differences:
        count = len(live.differences)
        fields = "1 field differs" if count == 1 else f"{count} fields differ"
        return click.style(f"not as today's policies would have it: {fields}", fg="yellow")
    return click.style("as today's policies would have it", fg="green")


def _head(live: LivePod) -> list[list[str]]:
    metadata = live.pod.metadata
    made = f"the cluster, created {metadata.get('creationTimestamp', 'some time ago')}"
    owner = controller_of(metadata)
    if owner is not None:
        made += f" for {owner.get('kind')}/{owner.get('name')}"
    rows = [["from", made], *explain_text.head(live.today)[1:], ["author", live.origin.said]]
    for policy, unsure in live.origin.unsure:
        text = (
            f"what {policy} gave as {unsure} then is not known any more: it counts as the author's"
        )
        rows.append(["unsure", text])
    return rows


def _title(live: LivePod, today: str) -> str:
    if live.stamp is None:
        return "When it was created"
    then = live.stamp.set_hash
    same = "the same as today" if then == today else "today it is another"
    return f"When it was created (set {then}, {same})"


def _then(live: LivePod, unstamped: Why | None) -> list[list[str]]:
    stamp = live.stamp
    if stamp is None:
        rows = [["no stamp", unstamped.reason], ["cure", unstamped.cure]] if unstamped else []
        return [row for row in rows if row[1]]
    if stamp.left_alone:
        return [["left alone", stamp.left_alone]]
    rows = [
        [policy, ", ".join(fields) or "took part, and has no field to its credit"]
        for policy, fields in stamp.policies.items()
    ]
    rows += [
        [", ".join(policies), f"set aside by the exception {name}"]
        for name, policies in stamp.exceptions.items()
    ]
    return rows or [["nothing", "no policy matched"]]


def _differences(differences: Sequence[Difference]) -> Iterator[list[str]]:
    for each in differences:
        has, text = both_fields(each.field, each.has, each.would)
        yield ["has", ", ".join(each.then), has]
        would = click.style("would", fg="yellow")
        yield [would, ", ".join(each.now), text]
        for why in each.why:
            yield ["why", "", why]


def _of(found: LiveWorkload, answers: Answers, focus: Focus) -> Iterator[str]:
    for number, replicas in enumerate(found.replicas):
        if number:
            yield ""
        if not focus:
            yield from explain_text.lines(replicas, answers.policies, answers.nodes)
            continue
        yield from focused(replicas, answers.policies, focus)
    yield ""
    yield from _live(found, answers, focus)


def focused(replicas: Replicas, policies: PolicySet, focus: Focus) -> Iterator[str]:
    """What becomes of pods, as far as it is about one policy or one field."""
    yield click.style(replicas.subject, bold=True) + f", {focus.title}"
    yield from _rows(focusing.of_replicas(replicas, policies, focus))


def _live(found: LiveWorkload, answers: Answers, focus: Focus) -> Iterator[str]:
    title = click.style(f"Live pods of {found.source.title}", bold=True)
    if not found.pods:
        yield f"{title}: none"
        return
    same = sum(each.same for each in found.pods)
    yield f"{title}: {same} of {len(found.pods)} as new ones would be"
    rows = [
        (group.word, str(len(group.pods)), f"{shortened(group.names)}{group.said}")
        for group in grouped(found.pods, answers, focus)
    ]
    yield from _rows(rows)


def _rows(rows: Sequence[Row] | Iterator[Row]) -> Iterator[str]:
    yield from table(
        [[click.style(word, fg=_COLOURS.get(word)), who, text] for word, who, text in rows], 2
    )


def _unstamped(live: LivePod, answers: Answers) -> Why | None:
    if live.stamp is None and not live.is_run:
        return NO_RUN
    return answers.unstamped.get((live.pod.namespace, live.pod.name))


@dataclass(frozen=True, slots=True)
class Group:
    """Pods that are alike: `word` says how they are, `said` what is told of them."""

    word: str
    said: str
    pods: list[LivePod] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """Their names."""
        return [each.pod.name for each in self.pods]


def grouped(pods: Sequence[LivePod], answers: Answers, focus: Focus) -> list[Group]:
    """The groups, the largest first."""
    groups: dict[tuple[str, str], Group] = {}
    for live in pods:
        key = _said(live, answers, focus)
        groups.setdefault(key, Group(*key)).pods.append(live)
    return sorted(groups.values(), key=lambda each: -len(each.pods))


def _said(live: LivePod, answers: Answers, focus: Focus) -> tuple[str, str]:
    if live.unstamped:
        return "no stamp", f": {answers.unstamped[live.pod.namespace, live.pod.name].reason}"
    if not live.today.decision.allowed:
        return "rejected", ": today they would be"
    differences = [each for each in live.differences if not focus or focus.difference(each)]
    if not differences:
        return "same", ""
    told = []
    for each in differences:
        has, would = both_texts(each.field, each.has, each.would)
        why = f" ({'; '.join(each.why)})" if each.why else ""
        told.append(f"{each.field} is {has}, and would be {would}{why}")
    return "otherwise", f": {'; '.join(told)}"
