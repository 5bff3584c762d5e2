"""What a pod does now, and why it waits: the words of scheduler, kubelet and eviction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.run.observation import any_pod
from webhook.shortening import count_text, one_line
from webhook.times import format_age

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from webhook.run.observed import OwnedPod


class PodState(NamedTuple):
    """What a stored pod does: its state in a word, since when and where, and why."""

    word: str
    where: str = ""
    why: str = ""

    def __str__(self) -> str:
        phase, comma, more = self.word.partition(",")
        text = f"{phase}{self.where}{comma}{more}"
        return one_line(f"{text}: {self.why}" if self.why else text)


UNKNOWN_STATE: Final = PodState("phase unknown")


def read_state(raw: Mapping[str, Any], now: datetime | None) -> PodState:
    """Return the state of a stored v1.Pod, as in `Pending for 5m: 0/6 nodes are available` and
    `Running on n1`.
    """
    if not (raw.get("status") or {}).get("phase"):
        return UNKNOWN_STATE
    pod = any_pod(raw)
    waits = pod.phase == "Pending" and not pod.deleted_at
    since = format_age(pod.unscheduled_since or pod.created, now) if waits and now else ""
    where = (f" for {since}" if since else "") + (f" on {pod.node}" if pod.node else "")
    why = "; ".join(notes_of(pod)) or ("no reason is reported" if waits else "")
    return PodState(state_of(pod), where, why)


def state_of(pod: OwnedPod) -> str:
    """Return the pod's phase, or that it is not ready or being deleted."""
    unready = ", not ready" if pod.phase == "Running" and not pod.ready else ""
    return "Terminating" if pod.deleted_at else f"{pod.phase}{unready}"


def describe_gates(pod: OwnedPod) -> str:
    """Return what holds a pod back that has scheduling gates.

    Source: pkg/controller/jobs/pod and pkg/controller/tas of kubernetes-sigs/kueue.
    """
    if names.KUEUE_ADMISSION_GATE in pod.gates:
        queue = f"queue {pod.queue}" if pod.queue else "its queue"
        text = f"held back by Kueue until {queue} admits the pod, which counts as one without a job"
        return f"{text} (gate {names.KUEUE_ADMISSION_GATE})"
    if names.KUEUE_TOPOLOGY_GATE in pod.gates:
        return f"held back by Kueue until it has chosen a host (gate {names.KUEUE_TOPOLOGY_GATE})"
    gates = "scheduling gate" if len(pod.gates) == 1 else "scheduling gates"
    return f"held back by {gates} {', '.join(pod.gates)}"


def notes_of(pod: OwnedPod) -> Iterator[str]:
    """Yield why a pod is as it is, the reasons that people can do something about first."""
    if pod.unscheduled:
        # The scheduler's further sentences are about preemption.
        yield pod.unscheduled.partition(". ")[0]
    if pod.gates:
        yield describe_gates(pod)
    if pod.waiting:
        reason, message = pod.waiting
        yield f"{reason}: {message}" if message else reason
    if pod.disruption:
        reason, message, _ = pod.disruption
        yield f"disrupted ({reason})" + (f": {message}" if message else "")
    if pod.restarts:
        yield f"restarted {count_text(pod.restarts, 'time')}"
    if pod.phase == "Failed":
        if pod.exit:
            why = f" ({pod.exit.reason})" if pod.exit.reason else ""
            yield f"{pod.exit.container} exited with {pod.exit.code}{why}"
        elif pod.reason:
            yield f"{pod.reason}: {pod.message}" if pod.message else pod.reason
