"""What is counted when replicas go down, and which begin again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.run.scene import Scene, led, workers
from tests.wording import Wording, mentions
from webhook.run.actions import CreatePod, DeletePod

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


def test_restart_scope_role_begins_the_role_anew() -> None:
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


def test_restart_scope_run_begins_every_role_anew() -> None:
    """Charged is the role of the replica that went down."""
    scene = Scene(**led("pytorch", 2), restartScope="Run").runs().fails("worker-1", exit=None)
    assert scene.pods == []
    scene.later(10)
    assert attempts(scene) == {"master-0": 1, "worker-0": 1, "worker-1": 1}
    assert counts(scene, "worker") == (1, 0, 1)
    assert counts(scene, "master") == (0, 0, 0)


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


def test_a_role_that_begins_anew_forgets_who_had_finished() -> None:
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


def test_a_pod_that_vanished_is_a_disruption_and_is_made_anew() -> None:
    """It is looked up live first."""
    scene = Scene(**workers(2)).runs().vanishes("worker-1")
    assert counts(scene, "worker") == (0, 1, 1)
    assert scene.status.last_failure is not None
    assert scene.status.last_failure.disruption
    assert scene.later(10).pods == ["worker-0", "worker-1"]


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
