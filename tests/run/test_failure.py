"""How a pod ended, and what is started again after it."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.run.failure import (
    Failure,
    classify_end,
    classify_gone,
    classify_unseen,
    may_restart,
)
from webhook.run.model.replica import RestartPolicy
from webhook.run.observed import Exit, NodeHealth, OwnedPod

AT = "2026-11-21T20:15:10Z"
BEFORE, AFTER = "2026-11-21T20:15:05Z", "2026-11-21T20:15:15Z"
TARGET = ("PreemptionByScheduler", "preempted", BEFORE)


def pod(phase: Any = "Failed", **fields: Any) -> OwnedPod:
    return OwnedPod("mnist-worker-0", "uid", "run", "worker", 0, 0, phase, **fields)


def exited(code: int, reason: str = "Error", message: str = "") -> Exit:
    """The main container's end."""
    return Exit("main", code, 0, reason, message, AT)


def failure(of: OwnedPod) -> Failure:
    end = classify_end(of)
    assert isinstance(end, Failure)
    return end


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown"])
def test_a_pod_that_is_there_has_not_ended(phase: str) -> None:
    """Whatever it waits for; Unknown is what a node that is silent leaves behind."""
    assert classify_end(pod(phase)) is None
    assert classify_end(pod(phase, disruption=TARGET)) is None


def test_disruption_target_tells_before_everything_else() -> None:
    """Also where status.reason and exit code would say that it was the program."""
    end = failure(pod(disruption=TARGET, reason="Evicted", exit=exited(1)))
    assert end == Failure(True, "PreemptionByScheduler", "preempted", 1)


@pytest.mark.parametrize(
    "reason",
    [
        *("NodeLost", "NodeShutdown", "Shutdown", "Terminated", "Preempting"),
    ],
)
def test_status_reason_tells_of_the_node_before_the_exit_code(reason: str) -> None:
    """Kubelets that set no condition say it there."""
    assert failure(pod(reason=reason, message="words", exit=exited(1))) == Failure(
        True, reason, "words", 1
    )


@pytest.mark.parametrize(
    "reason",
    [
        *("NodeAffinity", "UnexpectedAdmissionError", "OutOfcpu", "OutOfnvidia.com/gpu"),
        *("TaintToleration", "NodePorts", "SMTAlignmentError", "PodOSNotSupported"),
    ],
)
def test_a_pod_that_its_kubelet_did_not_admit_is_distinguished(reason: str) -> None:
    """Its program never ran, and the next pod would be refused too."""
    assert failure(pod(reason=reason, message="words")) == Failure(
        True, reason, "words", refused=True
    )


def test_a_container_that_its_kubelet_does_not_find_again_was_disrupted() -> None:
    """Its machine was restarted. Not so where the pod itself was evicted for what it used."""
    lost = exited(137, "ContainerStatusUnknown")
    assert failure(pod(exit=lost)) == Failure(True, "ContainerStatusUnknown", "", 137)
    assert not failure(pod(reason="Evicted", exit=lost)).disruption


def test_a_container_that_containerd_lost_was_disrupted() -> None:
    """Its machine or containerd was restarted. A program that exits with 255 has the word Error."""
    assert failure(pod(exit=exited(255, "Unknown"))) == Failure(True, "Unknown", "", 255)
    assert not failure(pod(exit=exited(255, "Error"))).disruption
    assert not failure(pod(reason="Evicted", exit=exited(255, "Unknown"))).disruption


STARTED = "2026-11-21T20:00:00Z"
BACK = "2026-11-21T20:15:05Z"


@pytest.mark.parametrize(
    "node",
    [
        NodeHealth("a", uid="uid", ready="Unknown", since="2026-11-21T20:14:00Z"),
        NodeHealth("a", uid="uid", created=STARTED, since=BACK),
        NodeHealth("a", uid="uid", ready="False", created=STARTED, since=BACK),
        NodeHealth("a", uid="uid", created=BACK, since=BACK),
        NodeHealth("a", since="2026-11-21T20:14:00Z"),
    ],
    ids=["silent", "ready again", "speaks again", "registered again", "gone"],
)
@pytest.mark.parametrize(("code", "word"), [(255, "Error"), (137, "Error"), (143, "Error")])
def test_a_pod_that_ended_while_its_node_was_away_was_disrupted(
    node: NodeHealth, code: int, word: str
) -> None:
    """CRI-O says 255 and Error of a container that it lost; a shutdown kills with a signal."""
    ended = pod(node="a", running_since=STARTED, exit=exited(code, word))
    end = classify_end(ended, node)
    assert isinstance(end, Failure)
    assert (end.disruption, end.exit_code) == (True, code)
    assert end.reason in ("NodeNotReady", "NodeGone")
    assert not failure(ended).disruption


