"""Why a run does not run: what keeps its pods, told once for all that have the same reason."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.run.facts import RoleFacts
    from webhook.run.observed import OwnedPod, Refusal

# Of reasons that differ.
_SHOWN: Final = 3
_LONGEST: Final = 500
# A container that waits for these waits for nothing unusual.
_USUAL: Final = frozenset({"ContainerCreating", "PodInitializing", ""})


class Hindrance(NamedTuple):
    """What keeps pods, in one word and for a person."""

    reason: str
    message: str


def refused(refusals: Sequence[Refusal]) -> Hindrance | None:
    """The creations that the API server refused, by its own words."""
    if not refusals:
        return None
    first = refusals[0]
    more = f"; and {len(refusals) - 1} more" if len(refusals) > 1 else ""
    return Hindrance(first.reason, _cut(f"{first.name}: {first.message}") + more)


def unscheduled(pods: Sequence[OwnedPod], desired: int) -> Hindrance | None:
    """The pods for which the scheduler finds no node: "3 of 11 pods: 0/12 nodes match ..."."""
    # After its first sentence the scheduler speaks of preemption, which helps nobody here.
    words = Counter(pod.unscheduled.partition(". ")[0] for pod in pods if pod.unscheduled)
    if words:
        return Hindrance("Unschedulable", _told(words, desired))
    gated = sum(1 for pod in pods if pod.gates)
    if gated:
        return Hindrance("SchedulingGated", f"{gated} of {desired} pods: held by scheduling gates")
    return None


def waiting(pods: Iterable[OwnedPod], desired: int) -> Hindrance | None:
    """The pods that have a node, and whose containers cannot be started there."""
    found = [pod.waiting for pod in pods if pod.waiting and pod.waiting[0] not in _USUAL]
    if not found:
        return None
    words = Counter(f"{reason}: {message}" if message else reason for reason, message in found)
    (reason, _), _ = Counter(found).most_common(1)[0]
    return Hindrance(reason, _told(words, desired))


def going(facts: Mapping[str, RoleFacts]) -> Hindrance | None:
    """Pods whose names are needed again, and that are not gone yet."""
    pods = [
        pod
        for one in facts.values()
        for pod in (*one.stale.values(), *one.ended.values())
        if pod.deleted_at
    ]
    if not pods:
        return None
    first = min(pods, key=lambda pod: pod.name)
    where = f" on node {first.node}" if first.node else ""
    more = f" and {len(pods) - 1} more" if len(pods) > 1 else ""
    return Hindrance("Terminating", f"waiting until {first.name}{where}{more} is gone")


def _told(words: Counter[str], desired: int) -> str:
    groups = sorted(words.items(), key=lambda item: (-item[1], item[0]))
    text = "; ".join(f"{count} of {desired} pods: {_cut(why)}" for why, count in groups[:_SHOWN])
    rest = sum(count for _, count in groups[_SHOWN:])
    return f"{text}; and {rest} more" if rest else text


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
