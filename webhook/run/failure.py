"""Classify how a pod ended: success, failure of its program, or disruption.

The checks are made in this order: the condition DisruptionTarget (KEP-3329), status.reason, a
deletion by another client, the node's absence, the exit code. A pod that has not ended counts as
ended if its machine is shut down.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook.times import elapsed, parse_time

if TYPE_CHECKING:
    from collections.abc import Collection

    from webhook.run.model.replica import RestartPolicy
    from webhook.run.observed import NodeHealth, OwnedPod

# status.reason of pods that failed because of their node. From the kubelet: node shutdown, and
# preemption by a critical pod. From older node controllers: NodeLost. `Evicted` is not included:
# without a DisruptionTarget it means that the pod exceeded its own storage limit.
_NODE_REASONS: Final = frozenset(
    {"NodeLost", "NodeShutdown", "Shutdown", "Terminated", "Preempting"}
)
# status.reason of pods that the kubelet did not admit, initially or after a restart of its machine:
# the reasons of its admission handlers and of the scheduler filters that it repeats.
_REFUSED: Final = frozenset(
    {
        *("NodeAffinity", "NodeName", "NodePorts", "TaintToleration", "InvalidNodeInfo"),
        *("UnexpectedAdmissionError", "TopologyAffinityError", "SMTAlignmentError"),
        *("PodOSSelectorNodeLabelDoesNotMatch", "PodOSNotSupported", "UnknownReason"),
        *("InitContainerRestartPolicyForbidden", "SupplementalGroupsPolicyNotSupported"),
        "UnexpectedPredicateFailureType",
    }
)
# The message prefix of Evicted pods that were not admitted because the node lacks a resource.
_SHORT_NODE: Final = "The node had condition:"
# OutOfcpu, OutOfmemory, OutOfpods, OutOfnvidia.com/gpu: the kubelet had less than was scheduled.
_OUT_OF: Final = "OutOf"
OOM_KILLED: Final = "OOMKilled"
# The reasons of a running container that was lost because its machine or runtime restarted. From
# the kubelet, with exit code 137, and from containerd.
_LOST_CONTAINER: Final = "ContainerStatusUnknown"
_LOST_TASK: Final = ("Unknown", 255)
# Seconds. CRI-O reports its own start time as the end of a lost container, which may be some
# seconds after the node became ready.
_SETTLING: Final = 10.0
# status.reason of pods that exceeded a limit of their own on storage or time.
_OWN_REASONS: Final = frozenset({"Evicted", "DeadlineExceeded"})
DISRUPTION_EXIT_CODE: Final = "DisruptionExitCode"
_SIGNAL_BASE: Final = 128


class Failure(NamedTuple):
    """Why a replica went down. `exit_code` is None if no container exit is known.

    refused: the kubelet did not admit the pod, which counts as a disruption.
    """

    disruption: bool
    reason: str
    message: str
    exit_code: int | None = None
    refused: bool = False


Ending: TypeAlias = Failure | Literal["Succeeded"] | None


def classify_end(
    pod: OwnedPod, node: NodeHealth | None = None, disruption_codes: Collection[int] = ()
) -> Ending:
    """Return how the pod ended; None if it has not.

    node: the health of its node.
    disruption_codes: the run's disruptionExitCodes.

    A pod counts as ended as soon as its deletion is requested, whatever its program does
    afterwards. This includes an exit with 0: a program that saves a checkpoint upon SIGTERM and
    exits has not finished its work.
    """
    if pod.phase == "Succeeded":
        return _deleted_before_end(pod) or "Succeeded"
    if pod.phase == "Failed":
        return _failed(pod, node, disruption_codes)
    if pod.deleted_at:
        return disrupted_by_others(pod) or _disruption(pod, "Deleted", "the pod was deleted")
    if node and node.off:
        return _lost_node(pod, node, "is silent for too long")
    if node and node.sick:
        return _disruption(pod, "NodeUnhealthy", f"node {node.name} is unhealthy: {node.ill}")
    return None


def disrupted_by_others(pod: OwnedPod) -> Failure | None:
    """Return the disruption that a component other than the controller recorded on the pod.

    A deletion alone is not evidence, because the controller may have deleted the pod itself.
    """
    if pod.disruption is not None:
        return _disruption(pod, *pod.disruption[:2])
    if pod.phase == "Failed" and pod.reason in _NODE_REASONS:
        return _disruption(pod, pod.reason, pod.message)
    return None


def classify_gone(
    pod: OwnedPod, node: NodeHealth | None, disruption_codes: Collection[int]
) -> Failure | Literal["Succeeded"]:
    """Return how a deleted pod ended, by its last state."""
    return (
        classify_end(pod, node, disruption_codes)
        or disrupted_by_others(pod)
        or _lost_node(pod, node)
        or _disruption(pod, "Deleted", "the pod was deleted")
    )


def classify_unseen(pod: OwnedPod, node: NodeHealth | None) -> Failure:
    """Return the failure for a pod that is gone and whose last state nobody saw."""
    vanished = _disruption(pod, "Vanished", "the pod is gone, and its reason is unknown")
    return _lost_node(pod, node) or vanished


def may_restart(policy: RestartPolicy, failure: Failure) -> bool:
    """Return True if the policy permits a restart; the retry budget is checked elsewhere."""
    if failure.disruption or policy == "OnFailure":
        return True
    if policy == "Never" or failure.reason == OOM_KILLED:
        # The program would exceed the same limit again. Its exit code is that of any SIGKILL.
        return False
    return failure.exit_code is None or failure.exit_code >= _SIGNAL_BASE


def _failed(pod: OwnedPod, node: NodeHealth | None, disruption_codes: Collection[int]) -> Failure:
    if failure := disrupted_by_others(pod):
        return failure
    if _was_refused(pod):
        return _disruption(pod, pod.reason, pod.message)._replace(refused=True)
    return (
        _deleted_before_end(pod)
        or _lost_with_node(pod, node)
        or _program_failure(pod, disruption_codes)
    )


def _was_refused(pod: OwnedPod) -> bool:
    if pod.reason == "Evicted":
        return pod.message.startswith(_SHORT_NODE)
    return pod.reason in _REFUSED or pod.reason.startswith(_OUT_OF)


def _lost_with_node(pod: OwnedPod, node: NodeHealth | None) -> Failure | None:
    """Return the disruption if the pod's node was away when the pod ended.

    The exit code is not decisive: it may be that of a signal at shutdown, or 255 from a runtime
    that lost the container. A limit that the pod itself exceeded stays its own failure.
    """
    of_its_own = pod.reason in _OWN_REASONS or (pod.exit and pod.exit.reason == OOM_KILLED)
    if node is None or not pod.on_node_since or of_its_own:
        return None
    if not node.uid:
        return _disruption(pod, "NodeGone", f"node {node.name} is gone")
    if node.ready == "Unknown":
        return _disruption(pod, "NodeNotReady", f"node {node.name} is not ready")
    again = node.ready_again_after(pod.on_node_since)
    finished = pod.exit.finished_at if pod.exit else ""
    if not again or (finished and elapsed(again, parse_time(finished)) > _SETTLING):
        return None
    return _disruption(pod, "NodeNotReady", f"node {node.name} was away until {again}")


def _deleted_before_end(pod: OwnedPod) -> Failure | None:
    """Return the disruption if the pod's deletion was requested before its program ended."""
    finished = pod.exit.finished_at if pod.exit else ""
    if pod.phase == "Succeeded" and not finished:
        # The pod was not over when it was given time to end. Nothing else tells.
        return _disruption(pod, "Deleted", "the pod was deleted") if pod.given_grace else None
    if pod.disruption is not None and _not_after(pod.disruption[2], finished):
        return _disruption(pod, *pod.disruption[:2])
    if pod.deleted_at and not pod.ended_first and _not_after(pod.deleted_at, finished):
        return _disruption(pod, "Deleted", "the pod was deleted")
    return None


def _not_after(requested: str, finished: str) -> bool:
    """Return True if the request came first, or in the same second (times are in seconds)."""
    return (
        not finished
        or not requested
        or int(parse_time(requested).timestamp()) <= parse_time(finished).timestamp()
    )


def _lost_node(
    pod: OwnedPod, node: NodeHealth | None, otherwise: str = "is not ready"
) -> Failure | None:
    if node is None or not node.trouble:
        return None
    what = {"NodeGone": "is gone", "NodeShutdown": "is shut down"}.get(node.trouble, otherwise)
    return _disruption(pod, node.trouble, f"node {node.name} {what}")


def _disruption(pod: OwnedPod, reason: str, message: str) -> Failure:
    return Failure(True, reason or "Disrupted", message, pod.exit.code if pod.exit else None)


def _program_failure(pod: OwnedPod, disruption_codes: Collection[int]) -> Failure:
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
    """Return the runtime's reason, or the signal's name if the reason is only Error."""
    if reason not in ("", "Error") or code <= _SIGNAL_BASE:
        return reason or "Error"
    try:
        return signal.Signals(code - _SIGNAL_BASE).name
    except ValueError:
        return "Error"
