"""Warning texts about the future pods of a workload, for its author."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook import names
from webhook.decision.advice import SIGNATURE, fitting
from webhook.shortening import fit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from webhook.placement.shapes import JsonObject
    from webhook.workloads.template import PodTemplate

# Replicas of one template that are checked one by one. Later replicas are assumed to be like the
# last one. Policies distinguish replicas by index, and the first hundred show the differences.
MOST_REPLICAS: Final = 128
# Characters. A rejection may quote a whole affinity. The pod's own Event has the full text.
_LONGEST_REASON: Final = 400


class PodOutcome(NamedTuple):
    """The result for a pod: why it is rejected (empty if it is not), and its warnings."""

    rejection: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class Group:
    """Replicas of one template with the same result.

    `more`: the number of replicas after the last of `indexes` that are assumed to be like it.
    """

    pods: PodTemplate
    outcome: PodOutcome
    indexes: list[int] = field(default_factory=list)
    more: int = 0

    @property
    def number(self) -> int:
        """The number of pods."""
        return len(self.indexes) + self.more

    def __str__(self) -> str:
        if self.pods.count == 0:
            return self.pods.part
        return self.pods.describe(self.indexes, self.more)


def check_replicas(
    pods: PodTemplate, judge: Callable[[JsonObject], PodOutcome], groups: list[Group]
) -> Iterator[None]:
    """Check the replicas one after the other, and add their results to `groups`.

    `groups` is consistent after each step, so the caller may stop or yield to other tasks.
    """
    template_groups: list[Group] = []
    last: tuple[JsonObject, PodOutcome] | None = None
    count = 1 if pods.count is None else max(pods.count, 1)
    for index in range(min(count, MOST_REPLICAS)):
        pod = pods.pod(index)
        outcome = last[1] if last and last[0] == pod else judge(pod)
        last = pod, outcome
        group = next((other for other in template_groups if other.outcome == outcome), None)
        if group is None:
            group = Group(pods, outcome)
            template_groups.append(group)
            groups.append(group)
        group.indexes.append(index)
        for other in template_groups:
            other.more = count - index - 1 if other is group else 0
        yield


def write_warnings(
    kind: str, name: str, namespace: str, groups: Sequence[Group], faults: Sequence[str] = ()
) -> list[str]:
    """Return the warnings, each once and rejections first, cut to fit into one response.

    `groups` are the groups of all templates that were checked, `faults` the errors in the templates
    themselves.
    """
    title = f"{kind} {name}"
    texts: list[str] = []
    for reason, who in _group_by_text(
        groups, lambda outcome: (outcome.rejection,) if outcome.rejection else ()
    ):
        if _all(who, groups):
            subject = f"{_counted(who)} of {title} in {namespace}"
        else:
            subject = f"{title} in {namespace}: {', '.join(map(str, who))}"
        short = fit(reason.removeprefix(SIGNATURE), _LONGEST_REASON)
        texts.append(f"{SIGNATURE}{subject} would be rejected: {short}")
    texts += [f"{SIGNATURE}{title}: {fault}" for fault in faults]
    for warning, who in _group_by_text(groups, lambda outcome: outcome.warnings):
        which = "" if _all(who, groups) else f", {', '.join(map(str, who))}"
        texts.append(f"{SIGNATURE}{title}{which}: {warning.removeprefix(SIGNATURE)}")
    return fitting(texts)


def mark_on(kind: str) -> str:
    """Return the warning that a workload has the label of a run, and its pods do not."""
    return (
        f"the label {names.RUN} is on the {kind} itself, and pods get those of their template: "
        "put it there too, or no policy reaches them"
    )


def nothing_of(kind: str, name: str, problems: Sequence[str]) -> list[str]:
    """Return the warnings for a workload from which no pods can be created."""
    return fitting(
        [f"{SIGNATURE}{kind} {name} cannot create pods: {problem}" for problem in problems]
    )


def not_read(kind: str, name: str, path: str, error: Exception) -> list[str]:
    """Return the warning that an object on which a workload's pods depend cannot be read."""
    *_, resource, refers_to = path.split("/")
    what = f"{resource} {refers_to} cannot be read: {error}"
    return fitting([f"{SIGNATURE}{kind} {name}: its pods were not checked: {what}"])


def _group_by_text(
    groups: Iterable[Group], said_of: Callable[[PodOutcome], Iterable[str]]
) -> list[tuple[str, list[Group]]]:
    """Return each text with the groups to which it applies."""
    who: dict[str, list[Group]] = {}
    for group in groups:
        for text in dict.fromkeys(said_of(group.outcome)):
            who.setdefault(text, []).append(group)
    return list(who.items())


def _all(who: Sequence[Group], groups: Sequence[Group]) -> bool:
    return sum(group.number for group in who) == sum(group.number for group in groups)


def _counted(who: Sequence[Group]) -> str:
    number = sum(group.number for group in who)
    if any(not group.pods.count for group in who):
        return "pods"
    return "the pod" if number == 1 else f"{number} pods"
