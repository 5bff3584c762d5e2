"""How a pod ended: by success, by its program's failure, or by a disruption that is not its own.

Told apart in this order: the condition DisruptionTarget (KEP-3329), status.reason, deletion by
somebody else, whether its node was away, the exit code. A pod that goes on has ended where its
machine is shut down.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook.times import elapsed, read

if TYPE_CHECKING:
    from collections.abc import Collection

    from webhook.run.model.replica import RestartPolicy
    from webhook.run.observed import NodeHealth, OwnedPod

# status.reason of pods that failed for their node's sake. From the kubelet: shutdown of the node,
# and preemption by a critical pod. From the node controller of old: NodeLost. `Evicted` is not
# among them: without a DisruptionTarget it says that the pod itself used more storage than it may.
_NODE_REASONS: Final = frozenset(
    {"NodeLost", "NodeShutdown", "Shutdown", "Terminated", "Preempting"}
)
# Of pods that the kubelet did not admit, at first or after a restart of its machine: the reasons of
# its admission handlers and of the scheduler's filters that it repeats.
_REFUSED: Final = frozenset(
    {
        *("NodeAffinity", "NodeName", "NodePorts", "TaintToleration", "InvalidNodeInfo"),
        *("UnexpectedAdmissionError", "TopologyAffinityError", "SMTAlignmentError"),
        *("PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "UnknownReason"),
        *("InitContainerRestartPolicyForbidden", "SupplementalGroupsPolicyNotSupported"),
        "UnexpectedPredicateFailureType",
    }
)
# With the reason Evicted it says that the node is short of something, and did not admit the pod.
_SHORT_NODE: Final = "The node had condition:"
# OutOfcpu, OutOfmemory, OutOfpods, OutOfnvidia.com/gpu: the kubelet had less than was promised.
_OUT_OF: Final = "OutOf"
OOM_KILLED: Final = "OOMKilled"
# The reasons of a container that was running, and is not found again: its machine or its runtime
# was restarted. From the kubelet, with the code 137, and from containerd.
_LOST_CONTAINER: Final = "ContainerStatusUnknown"
_LOST_TASK: Final = ("Unknown", 255)
# A runtime that gives a lost container the moment of its own start as its end (CRI-O) may do so
# some seconds after the node is ready.
_SETTLING: Final = 10.0
# status.reason where the pod used more storage or time than it may.
_OWN_REASONS: Final = frozenset({"Evicted", "DeadlineExceeded"})
DISRUPTION_EXIT_CODE: Final = "DisruptionExitCode"
_SIGNAL_BASE: Final = 128


class Failure(NamedTuple):
    """Why a replica went down. `exit_code` is None where no container's exit is known.

    refused: whether the kubelet did not admit the pod, which is a disruption.
    """

    disruption: bool
    reason: str
    message: str
    exit_code: int | None = None
    refused: bool = False


Ending: TypeAlias = Failure | Literal["Succeeded"] | None


def ending(
    pod: OwnedPod, node: NodeHealth | None = None, disruption_codes: Collection[int] = ()
) -> Ending:
    """How the pod ended; None while it goes on.

    node: the health of its node; one that is shut down must have been read live just now.
    disruption_codes: the run's disruptionExitCodes.

    A pod that somebody deletes has ended for us as soon as that is asked: whatever its program
    does then, it was told to stop. So has one that exits with 0 afterwards: a program that saves
    its state upon SIGTERM and leaves has not finished its work.
    """
    if pod.phase == "Succeeded":
        return _asked_to_go(pod) or "Succeeded"
    if pod.phase == "Failed":
        return _failed(pod, node, disruption_codes)
    if pod.deleted_at:
        return interrupted(pod) or _disruption(pod, "Deleted", "the pod was deleted")
    if node and node.trouble == "NodeShutdown":
        return _disruption(pod, "NodeShutdown", f"node {node.name} is shut down")
    return None


def interrupted(pod: OwnedPod) -> Failure | None:
    """The disruption that others than the controller have written on the pod, if they have.

    Its deletion alone tells nothing of a pod that the controller may have deleted itself.
    """
    if pod.disruption is not None:
        return _disruption(pod, *pod.disruption[:2])
    if pod.phase == "Failed" and pod.reason in _NODE_REASONS:
        return _disruption(pod, pod.reason, pod.message)
    return None


def vanished() -> Failure:
    """What is known of a pod that was there and is not any more."""
    return Failure(True, "Vanished", "the pod is gone, and nobody saw why")


def starts_again(policy: RestartPolicy, failure: Failure) -> bool:
    """Whether a replica is started again after this, its budget allowing."""
    if failure.disruption or policy == "OnFailure":
        return True
    if policy == "Never" or failure.reason == OOM_KILLED:
        # The same limit would kill it again, though the code is that of any SIGKILL.
        return False
    return failure.exit_code is None or failure.exit_code >= _SIGNAL_BASE


def _failed(pod: OwnedPod, node: NodeHealth | None, disruption_codes: Collection[int]) -> Failure:
    if found := interrupted(pod):
        return found
    if _was_refused(pod):
        return _disruption(pod, pod.reason, pod.message)._replace(refused=True)
    return _asked_to_go(pod) or _went_with_its_node(pod, node) or _program(pod, disruption_codes)


def _was_refused(pod: OwnedPod) -> bool:
    if pod.reason == "Evicted":
        return pod.message.startswith(_SHORT_NODE)
    return pod.reason in _REFUSED or pod.reason.startswith(_OUT_OF)


def _went_with_its_node(pod: OwnedPod, node: NodeHealth | None) -> Failure | None:
    """The disruption, if the pod's node was away when the pod ended.

    Its exit code may be anything: of a signal at the shutdown of the machine, or 255 of a runtime
    that lost it. What the pod itself used too much of stays its own failure.
    """
    of_its_own = pod.reason in _OWN_REASONS or (pod.exit and pod.exit.reason == OOM_KILLED)
    if node is None or not pod.on_node_since or of_its_own:
        return None
    if not node.uid:
        return _disruption(pod, "NodeGone", f"node {node.name} is gone")
    if node.ready == "Unknown":
        return _disruption(pod, "NodeNotReady", f"node {node.name} is not ready")
    again = node.heard_again(pod.on_node_since)
    finished = pod.exit.finished_at if pod.exit else ""
    if not again or (finished and elapsed(again, read(finished)) > _SETTLING):
        return None
    return _disruption(pod, "NodeNotReady", f"node {node.name} was away until {again}")


def _asked_to_go(pod: OwnedPod) -> Failure | None:
    """The disruption, if the pod was asked to go before its program ended."""
    finished = pod.exit.finished_at if pod.exit else ""
    if pod.disruption is not None and _not_after(pod.disruption[2], finished):
        return _disruption(pod, *pod.disruption[:2])
    if pod.deleted_at and _not_after(pod.deleted_at, finished):
        return _disruption(pod, "Deleted", "the pod was deleted")
    return None


def _not_after(asked: str, finished: str) -> bool:
    """Whether it was asked to go first. These times have whole seconds: in doubt it was."""
    return not finished or not asked or int(read(asked).timestamp()) <= read(finished).timestamp()


def _disruption(pod: OwnedPod, reason: str, message: str) -> Failure:
    return Failure(True, reason or "Disrupted", message, pod.exit.code if pod.exit else None)


def _program(pod: OwnedPod, disruption_codes: Collection[int]) -> Failure:
    end = pod.exit
    if end is None:
        return Failure(False, pod.reason or "Failed", pod.message)
    message = end.message or pod.message
    if pod.reason in _OWN_REASONS:
        return Failure(False, pod.reason, pod.message or message, end.code)
    if end.reason == _LOST_CONTAINER or (end.reason, end.code) == _LOST_TASK:
        return _disruption(pod, end.reason, message)
    if end.code in disruption_codes:
        return _disruption(pod, DISRUPTION_EXIT_CODE, message)
    return Failure(False, _word(end.code, end.reason), message, end.code)


def _word(code: int, reason: str) -> str:
    """The runtime's reason, or the signal's name where it says no more than Error."""
    if reason not in ("", "Error") or code <= _SIGNAL_BASE:
        return reason or "Error"
    try:
        return signal.Signals(code - _SIGNAL_BASE).name
    except ValueError:
        return "Error"
