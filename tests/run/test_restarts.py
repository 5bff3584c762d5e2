"""What is counted when replicas go down, and which begin again."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.run.scene import BEGIN, DELAYS, Scene, led, workers
from tests.wording import Wording, mentions
from webhook import names
from webhook.backoff import RESTART_DELAYS, Delays
from webhook.run.actions import CreatePod, DeletePod
from webhook.run.model import Recovering, RoleStatus, RunStatus
from webhook.run.observed import Exit, NodeHealth
from webhook.run.restarts import (
    JITTER,
    MOST_REFUSALS,
    STABLE,
    BackoffState,
    backoff_state,
    entries_by_index,
    fill_in_wait,
    jitter,
    remaining_wait,
    to_entries,
)
from webhook.times import to_second

TARGET = ("EvictionByEvictionAPI", "drained", "2026-11-21T20:15:00Z")


def attempts(scene: Scene) -> dict[str, int]:
    """Each pod's attempt."""
    return {name: scene.pod(name).attempt for name in scene.pods}


def counts(scene: Scene, role: str) -> tuple[int, int, int]:
    """Failures, disruptions and restarts of a role."""
    one = scene.role(role)
    return one.failed, one.disruptions, one.restarts


def test_an_end_is_written_before_its_pod_is_deleted() -> None:
    """Its uid stays in the status for as long as the pod is there, and is counted once."""
    scene = Scene(**workers(2)).runs()
    uid = scene.pod("worker-1").uid
    scene.exits("worker-1", 1).later(3)
    assert scene.role("worker").counted_uids == (uid,)
    assert counts(scene, "worker") == (1, 0, 1)
    scene.later(7)
    assert DeletePod("mnist-worker-1", uid) in scene.did
    assert scene.role("worker").counted_uids == ()
    assert counts(scene, "worker") == (1, 0, 1)


def test_restart_scope_replica_starts_one_replica_again() -> None:
    """The default: the attempt stays, and so do all others."""
    scene = Scene(**led("pytorch", 2)).runs()
    kept = {name: scene.pod(name).uid for name in ("master-0", "worker-0")}
    scene.exits("worker-1", 1).later(10)
    assert {name: scene.pod(name).uid for name in kept} == kept
    assert attempts(scene) == {"master-0": 0, "worker-0": 0, "worker-1": 0}
    assert scene.pod("worker-1").phase == "Pending"


def test_restart_scope_role_restarts_the_role() -> None:
    """All its replicas, and no other role's; that is one restart."""
    scene = Scene(**led("pytorch", 2), restartScope="Role").runs()
    kept = scene.pod("master-0").uid
    scene.exits("worker-1", 1)
    assert scene.pods == ["master-0"]
    scene.later(10)
    assert attempts(scene) == {"master-0": 0, "worker-0": 1, "worker-1": 1}
    assert scene.pod("master-0").uid == kept
    assert counts(scene, "worker") == (1, 0, 1)
    assert counts(scene, "master") == (0, 0, 0)


def test_restart_scope_run_restarts_every_role() -> None:
    """Charged is the role of the replica that went down."""
    scene = Scene(**led("pytorch", 2), restartScope="Run").runs().fails("worker-1", exit=None)
    assert scene.pods == []
    scene.later(10)
    assert attempts(scene) == {"master-0": 1, "worker-0": 1, "worker-1": 1}
    assert counts(scene, "worker") == (1, 0, 1)
    assert counts(scene, "master") == (0, 0, 0)


@pytest.mark.parametrize("scope", ["Role", "Run"])
def test_what_restarts_together_waits_for_the_programs_of_the_attempt_before(
    scope: str, wording: Wording
) -> None:
    """A new rank 0 beside old peers would answer at the address of the old one."""
    scene = Scene(**workers(3), restartScope=scope).runs_on(
        worker_0="node-a", worker_1="node-b", worker_2="node-c"
    )
    # Programs that take their whole grace period.
    scene.off |= {"node-b", "node-c"}
    scene.exits("worker-0", 1).later(60)
    assert scene.pods == ["worker-1", "worker-2"]
    hindrance = scene.condition("Created")
    assert hindrance is not None
    assert hindrance.reason == "Terminating"
    mentions(scene.status.message, "mnist-worker-1", "node-b", "1 more")
    wording(scene.status.message)
    assert scene.vanishes("worker-1").pods == ["worker-2"]
    # A pod that has ended, and that a finalizer keeps, blocks its own name only.
    scene.exits("worker-2", 143)
    assert attempts(scene) == {"worker-0": 1, "worker-1": 1, "worker-2": 0}
    assert attempts(scene.vanishes("worker-2")) == {f"worker-{each}": 1 for each in range(3)}