def test_a_pod_that_ended_in_an_init_container_while_its_node_was_away_was_disrupted() -> None:
    """Its main container never started."""
    ended = pod(node="a", init_since=STARTED, exit=exited(143))
    end = classify_end(ended, NodeHealth("a", uid="uid", created=STARTED, since=BACK))
    assert isinstance(end, Failure)
    assert (end.disruption, end.reason) == (True, "NodeNotReady")


@pytest.mark.parametrize(
    "changes",
    [
        {"exit": exited(137, "OOMKilled")},
        {"reason": "Evicted", "message": "used 2Gi"},
        {"reason": "DeadlineExceeded"},
        {"running_since": BACK},
        {"running_since": ""},
        {"exit": Exit("main", 1, finished_at="2026-11-21T20:15:16Z")},
    ],
    ids=["memory", "storage", "time", "started later", "never started", "ended later"],
)
def test_a_node_that_was_away_does_not_explain_every_end(changes: dict[str, Any]) -> None:
    """What the pod used too much of, and what began or ended when the node was back."""
    fields = {"node": "a", "running_since": STARTED, "exit": exited(1), **changes}
    end = classify_end(pod(**fields), NodeHealth("a", uid="uid", created=STARTED, since=BACK))
    assert isinstance(end, Failure)
    assert not end.disruption


def test_a_success_while_the_node_was_away_stands() -> None:
    """Its kubelet tells of it when it is back."""
    done = pod("Succeeded", running_since=STARTED, exit=exited(0, "Completed"))
    silent = NodeHealth("a", uid="uid", ready="Unknown", since=BACK)
    assert classify_end(done, silent) == "Succeeded"


def test_a_pod_that_a_node_short_of_something_did_not_admit_is_distinguished() -> None:
    """Evicted is also the kubelet's word where it does not admit: the program never ran."""
    words = "The node had condition: [DiskPressure]. "
    assert failure(pod(reason="Evicted", message=words)) == Failure(
        True, "Evicted", words, refused=True
    )


def test_an_exit_code_of_the_runs_choice_is_a_disruption() -> None:
    """By it a program says that it was told to go, and has saved its state."""
    ended = pod(exit=exited(85))
    assert not failure(ended).disruption
    told = classify_end(ended, None, (85, 86))
    assert told == Failure(True, "DisruptionExitCode", "", 85)
    assert classify_end(pod(exit=exited(1)), None, (85, 86)) == Failure(False, "Error", "", 1)


def test_a_pod_has_ended_whose_machine_is_off() -> None:
    """Silence of its node alone proves nothing, and nor does the taint of one that is back."""
    silent = NodeHealth("spot-0", uid="uid", ready="Unknown")
    assert classify_end(pod("Running", node="spot-0"), silent) is None
    assert classify_end(pod("Running"), silent._replace(ready="True", shut_down=True)) is None
    assert classify_end(pod("Running"), NodeHealth("spot-0")) is None
    assert classify_end(pod("Running"), silent._replace(shut_down=True)) is None
    off = classify_end(pod("Running"), silent._replace(shut_down=True, off=True))
    assert off == Failure(True, "NodeShutdown", "node spot-0 is shut down")
    gone = classify_end(pod("Running"), NodeHealth("spot-0", off=True))
    assert gone == Failure(True, "NodeGone", "node spot-0 is gone")


def test_evicted_without_disruption_target_is_the_programs_own_failure() -> None:
    """It used more storage than it may."""
    end = failure(pod(reason="Evicted", message="used 2Gi", exit=exited(137)))
    assert (end.disruption, end.reason, end.message) == (False, "Evicted", "used 2Gi")


def test_a_pod_that_a_user_deletes_has_ended_at_once() -> None:
    """Its program was told to stop: what it does then is not its own failure."""
    assert failure(pod("Running", deleted_at=BEFORE)).disruption
    assert failure(pod(deleted_at=BEFORE, exit=exited(143))).disruption


def test_a_program_that_failed_before_its_deletion_was_asked_for_failed() -> None:
    """The order of the two tells; in doubt, within one second, it was told to stop."""
    assert not failure(pod(deleted_at=AFTER, exit=exited(1))).disruption
    assert failure(pod(deleted_at=AT, exit=exited(1))).disruption


@pytest.mark.parametrize("how", [{"disruption": TARGET}, {"deleted_at": BEFORE}])
def test_exit_code_0_after_deletion_is_not_a_success(how: dict[str, Any]) -> None:
    """A program that saves its state upon SIGTERM and leaves has not finished its work."""
    assert failure(pod("Succeeded", exit=exited(0, "Completed"), **how)).disruption


def test_a_success_before_the_pod_was_deleted_counts() -> None:
    """Its deletion comes too late to undo it."""
    assert (
        classify_end(pod("Succeeded", exit=exited(0, "Completed"), deleted_at=AFTER)) == "Succeeded"
    )
    assert classify_end(pod("Succeeded")) == "Succeeded"


