"""Why a run does not run: what keeps its pods, told once for all that have the same reason."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook import names
from webhook.run.incidents import in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.run.facts import Lost, RoleFacts
    from webhook.run.observed import NodeTrouble, OwnedPod, Refusal

# Of reasons that differ.
_SHOWN: Final = 3
_LONGEST: Final = 500
# A container that waits for these waits for nothing unusual.
_USUAL: Final = frozenset({"ContainerCreating", "PodInitializing", ""})

# What becomes of pods on a node in trouble; first that for which somebody has to do something.
_CURES: Final[Mapping[NodeTrouble, str]] = {
    "NodeNotReady": "what runs there may go on, so the run waits until the node is back or "
    "the pods are gone; if the machine is off: kubectl taint node {node} "
    f"{names.TAINT_OUT_OF_SERVICE}=nodeshutdown:NoExecute, or kubectl delete node {{node}}",
    "NodeGone": "Kubernetes deletes its pods after about a minute, and the run replaces them",
    "NodeShutdown": "its pods are deleted now, and the run replaces them",
}


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


def lost(found: Iterable[Lost], desired: int) -> Hindrance | None:
    """The pods on nodes that are not ready, shut down or gone, and what is done about them."""
    by_trouble: dict[NodeTrouble, list[Lost]] = {}
    for each in found:
        by_trouble.setdefault(each.node.trouble, []).append(each)
    for trouble, cure in _CURES.items():
        if not (group := by_trouble.pop(trouble, [])):
            continue
        pod, node, _ = min(group, key=lambda each: each.pod.name)
        others = len(group) - 1 + sum(map(len, by_trouble.values()))
        more = f" (and {others} more)" if others else ""
        of = f"{len(group)} of {desired} pods"
        text = f"{of}: node {node.name} of {pod.name}{more} {in_words(node)}; "
        return Hindrance(trouble, text + cure.format(node=node.name))
    return None


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