def test_restart_scope_role_waits_for_no_other_role() -> None:
    """Of each role the replicas restart together."""
    scene = Scene(**led("pytorch", 2), restartScope="Role").runs()
    scene.off.add("node-a")
    scene.exits("worker-0", 1).vanishes("master-0")
    assert attempts(scene.later(60)) == {"master-0": 1, "worker-0": 0, "worker-1": 0}
    assert scene.role("worker").attempt == 1


def test_a_pod_on_a_lost_node_is_waited_for_by_its_own_replica_only() -> None:
    """Nobody can say when its program ends."""
    scene = Scene(**workers(2), restartScope="Run").runs_on(worker_0="node-a", worker_1="node-b")
    scene.off.add("node-b")
    scene.node("node-b", ready="Unknown", since=to_second(scene.now))
    scene.exits("worker-0", 1).later(60)
    assert attempts(scene) == {"worker-0": 1, "worker-1": 0}


@pytest.mark.parametrize("scope", ["Role", "Run"])
def test_what_goes_down_together_is_one_restart(scope: str) -> None:
    """Programs fail when a peer is taken from them: the disruption is the cause."""
    scene = Scene(**workers(3), restartScope=scope, backoffLimit=0).runs()
    scene.set("worker-0", phase="Failed")
    scene.set("worker-1", phase="Failed", disruption=TARGET)
    scene.fails("worker-2")
    assert counts(scene, "worker") == (0, 1, 1)
    assert scene.status.last_failure is not None
    assert scene.status.last_failure.replica == "mnist-worker-1"
    scene.later(10)
    assert attempts(scene) == {f"worker-{index}": 1 for index in range(3)}


def test_under_restart_scope_replica_each_failure_counts() -> None:
    """Each is started again by itself."""
    scene = Scene(**workers(3)).runs()
    scene.set("worker-0", phase="Failed")
    scene.fails("worker-1")
    assert counts(scene, "worker") == (2, 0, 2)


def test_pods_of_an_earlier_attempt_are_never_counted() -> None:
    """The controller took them down itself."""
    scene = Scene(**workers(2), restartScope="Role", backoffLimit=0).runs()
    scene.fails("worker-0", disruption=TARGET)
    assert counts(scene, "worker") == (0, 1, 1)
    assert all(action.attempt == 0 for action in scene.did if isinstance(action, CreatePod))
    scene.later(10).runs()
    assert counts(scene, "worker") == (0, 1, 1)


def test_a_restarted_role_forgets_its_finished_replicas() -> None:
    """A rendezvous needs every member."""
    scene = Scene(**workers(2), restartScope="Role").runs().exits("worker-0", 0)
    assert scene.role("worker").succeeded_indexes == "0"
    scene.exits("worker-1", 1)
    assert scene.role("worker").succeeded_indexes == ""
    scene.later(10)
    assert attempts(scene) == {"worker-0": 1, "worker-1": 1}


def test_a_finished_replica_whose_pod_is_gone_never_runs_again() -> None:
    """PodGC deletes succeeded pods of nodes that are gone."""
    scene = Scene(**workers(2)).runs().exits("worker-0", 0).vanishes("worker-0").later(1000)
    assert scene.pods == ["worker-1"]
    assert counts(scene, "worker") == (0, 0, 0)
    assert (scene.role("worker").succeeded, scene.role("worker").succeeded_indexes) == (1, "0")


def test_a_vanished_pod_is_a_disruption_and_is_recreated() -> None:
    """It is looked up live first."""
    scene = Scene(**workers(2)).runs().vanishes("worker-1")
    assert counts(scene, "worker") == (0, 1, 1)
    assert scene.status.last_failure is not None
    assert scene.status.last_failure.disruption
    assert scene.later(10).pods == ["worker-0", "worker-1"]


def test_a_pod_that_is_gone_is_counted_by_its_last_state() -> None:
    """Its node, its class and its time are known, though nobody looked while it was there."""
    scene = Scene(**workers(2)).runs_on(worker_0="spot-0", worker_1="spot-1")
    scene.node("spot-1", ready="True", capacity_class="spot")
    marks = ("EvictionByEvictionAPI", "drained", "")
    scene.later(100).goes("worker-1", disruption=marks, created=to_second(scene.now))
    last, [incident] = scene.status.last_failure, scene.status.incidents
    assert last is not None
    assert (last.node, last.reason) == ("spot-1", "EvictionByEvictionAPI")
    assert (incident.node, incident.capacity_class) == ("spot-1", "spot")
    assert scene.status.unseen == 0
    assert counts(scene, "worker") == (0, 1, 1)