@pytest.mark.parametrize(
    ("code", "said", "word"),
    [
        *((1, "Error", "Error"), (137, "Error", "SIGKILL"), (139, "Error", "SIGSEGV")),
        *((143, "", "SIGTERM"), (137, "OOMKilled", "OOMKilled"), (255, "Error", "Error")),
        (127, "ContainerCannotRun", "ContainerCannotRun"),
    ],
)
def test_an_exit_code_is_explained_by_the_runtimes_reason_or_the_signal(
    code: int, said: str, word: str
) -> None:
    """Out of memory is told apart from a SIGKILL, though the code is the same."""
    assert failure(pod(exit=exited(code, said, "last line"))) == Failure(
        False, word, "last line", code
    )


def test_a_failed_pod_of_which_nothing_is_known_is_the_programs_failure() -> None:
    """Its own word, if it has one, is the reason."""
    assert failure(pod()) == Failure(False, "Failed", "", None)
    assert failure(pod(reason="Strange", message="words")) == Failure(False, "Strange", "words")


def test_a_success_without_a_time_counts_unless_the_pod_was_given_time_to_end() -> None:
    """The API server gives none to a pod that has ended."""
    untimed = Exit("main", 0, reason="Completed")
    for end in (None, untimed):
        assert classify_end(pod("Succeeded", exit=end, deleted_at=AFTER)) == "Succeeded"
        assert classify_end(pod("Succeeded", exit=end, disruption=TARGET)) == "Succeeded"
        asked = pod("Succeeded", exit=end, deleted_at=AFTER, given_grace=True)
        assert failure(asked).reason == "Deleted"


GONE_NODE = NodeHealth("node-a")
FINE_NODE = NodeHealth("node-a", "uid")


@pytest.mark.parametrize(
    ("last", "node", "reason"),
    [
        (pod("Running", disruption=TARGET), FINE_NODE, "PreemptionByScheduler"),
        (pod("Running", deleted_at=BEFORE), FINE_NODE, "Deleted"),
        (pod("Running"), FINE_NODE, "Deleted"),
        (pod("Running"), None, "Deleted"),
        (pod("Running"), GONE_NODE, "NodeGone"),
        (pod("Running"), NodeHealth("node-a", "uid", ready="Unknown"), "NodeNotReady"),
        (pod("Failed", reason="NodeLost"), FINE_NODE, "NodeLost"),
    ],
)
def test_a_pod_that_is_gone_is_a_disruption_as_its_last_state_tells(
    last: OwnedPod, node: NodeHealth | None, reason: str
) -> None:
    """A pod that had not ended is gone because somebody deleted it, or its node."""
    end = classify_gone(last, node, ())
    assert isinstance(end, Failure)
    assert (end.disruption, end.reason) == (True, reason)


def test_a_pod_that_is_gone_ended_as_it_had_ended() -> None:
    """Not as its deletion says, which came later."""
    assert classify_gone(pod("Succeeded", exit=exited(0, "Completed")), FINE_NODE, ()) == (
        "Succeeded"
    )
    assert classify_gone(pod(exit=exited(1)), FINE_NODE, ()) == Failure(False, "Error", "", 1)


def test_a_pod_whose_end_nobody_saw_is_a_disruption() -> None:
    """Programs do not delete their pods. Its node may tell why."""
    assert classify_unseen(pod("Unknown"), FINE_NODE) == VANISHED
    assert classify_unseen(pod("Unknown"), None) == VANISHED
    assert classify_unseen(pod("Unknown"), GONE_NODE).reason == "NodeGone"


VANISHED = Failure(True, "Vanished", "the pod is gone, and its reason is unknown")
PROGRAM = {code: Failure(False, "Error", "", code) for code in (1, 127, 128, 137, 255)}
OUT_OF_MEMORY = Failure(False, "OOMKilled", "", 137)


@pytest.mark.parametrize(
    ("policy", "failed", "again"),
    [
        *(("OnFailure", each, True) for each in (*PROGRAM.values(), OUT_OF_MEMORY)),
        *(("Never", each, False) for each in (*PROGRAM.values(), OUT_OF_MEMORY)),
        *(("ExitCode", PROGRAM[code], code >= 128) for code in PROGRAM),
        ("ExitCode", OUT_OF_MEMORY, False),
        ("ExitCode", Failure(False, "Failed", ""), True),
        *((policy, VANISHED, True) for policy in ("OnFailure", "Never", "ExitCode")),
        ("ExitCode", Failure(True, "Deleted", "", 1), True),
    ],
)
def test_restart_policy_and_exit_code_say_what_starts_again(
    policy: RestartPolicy, failed: Failure, again: bool
) -> None:
    """1 to 127 and out of memory are permanent under ExitCode; disruptions never are."""
    assert may_restart(policy, failed) is again
