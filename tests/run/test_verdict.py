"""When a run is over, and why."""

from __future__ import annotations

from typing import Any

import pytest

from tests.run.scene import Scene, led, workers
from tests.wording import Wording, mentions

TARGET = ("DeletionByTaintManager", "node is gone", "2026-11-21T20:15:00Z")


def ended(scene: Scene) -> tuple[str, str, str]:
    """Phase, and the reason and words of the condition that says it."""
    condition = scene.condition(scene.status.phase)
    assert condition is not None
    assert condition.status == "True"
    assert scene.status.completion_time is not None
    return scene.status.phase, condition.reason, condition.message


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_one_failure_more_than_backoff_limit_ends_a_run(limit: int, wording: Wording) -> None:
    """So many are started again; the next one is too many."""
    scene = Scene(**workers(1), backoffLimit=limit)
    for _ in range(limit):
        scene.runs().exits("worker-0", 1)
        assert scene.status.phase == "Restarting"
        scene.later(360)
    scene.runs().exits("worker-0", 1, message="no loss")
    phase, reason, message = ended(scene)
    assert (phase, reason) == ("Failed", "BackoffLimitExceeded")
    mentions(message, "worker-0", "exited with 1", "node-a", f"failure {limit + 1}")
    mentions(message, f"backoffLimit is {limit}")
    wording(message)
    assert scene.role("worker").failed == limit + 1
    assert scene.status.last_failure is not None
    assert scene.status.last_failure.message == "no loss"


def test_failures_of_all_roles_share_one_budget() -> None:
    """It is the run's."""
    scene = Scene(**led("pytorch"), backoffLimit=1).runs()
    scene.exits("worker-0", 1)
    assert scene.status.phase == "Restarting"
    scene.exits("master-0", 1)
    assert ended(scene)[1] == "BackoffLimitExceeded"


def test_disruptions_are_never_charged_to_backoff_limit() -> None:
    """By default there may be any number of them."""
    scene = Scene(**workers(1), backoffLimit=0)
    for _ in range(5):
        scene.runs().fails("worker-0", disruption=TARGET)
        scene.later(360)
    assert scene.status.phase in ("Restarting", "Pending")
    assert (scene.role("worker").failed, scene.role("worker").disruptions) == (0, 5)
    assert scene.status.disruptions == 5


def test_failures_are_never_charged_to_disruption_limit() -> None:
    """The two budgets know nothing of each other."""
    scene = Scene(**workers(1), disruptionLimit=0).runs().exits("worker-0", 1)
    assert scene.status.phase == "Restarting"


@pytest.mark.parametrize("limit", [0, 2])
def test_one_disruption_more_than_disruption_limit_ends_a_run(limit: int) -> None:
    """Where there is such a limit."""
    scene = Scene(**workers(1), disruptionLimit=limit)
    for _ in range(limit):
        scene.runs().vanishes("worker-0")
        assert scene.status.phase == "Restarting"
        scene.later(360)
    scene.runs().vanishes("worker-0")
    assert ended(scene)[:2] == ("Failed", "DisruptionLimitExceeded")


@pytest.mark.parametrize(
    ("policy", "code", "word", "reason"),
    [
        ("Never", 137, "Error", "PermanentFailure"),
        ("ExitCode", 1, "Error", "PermanentFailure"),
        ("ExitCode", 127, "Error", "PermanentFailure"),
        ("ExitCode", 137, "OOMKilled", "OutOfMemory"),
    ],
)
def test_a_permanent_failure_ends_a_run_within_its_budget(
    policy: str, code: int, word: str, reason: str, wording: Wording
) -> None:
    """The role's restart policy and the exit code say which is."""
    scene = Scene(**workers(1, restartPolicy=policy)).runs().exits("worker-0", code, word)
    phase, why, message = ended(scene)
    assert (phase, why) == ("Failed", reason)
    mentions(message, "worker-0", f"exited with {code}", "restartPolicy of worker", policy)
    wording(message)


def test_a_deadline_ends_a_run_that_is_active_for_so_long(wording: Wording) -> None:
    """Its controller is told when to look."""
    scene = Scene(**workers(1), activeDeadlineSeconds=60).runs()
    assert scene.after == 60
    scene.later(59)
    assert scene.status.phase == "Running"
    scene.later(1)
    phase, reason, message = ended(scene)
    assert (phase, reason) == ("Failed", "DeadlineExceeded")
    mentions(message, "1m", "activeDeadlineSeconds")
    wording(message)


def test_a_suspension_starts_the_deadline_again() -> None:
    """And a run at rest has none."""
    scene = Scene(**workers(1), activeDeadlineSeconds=60).later(50)
    assert scene.spec(suspend=True).later(1000).status.phase == "Suspended"
    assert scene.spec(suspend=False).later(59).status.phase == "Pending"
    assert ended(scene.later(1))[1] == "DeadlineExceeded"