def test_a_pod_that_had_ended_when_it_went_is_counted_as_it_ended() -> None:
    """A garbage collector deletes pods that have ended."""
    done = Exit("main", 0, reason="Completed", finished_at=to_second(BEGIN))
    scene = Scene(**workers(2)).runs().goes("worker-0", phase="Succeeded", exit=done)
    assert counts(scene, "worker") == (0, 0, 0)
    assert scene.role("worker").succeeded_indexes == "0"
    scene.goes("worker-1", phase="Failed", exit=done._replace(code=1))
    assert counts(scene, "worker") == (1, 0, 1)


def test_a_node_that_was_lost_while_nobody_looked_is_known() -> None:
    """By the status: the node, its class, and the classes that count for a fallback."""
    scene = Scene(**workers(2))
    scene.node("spot-1", ready="True", capacity_class="spot")
    scene.set("worker-0", phase="Running", node="spot-0", running_since=to_second(BEGIN))
    marks = {"node": "spot-1", "fallback": (("spot", None),)}
    scene.set("worker-1", phase="Running", running_since=to_second(BEGIN), **marks)
    scene.look()
    scene.observed = replace(scene.observed, nodes={"spot-0": NodeHealth("spot-0", "uid")})
    scene.vanishes("worker-1")
    last, [incident] = scene.status.last_failure, scene.status.incidents
    assert last is not None
    assert (last.node, last.reason) == ("spot-1", "NodeGone")
    assert (incident.node, incident.capacity_class) == ("spot-1", "spot")
    [history] = scene.role("worker").history
    assert (history.indexes, [each.capacity_class for each in history.events]) == ("1", ["spot"])
    assert scene.status.unseen == 1


def number(scene: Scene, name: str) -> int:
    """FAIRLEAD_ATTEMPT of the last pod of this name that was created."""
    created = [each for each in scene.did if isinstance(each, CreatePod)]
    return next(
        each.attempt + each.restarts
        for each in reversed(created)
        if f"{each.role}-{each.index}" == name
    )


def test_the_pods_of_a_retry_are_numbered_from_its_annotation() -> None:
    """The status remembers the number, so that no later change of the annotation lowers it."""
    scene = Scene(**workers(2), annotations={names.FIRST_ATTEMPT: "7"}).runs()
    assert [number(scene, each) for each in scene.pods] == [7, 7]
    assert attempts(scene) == {"worker-0": 0, "worker-1": 0}
    assert not RunStatus(replicas={"worker": RoleStatus(first_attempt=7)}).begun
    for text in ("0", "-1", "x", "9" * 10):
        scene.annotate({names.FIRST_ATTEMPT: text})
        scene.exits("worker-1", 1).later(60).later(3600)
    assert number(scene, "worker-1") == 7 + scene.role("worker").restarts > 7
    stored = json.loads(json.dumps(scene.status.to_json()))["replicas"]["worker"]
    assert stored["firstAttempt"] == 7
    assert "firstAttempt" not in Scene(**workers(1)).status.to_json()["replicas"]["worker"]


def test_a_live_run_keeps_to_the_limits_that_it_has_now() -> None:
    """One failure more, one disruption more, another deadline, and what becomes of the pods."""
    scene = Scene(**workers(2), backoffLimit=0, disruptionLimit=0).runs()
    scene.spec(backoff_limit=1).exits("worker-1", 1).later(60).runs()
    assert (scene.status.phase, counts(scene, "worker")) == ("Running", (1, 0, 1))
    scene.spec(disruption_limit=None)
    scene.set("worker-0", disruption=TARGET)
    scene.vanishes("worker-0").later(60).runs()
    assert (scene.status.phase, counts(scene, "worker")) == ("Running", (1, 1, 2))
    scene.spec(active_deadline_seconds=60).later(1)
    failed = scene.condition("Failed")
    assert failed is not None
    assert failed.reason == "DeadlineExceeded"
    scene = Scene(**workers(2), cleanPodPolicy="All", activeDeadlineSeconds=60).runs()
    scene.spec(active_deadline_seconds=600, clean_pod_policy="None").later(100)
    assert scene.status.phase == "Running"
    assert scene.later(600).status.phase == "Failed"
    assert scene.later(60).pods == ["worker-0", "worker-1"]
    assert scene.spec(clean_pod_policy="Running").later(60).pods == []


