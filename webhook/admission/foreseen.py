"""What the pods of a workload will meet, in words for whoever writes the workload."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from webhook.admission.advice import fitting
from webhook.admission.review import SIGNATURE
from webhook.workloads.template import described

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from webhook.placement.shapes import JsonObject

# Replicas of one template that are looked at one by one; those after them are taken to be like the
# last. Policies tell replicas apart by index, and the first hundred tell all that is told.
MOST_REPLICAS: Final = 128
# A rejection may quote a whole affinity. What is left out here, the pod's own Event has.
_LONGEST_REASON: Final = 400


class Pods(Protocol):
    """Pods of a workload that are alike but for their index, as webhook.workloads finds them."""

    @property
    def part(self) -> str:
        """Which of the workload's pods they are (worker); empty if there is only one kind."""

    @property
    def count(self) -> int | None:
        """How many there are to be; None if that depends on the cluster."""

    @property
    def made(self) -> Callable[[int], object]:
        """What tells the pod at an index from the others: equal for pods that are equal."""

    def pod(self, index: int) -> JsonObject:
        """The v1.Pod of one replica, as the webhook would get it."""


class Fate(NamedTuple):
    """What becomes of a pod: why it is refused (empty: it is not), and what there is to say."""

    rejection: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class Group:
    """Replicas of one template that meet the same.

    `more`: how many come after the last of `indexes`, and are taken to be like it.
    """

    pods: Pods
    fate: Fate
    indexes: list[int] = field(default_factory=list)
    more: int = 0

    @property
    def number(self) -> int:
        """How many pods they are."""
        return len(self.indexes) + self.more

    def __str__(self) -> str:
        count = self.pods.count
        count = None if count is None else max(count, 1)
        return described(self.pods.part, count, self.indexes, self.more)


def look(pods: Pods, judge: Callable[[JsonObject], Fate], found: list[Group]) -> Iterator[None]:
    """Look at one replica after the other, and add what they meet to `found`.

    At each step all that was found so far is whole: whoever asks may stop, or let others have their
    turn.
    """
    own: list[Group] = []
    last: tuple[object, Fate] | None = None
    count = 1 if pods.count is None else max(pods.count, 1)
    for index in range(min(count, MOST_REPLICAS)):
        made = pods.made(index)
        fate = last[1] if last and last[0] == made else judge(pods.pod(index))
        last = made, fate
        group = next((each for each in own if each.fate == fate), None)
        if group is None:
            group = Group(pods, fate)
            own.append(group)
            found.append(group)
        group.indexes.append(index)
        for each in own:
            each.more = count - index - 1 if each is group else 0
        yield


def words(
    kind: str, name: str, namespace: str, found: Sequence[Group], faults: Sequence[str] = ()
) -> list[str]:
    """The warnings, each once and rejections first; together they fit into an answer.

    `found` are the groups of all templates of the workload that were looked at, `faults` what is
    wrong with the templates themselves.
    """
    title = f"{kind} {name}"
    said: list[str] = []
    for reason, who in _by(found, lambda fate: (fate.rejection,) if fate.rejection else ()):
        if _all(who, found):
            subject = f"{_counted(who)} of {title} in {namespace}"
        else:
            subject = f"{title} in {namespace}: {', '.join(map(str, who))}"
        said.append(f"{SIGNATURE}{subject} would be rejected: {_short(reason)}")
    said += [f"{SIGNATURE}{title}: {each}" for each in faults]
    for warning, who in _by(found, lambda fate: fate.warnings):
        which = "" if _all(who, found) else f", {', '.join(map(str, who))}"
        said.append(f"{SIGNATURE}{title}{which}: {warning.removeprefix(SIGNATURE)}")
    return fitting(said)


def nothing_of(kind: str, name: str, problems: Sequence[str]) -> list[str]:
    """That no pods can be made of the workload, and why."""
    return fitting([f"{SIGNATURE}{kind} {name} can have no pods: {each}" for each in problems])


def _by(
    found: Iterable[Group], said_of: Callable[[Fate], Iterable[str]]
) -> list[tuple[str, list[Group]]]:
    """Each text with the groups that it is said of."""
    who: dict[str, list[Group]] = {}
    for group in found:
        for text in dict.fromkeys(said_of(group.fate)):
            who.setdefault(text, []).append(group)
    return list(who.items())


def _all(who: Sequence[Group], found: Sequence[Group]) -> bool:
    """Whether these are all pods of all templates."""
    return sum(each.number for each in who) == sum(each.number for each in found)


def _counted(who: Sequence[Group]) -> str:
    number = sum(each.number for each in who)
    if any(not each.pods.count for each in who):
        return "pods"
    return "the pod" if number == 1 else f"{number} pods"


def _short(reason: str) -> str:
    text = reason.removeprefix(SIGNATURE)
    return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 1]}…"