FIRST: dict[str | None, tuple[dict[str, int], str]] = {
    "tensorflow": ({"master": 1, "worker": 2, "ps": 1}, "master"),
    "pytorch": ({"master": 1, "worker": 2}, "master"),
    "mpi": ({"launcher": 1, "worker": 2}, "launcher"),
    "xgboost": ({"master": 1, "worker": 2}, "master"),
    "dask": ({"scheduler": 1, "worker": 2, "driver": 1}, "driver"),
    "ray": ({"head": 1, "worker": 2, "driver": 1}, "driver"),
    None: ({"master": 1, "worker": 2}, "master"),
}


@pytest.mark.parametrize("framework", FIRST)
def test_the_leader_of_a_framework_ends_its_run(framework: str | None) -> None:
    """Though the others still run; that all workers finish does not."""
    roles, leader = FIRST[framework]
    replicas = {role: {"count": count} for role, count in roles.items()}
    spec: dict[str, Any] = {"framework": framework} if framework else {}
    scene = Scene(replicas=replicas, **spec)
    for _ in roles:
        scene.runs()
    for index in range(2):
        scene.exits(f"worker-{index}", 0)
    assert scene.status.phase not in ("Succeeded", "Failed")
    scene.exits(f"{leader}-0", 0)
    assert ended(scene) == ("Succeeded", "Finished", f"{leader} finished")


@pytest.mark.parametrize("framework", ["tensorflow", "pytorch", "jax"])
def test_without_a_leader_every_worker_ends_its_run(framework: str) -> None:
    """Each of them, and each once."""
    scene = Scene(framework=framework, replicas={"worker": {"count": 3}}).runs()
    for index in (0, 2):
        scene.exits(f"worker-{index}", 0)
    assert scene.status.phase == "Running"
    assert scene.role("worker").succeeded_indexes == "0,2"
    scene.exits("worker-1", 0)
    assert ended(scene) == ("Succeeded", "Finished", "every worker finished")


def test_a_result_outweighs_a_failure_observed_with_it() -> None:
    """What the run was for is there."""
    scene = Scene(**led("pytorch"), backoffLimit=0).runs()
    scene.set("master-0", phase="Succeeded")
    scene.exits("worker-0", 1)
    assert scene.status.phase == "Succeeded"


def test_a_run_without_replicas_is_one_pod() -> None:
    """Its end is the run's."""
    scene = Scene().runs().exits("master-0", 0)
    assert scene.status.phase == "Succeeded"


def finishing(workers: int, *begun: str, **spec: Any) -> Scene:
    """An elastic run from one replica on, of which some run."""
    spec |= {"framework": "pytorch", "pytorch": {"elastic": {"minReplicas": 1}}}
    return Scene(replicas={"worker": {"count": workers}}, **spec).runs(*begun)


def test_an_elastic_run_ends_with_those_that_worked(wording: Wording) -> None:
    """One that never had a node is waited for no longer than those that work."""
    scene = finishing(3, "worker-0", "worker-1").later(60).exits("worker-1", 0)
    assert (scene.status.phase, scene.status.message) == (
        "Running",
        "1 of 3 replicas run, 1 have finished",
    )
    scene.exits("worker-0", 0)
    assert ended(scene)[:2] == ("Succeeded", "Finished")
    wording(ended(scene)[2])


def test_nothing_is_created_after_the_first_of_an_elastic_run_has_finished() -> None:
    """The rendezvous is closed: a new one would fail."""
    scene = finishing(3, "worker-0", "worker-1", "worker-2").later(60)
    scene.fails("worker-2", disruption=TARGET).exits("worker-1", 0)
    scene.later(400)
    assert scene.pods == ["worker-0", "worker-1", "worker-2"]
    assert ended(scene.exits("worker-0", 0))[0] == "Succeeded"


def test_one_that_comes_after_the_first_has_finished_does_not_count() -> None:
    """Its failure is charged to nobody, though the budget is 0."""
    scene = finishing(3, "worker-0", "worker-1", backoffLimit=0).later(60)
    scene.exits("worker-1", 0).later(5).runs("worker-2").exits("worker-2", 1)
    assert (scene.status.phase, scene.role("worker").failed) == ("Running", 0)
    assert ended(scene.exits("worker-0", 0))[0] == "Succeeded"


def test_a_failure_beside_the_first_that_finished_is_within_the_budget() -> None:
    """So a run whose budget is 0 fails by it, and others end well."""
    for limit, phase in ((0, "Failed"), (1, "Succeeded")):
        scene = finishing(2, "worker-0", "worker-1", backoffLimit=limit).later(60)
        scene.exits("worker-1", 0).exits("worker-0", 1)
        assert ended(scene)[0] == phase


def test_a_suspension_does_not_end_an_elastic_run_that_works() -> None:
    """What worked beside the first that finished did not; resumed, it has nobody to work with."""
    scene = finishing(2, "worker-0", "worker-1").later(60).exits("worker-1", 0)
    assert scene.spec(suspend=True).later(1).status.phase == "Suspended"
    assert ended(scene.spec(suspend=False))[0] == "Succeeded"