@pytest.mark.parametrize("scope", ["Replica", "Role", "Run"])
def test_a_pod_that_nobody_saw_is_charged_to_nobody_and_its_next_has_a_greater_number(
    scope: str,
) -> None:
    """The controller was killed in the middle of creations. Where all restart together, they do."""
    scene = Scene(**workers(3), restartScope=scope).look()
    before = {name: scene.pod(name).uid for name in ("worker-0", "worker-1")}
    scene.set("worker-0", phase="Running", node="node-a", running_since=to_second(BEGIN))
    scene.unseen("worker", 2).later(10)
    assert counts(scene, "worker") == (0, 0, 0)
    assert scene.pods == ["worker-0", "worker-1", "worker-2"]
    assert number(scene, "worker-2") == 1
    again = [name for name, uid in before.items() if scene.pod(name).uid != uid]
    assert again == ([] if scope == "Replica" else ["worker-0", "worker-1"])


def test_peers_that_have_not_started_are_left_alone_where_a_pod_may_have_been() -> None:
    """They cannot have met its program."""
    scene = Scene(**workers(3), restartScope="Run").look()
    before = scene.pod("worker-0").uid
    scene.unseen("worker", 2)
    assert (scene.pod("worker-0").uid, number(scene, "worker-2")) == (before, 1)
    assert scene.role("worker").attempt == 0


def test_what_becomes_of_the_pod_of_a_finished_replica_is_no_disruption() -> None:
    """Its status may lack the time at which it ended."""
    scene = Scene(**workers(2), disruptionLimit=0).runs()
    scene.set("worker-0", phase="Succeeded", ready=False)
    scene.look()
    scene.set("worker-0", deleted_at=to_second(scene.now), given_grace=True)
    scene.later(5)
    assert counts(scene, "worker") == (0, 0, 0)
    assert scene.status.phase != "Failed"


def test_a_name_is_waited_for_until_its_pod_is_gone(wording: Wording) -> None:
    """A pod that somebody deletes is counted when that is asked, and replaced when it is gone."""
    scene = Scene(**workers(1)).runs()
    scene.set("worker-0", deleted_at="2026-11-21T20:15:00Z")
    scene.look().later(60)
    assert counts(scene, "worker") == (0, 1, 1)
    assert not any(isinstance(action, DeletePod) for action in scene.did)
    mentions(scene.status.message, "mnist-worker-0", "node-a", "gone")
    wording(scene.status.message)
    scene.vanishes("worker-0")
    assert scene.pods == ["worker-0"]
    assert counts(scene, "worker") == (0, 1, 1)


def test_an_ended_pod_that_the_api_server_deleted_by_half_is_deleted_again() -> None:
    """Nothing else removes it, and its name would never be free."""
    scene = Scene(**workers(1)).runs()
    ended = {"phase": "Failed", "deleted_at": "2026-11-21T20:15:00Z"}
    scene.set("worker-0", **ended)
    scene.look().later(60)
    assert not any(isinstance(action, DeletePod) for action in scene.did)
    scene.set("worker-0", half_deleted=True)
    scene.look().later(60)
    assert sum(isinstance(action, DeletePod) for action in scene.did) == 1
    assert scene.pods == ["worker-0"]


def test_a_suspension_keeps_the_counts_and_who_had_finished() -> None:
    """It frees the pods, and their end is not counted."""
    scene = Scene(**workers(3)).runs().exits("worker-0", 0).exits("worker-1", 1)
    scene.spec(suspend=True)
    assert scene.pods == ["worker-0"]
    assert counts(scene, "worker") == (1, 0, 1)
    scene.later(1000).spec(suspend=False)
    assert attempts(scene) == {"worker-0": 0, "worker-1": 1, "worker-2": 1}
    assert counts(scene, "worker") == (1, 0, 1)
    assert scene.role("worker").succeeded_indexes == "0"


def test_the_last_failure_is_kept() -> None:
    """Which replica, where, its exit code, and the last that it wrote."""
    scene = Scene(**workers(1)).runs().exits("worker-0", 137, message="epoch 3\nkilled")
    last: Any = scene.status.last_failure
    assert (last.replica, last.node, last.exit_code) == ("mnist-worker-0", "node-a", 137)
    assert (last.reason, last.message) == ("SIGKILL", "epoch 3\nkilled")
    assert last.time == "2026-11-21T20:15:00Z"
    assert not last.disruption
    assert scene.later(10).runs().status.last_failure == last


