"""What goes unseen is counted for what it was: pods that go at once, or while nobody looks.

Each controller is for one namespace: no other one may see what it does not.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from tests.cluster.live_runs import ALONE, StartInSpace, create_run
from tests.cluster.spaces import Json, Space
from webhook import names
from webhook.run.model.intervals import parse_intervals
from webhook.sandbox.fairlead import SandboxController
from webhook.times import to_second

pytest_plugins = ["tests.cluster.run_fixtures"]

TWO = {"worker": {"count": 2}}
FINALIZER = "example.com/archive"


@contextmanager
def asleep(controller: SandboxController) -> Iterator[None]:
    """It hears of all that happens meanwhile at once, before it looks at a run."""
    os.kill(controller.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(controller.pid, signal.SIGCONT)


def number(pod: Json) -> int:
    """FAIRLEAD_ATTEMPT of a pod."""
    env = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
    return int(env[names.ATTEMPT_VARIABLE])


def test_an_eviction_that_takes_no_time_is_known_by_the_last_state_of_the_pod(
    bare_space: Space, start_in_space: StartInSpace
) -> None:
    """Its node and its reason, though the pod is gone before anybody looks at the run."""
    controller = start_in_space("swift", *ALONE)
    live = create_run(bare_space, "swift", framework="jax", replicas=TWO)
    before = live.until_running("worker-0", "worker-1")["worker-1"]
    live.until_whole(2)
    target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    # kube-controller-manager takes back one that is older than two minutes
    target["lastTransitionTime"] = to_second(datetime.now(UTC))
    with asleep(controller):
        live.patch_status("worker-1", {"conditions": [target]})
        bare_space.delete("pods", "swift-worker-1", now=True)
    after = live.until_replaced("worker-1", before)
    last = live.status["lastFailure"]
    assert (last["reason"], last["node"]) == ("EvictionByEvictionAPI", before["spec"]["nodeName"])
    assert live.status["incidents"][0]["node"] == before["spec"]["nodeName"]
    assert "unseen" not in live.status
    assert number(after) > number(before)


def test_a_success_without_a_time_stays_a_success_when_its_pod_is_deleted(
    bare_space: Space, start_in_space: StartInSpace
) -> None:
    """The API server gives no grace to a pod that has ended."""
    controller = start_in_space("timeless", *ALONE)
    live = create_run(bare_space, "timeless", framework="jax", replicas=TWO, disruptionLimit=0)
    live.until_running("worker-0", "worker-1")
    live.until_whole(2)
    done = {"containerStatuses": [], "phase": "Succeeded"}
    with asleep(controller):
        finalizers = {"metadata": {"finalizers": [FINALIZER]}}
        bare_space.patch("pods", "timeless-worker-0", finalizers)
        live.patch_status("worker-0", done)
        bare_space.delete("pods", "timeless-worker-0")
    live.until("it has finished", lambda: live.role("worker")["succeeded"] == 1)
    bare_space.patch("pods", "timeless-worker-0", {"metadata": {"finalizers": None}})
    live.ends("worker-1", 0)
    assert live.until_phase("Succeeded", "Failed")["phase"] == "Succeeded"
    assert live.status["disruptions"] == 0


@pytest.mark.parametrize("labels", [(names.MANAGED_BY,), (names.MANAGED_BY, names.RUN_UID)])
def test_a_pod_that_loses_its_labels_is_looked_at_all_the_same(
    bare_space: Space, start_in_space: StartInSpace, labels: tuple[str, ...]
) -> None:
    """Other tools own some of them, and people may remove any."""
    start_in_space(f"bare-{len(labels)}", *ALONE)
    live = create_run(bare_space, "bare", framework="jax", replicas=TWO)
    live.until_running("worker-0", "worker-1")
    live.until_whole(2)
    without = {"metadata": {"labels": dict.fromkeys(labels)}}
    bare_space.patch("pods", "bare-worker-1", without)
    live.ends("worker-0", 0)
    live.ends("worker-1", 0)
    assert live.until_phase("Succeeded", "Failed")["phase"] == "Succeeded"


def test_a_pod_that_goes_while_no_controller_runs_is_known_by_its_node(
    bare_space: Space, start_in_space: StartInSpace
) -> None:
    """The status has it."""
    start_in_space("node-before", *ALONE)
    live = create_run(bare_space, "absent", framework="jax", replicas=TWO)
    before = live.until_running("worker-0", "worker-1")["worker-1"]
    live.until_whole(2)
    bare_space.plane.stop_component("node-before")
    bare_space.delete("pods", "absent-worker-1", now=True)
    start_in_space("node-after", *ALONE)
    live.until_replaced("worker-1", before)
    last = live.status["lastFailure"]
    assert (last["reason"], last["node"]) == ("Vanished", before["spec"]["nodeName"])
    assert live.role("worker")["disruptions"] == 1


@pytest.mark.parametrize("scope", ["Replica", "Run"])
def test_a_pod_that_nobody_saw_has_a_successor_with_a_greater_number(
    bare_space: Space, start_in_space: StartInSpace, scope: str
) -> None:
    """The controller is killed in the middle of creations. Peers that share its end restart."""
    first, second = f"seen-{scope.lower()}", f"unseen-{scope.lower()}"
    start_in_space(first, *ALONE)
    live = create_run(
        bare_space, "half", framework="jax", replicas={"worker": {"count": 100}}, restartScope=scope
    )
    live.until("it has begun", lambda: len(live.live()) > 5)
    bare_space.plane.stop_component(first)

    def runs(pod: Json) -> bool:
        return bool(pod["status"]["phase"] == "Running")

    live.until("those that are there run", lambda: all(map(runs, live.live().values())))
    there, status = live.live(), live.role("worker")
    assert status["creatingIndexes"]
    seen = {f"worker-{at}" for at in parse_intervals(status.get("activeIndexes", ""))}
    lost = max(there.keys() - seen or there.keys())
    bare_space.delete("pods", f"half-{lost}", now=True)
    start_in_space(second, *ALONE)
    live.until_whole(100)
    after = live.pods()
    assert number(after[lost]) > number(there[lost])
    kept = [
        name for name in there if after[name]["metadata"]["uid"] == there[name]["metadata"]["uid"]
    ]
    if scope == "Run":
        assert not kept
    else:
        assert set(kept) == there.keys() - {lost}
    assert live.status["disruptions"] == (0 if lost not in seen else 1)


@pytest.mark.parametrize("name", ["stripped", "overdue"])
def test_pods_that_lost_their_labels_end_with_their_run(
    bare_space: Space, start_in_space: StartInSpace, name: str
) -> None:
    """Their author may take the labels at any time: they are read live, and waited for."""
    first, suspends = f"{name}-before", name == "stripped"
    start_in_space(first, *ALONE)
    limit = {} if suspends else {"activeDeadlineSeconds": 20}
    live = create_run(bare_space, name, framework="jax", replicas=TWO, **limit)
    live.until_running("worker-0", "worker-1")
    live.until_whole(2)
    bare = {"metadata": {"labels": None, "finalizers": [FINALIZER]}}
    for index in range(2):
        bare_space.patch("pods", f"{name}-worker-{index}", bare)
    shown = bare_space.ask("run", "status", name)
    assert shown.exit_code == 0, shown.output
    assert "Missing" not in shown.output
    # Another controller knows what the status says, and nothing else.
    bare_space.plane.stop_component(first)
    live.set(suspend=suspends)
    start_in_space(f"{name}-after", *ALONE)
    live.until_phase("Suspended", "Failed")

    def pods() -> list[Json]:
        found = (bare_space.find("pods", f"{name}-worker-{index}") for index in range(2))
        return [pod for pod in found if pod]

    live.until("they end", lambda: all("deletionTimestamp" in pod["metadata"] for pod in pods()))
    assert len(pods()) == 2
    if suspends:
        live.until("it says so", lambda: "waiting until" in live.status["message"])
    assert live.role("worker")["creatingIndexes"] == "0-1"
    for pod in pods():
        bare_space.patch("pods", pod["metadata"]["name"], {"metadata": {"finalizers": None}})
    live.until("they are gone", lambda: not pods())
    live.until("it knows", lambda: "creatingIndexes" not in live.role("worker"), budget=60)
    assert "waiting" not in live.status["message"]


def test_a_run_that_its_author_made_long_is_suspended(
    bare_space: Space, start_in_space: StartInSpace
) -> None:
    """An annotation may be written at any time, and holds nothing."""
    start_in_space("long", *ALONE)
    live = create_run(bare_space, "long", framework="jax", replicas=TWO)
    live.until_running("worker-0", "worker-1")
    note = {"metadata": {"annotations": {"note": '"' * 200_000}}}
    bare_space.patch(names.RUNS, "long", note)
    live.set(suspend=True)
    live.until_phase("Suspended")
    live.until("its pods are gone", lambda: not live.pods())
    live.set(suspend=False)
    live.until_running("worker-0", "worker-1")
    assert live.run()["metadata"]["annotations"] == note["metadata"]["annotations"]
    assert not live.condition("Understood")
