"""The live pods of one object, those that are alike together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webhook.cli.live.value_text import both_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.cli.live.focus import Focus
    from webhook.cli.live.judged import LivePod
    from webhook.cli.live.question import Answers


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