def waits(scene: Scene) -> float:
    """Seconds until worker-0 is made again, looked at as often as the run asks for."""
    begin = scene.now
    while "worker-0" not in scene.pods or scene.pod("worker-0").phase == "Failed":
        assert scene.after is not None
        scene.later(scene.after)
    return (scene.now - begin).total_seconds()


def test_the_delay_doubles_from_10_seconds_to_6_minutes() -> None:
    """As in Kubernetes' Job controller and kubelet."""
    assert [RESTART_DELAYS.after(row) for row in range(1, 9)] == [
        10,
        20,
        40,
        80,
        160,
        320,
        360,
        360,
    ]
    assert RESTART_DELAYS.after(10**6) == 360


def test_a_replica_that_fails_again_and_again_waits_ever_longer() -> None:
    """The pod that failed stays until then: its log can be read."""
    scene = Scene(**workers(1), backoffLimit=9)
    waited = []
    for _ in range(7):
        scene.runs().exits("worker-0", 1)
        assert scene.pods == ["worker-0"]
        waited.append(waits(scene))
    assert waited == [10, 20, 40, 80, 160, 320, 360]


def test_an_admin_sets_the_first_and_the_longest_wait() -> None:
    """The wait doubles in between, as it does by default."""
    scene = Scene(**workers(1), backoffLimit=9, restart_delays=Delays(first=2.0, longest=6.0))
    waited = []
    for _ in range(4):
        scene.runs().exits("worker-0", 1)
        waited.append(waits(scene))
    assert waited == [2, 4, 6, 6]


def test_the_first_restart_after_a_disruption_comes_at_once_and_others_wait() -> None:
    """A node that evicts everything would be asked without end."""
    scene = Scene(**workers(1))
    waited = []
    for _ in range(4):
        scene.runs().vanishes("worker-0")
        assert scene.pods == []
        waited.append(waits(scene))
    assert 0 < waited[0] < JITTER
    assert waited[1:] == [10, 20, 40]


def test_failures_and_disruptions_wait_by_rows_of_their_own() -> None:
    """Neither makes the other wait longer."""
    scene = Scene(**workers(1), backoffLimit=9)
    scene.runs().exits("worker-0", 1)
    assert waits(scene) == 10
    scene.runs().vanishes("worker-0")
    assert waits(scene) < JITTER
    scene.runs().exits("worker-0", 1)
    assert waits(scene) == 20
    scene.runs().vanishes("worker-0")
    assert waits(scene) == 10


def test_disruptions_are_forgiven_after_a_stable_time() -> None:
    """The next one is the first again."""
    scene = Scene(**workers(1))
    for _ in range(3):
        scene.runs().vanishes("worker-0")
        waits(scene)
    scene.runs().later(STABLE).vanishes("worker-0")
    assert waits(scene) < JITTER


def test_runs_begin_again_at_different_moments() -> None:
    """Those that lose their nodes at the same time; one run always at the same."""
    moments = {jitter(f"run-{number}", "now") for number in range(50)}
    assert len(moments) > 40
    assert all(0 <= each < JITTER for each in moments)
    assert jitter("run-1", "now") in moments


@pytest.mark.parametrize("reason", ["NodeAffinity", "OutOfcpu", "UnexpectedAdmissionError"])
def test_a_pod_that_its_kubelet_refuses_waits_as_after_a_failure(reason: str) -> None:
    """Else it would be made and refused without end: the scheduler's view is the same."""
    scene = Scene(**workers(1), backoffLimit=0)
    waited = []
    for _ in range(3):
        scene.fails("worker-0", reason=reason, node="node-a")
        waited.append(waits(scene))
    assert waited == [10, 20, 40]
    assert (scene.role("worker").failed, scene.role("worker").restarts) == (0, 3)


def test_a_pod_that_kubelets_refuse_again_and_again_ends_the_run(wording: Wording) -> None:
    """After half an hour; a pod that was admitted in between begins the count again."""
    scene = Scene(**workers(1))
    for _ in range(MOST_REFUSALS - 1):
        scene.fails("worker-0", reason="OutOfcpu", node="node-a")
        waits(scene)
    scene.runs().vanishes("worker-0")
    waits(scene)
    for _ in range(MOST_REFUSALS - 1):
        scene.fails("worker-0", reason="OutOfcpu", node="node-a")
        waits(scene)
    assert scene.status.phase != "Failed"
    scene.fails("worker-0", reason="OutOfcpu", node="node-a")
    failed = scene.condition("Failed")
    assert failed is not None
    assert failed.reason == "PodRefused"
    mentions(failed.message, "worker-0", "OutOfcpu", "node-a", str(MOST_REFUSALS))
    wording(failed.message)


