"""What a leader remembers of pods, and within which bounds."""

from __future__ import annotations

import pytest

from webhook.controller import pod_memory
from webhook.controller.pod_memory import PodMemory
from webhook.kube.cache import Change
from webhook.run.observed import OwnedPod


def pod(number: int, run: str = "run") -> OwnedPod:
    return OwnedPod(
        f"{run}-worker-{number}", f"{run}-{number}", run, "worker", number, 0, "Running"
    )


def gone(number: int, run: str = "run") -> Change[OwnedPod]:
    return Change(f"lab/{run}-worker-{number}", pod(number, run), None)


def leader() -> PodMemory:
    memory = PodMemory()
    memory.begin()
    return memory


def test_a_deleted_pod_is_remembered_until_it_is_counted() -> None:
    """Also one whose name another pod has by now; one that only changed is not gone."""
    memory = leader()
    memory.pod_changed(gone(0))
    memory.pod_changed(Change("lab/run-worker-1", pod(1), pod(2)))
    memory.pod_changed(Change("lab/run-worker-3", pod(3), pod(3)))
    assert memory.gone("run") == (pod(0), pod(1))
    memory.forget("run", ("run-0",))
    assert memory.gone("run") == (pod(1),)
    memory.forget_run("run")
    assert memory.gone("run") == ()


def test_a_pod_that_left_the_watch_is_remembered_until_a_read_finds_nothing() -> None:
    """It may only have lost the label that the watch selects."""
    memory = leader()
    memory.pod_changed(gone(0))
    memory.pod_changed(gone(1))
    memory.forget("run", ("run-0", "run-1"))
    names = frozenset({"run-worker-0", "run-worker-1"})
    assert memory.unwatched("run") == names
    memory.read("run", pod_names=["run-worker-1"], absent=["run-worker-0"])
    assert memory.unwatched("run") == names - {"run-worker-0"}
    memory.read("run", pod_names=["run-worker-2"], absent=[])
    memory.forget_unwatched("run")
    assert memory.unwatched("run") == frozenset()


def test_without_the_lease_nothing_is_remembered() -> None:
    """Another process counts and creates, and nobody tells this one."""
    memory = PodMemory()
    memory.pod_changed(gone(0))
    memory.plan("run", ("run-worker-0",))
    assert (memory.gone("run"), memory.uncreated("run")) == ((), frozenset())
    memory.begin()
    memory.pod_changed(gone(0))
    memory.plan("run", ("run-worker-0",))
    memory.end()
    assert (memory.gone("run"), memory.uncreated("run")) == ((), frozenset())


def test_the_memory_is_bounded_and_no_run_takes_the_place_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the run with most deleted pods the oldest is forgotten."""
    monkeypatch.setattr(pod_memory, "MOST_GONE", 5)
    memory = leader()
    memory.pod_changed(gone(0, "small"))
    for number in range(20):
        memory.pod_changed(gone(number))
    assert memory.gone("small") == (pod(0, "small"),)
    assert memory.gone("run") == tuple(pod(number) for number in range(16, 20))


def test_a_planned_pod_is_known_not_to_exist_until_its_creation_is_sent() -> None:
    """Whatever the answer is; a rejection plans it again."""
    memory = leader()
    memory.plan("run", ("a", "b"))
    memory.sent("run", "a")
    memory.sent("other", "a")
    assert memory.uncreated("run") == {"b"}
    memory.sent("run", "b")
    assert memory.uncreated("run") == frozenset()