def test_a_replica_that_was_stable_begins_at_10_seconds_again() -> None:
    """It has shown that it can run."""
    scene = Scene(**workers(1), backoffLimit=9)
    for _ in range(3):
        scene.runs().exits("worker-0", 1)
        waits(scene)
    scene.runs().later(STABLE)
    assert scene.role("worker").recovering == ()
    scene.exits("worker-0", 1)
    assert waits(scene) == 10


def test_each_replica_waits_for_itself() -> None:
    """The others are left alone."""
    scene = Scene(**workers(3), backoffLimit=9).runs()
    kept = scene.pod("worker-1").uid
    scene.exits("worker-0", 1).later(5).exits("worker-2", 1)
    assert scene.after == 5
    scene.later(5)
    assert [scene.pod(each).phase for each in scene.pods] == ["Pending", "Running", "Failed"]
    scene.later(5)
    assert [scene.pod(each).phase for each in scene.pods] == ["Pending", "Running", "Pending"]
    assert scene.pod("worker-1").uid == kept


def test_a_clock_that_was_set_back_delays_at_most_by_the_whole_delay() -> None:
    """A failure of tomorrow waits no longer than one of now."""
    tomorrow = to_second(BEGIN + timedelta(days=1))
    entry = Recovering(indexes="0", failures=2, wait_milliseconds=20_000, since=tomorrow)
    assert remaining_wait(entry, BEGIN) == 20
    assert remaining_wait(None, BEGIN) == 0


@pytest.mark.parametrize(
    ("delays", "wait"), [(DELAYS, 20), (Delays(first=100.0, longest=150.0), 150)]
)
def test_a_status_without_a_wait_is_read_by_its_failures(delays: Delays, wait: float) -> None:
    """An older controller wrote none: replicas in backoff wait as the admin's settings say."""
    scene = Scene(**workers(1), backoffLimit=9, restart_delays=delays).runs().exits("worker-0", 1)
    waits(scene)
    before = scene.runs().exits("worker-0", 1).role("worker")
    older = tuple(each.model_copy(update={"wait_milliseconds": None}) for each in before.recovering)
    replicas = {"worker": before.model_copy(update={"recovering": older})}
    status = scene.status.model_copy(update={"replicas": replicas})
    scene.run = scene.run.model_copy(update={"status": status})
    scene.look()
    assert scene.after == wait
    assert scene.role("worker").recovering == before.recovering


def test_a_disruption_without_a_wait_waits_for_nothing() -> None:
    """Only failures have a backoff."""
    entry = Recovering(indexes="0", disruptions=1, since=to_second(BEGIN))
    assert remaining_wait(fill_in_wait(entry, RESTART_DELAYS), BEGIN) == 0
    assert backoff_state(entry) == BackoffState(0, 1, 0, 0.0, to_second(BEGIN))


def test_a_clock_that_was_ahead_holds_a_run_no_longer_than_its_longest_wait() -> None:
    """What it wrote of the future counts from now on: backoff, and failures that wait."""
    scene = Scene(incident_window=90.0, **workers(2), backoffLimit=9).runs()
    scene.now += timedelta(days=1)
    scene.exits("worker-0", 1)
    scene.now -= timedelta(days=1)
    scene.look()
    assert scene.after == 10
    scene.later(10)
    assert scene.pod("worker-0").phase == "Pending"
    scene.later(80)
    assert scene.role("worker").failed == 1


EARLIER, LATER = "2026-11-21T20:00:00Z", "2026-11-21T20:00:05Z"
ONE = BackoffState(1, 0, 0, 10.0, EARLIER, '{"later":[1]}')


@pytest.mark.parametrize(
    "rows",
    [
        {},
        {
            0: ONE,
            1: ONE,
            3: BackoffState(2, 0, 1, 20.0, EARLIER),
            2: BackoffState(1, 3, 0, 0.5, LATER),
        },
    ],
)
def test_what_waits_is_kept_together_and_read_again(rows: dict[int, BackoffState]) -> None:
    """A gang of thousands that went down at once is one entry."""
    entries = to_entries(rows)
    assert {
        index: backoff_state(entry) for index, entry in entries_by_index(entries).items()
    } == rows
    assert len(entries) == len(set(rows.values()))
