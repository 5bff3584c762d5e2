"""From changes in the caches to keys in the queue."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controller.runs import UID, raw_node, raw_pod, stored_run
from webhook.controller import controller as module
from webhook.controller.controller import EventRouter
from webhook.controller.observed_state import ObservedState
from webhook.kube.cache import Cache
from webhook.kube.work_queue import WorkQueue
from webhook.run import observation


class Stage:
    """A router whose clock stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.known = ObservedState()
        self.router = EventRouter(self.known, clock=lambda: self.now)
        self.queue = WorkQueue(clock=lambda: self.now)

    def pod(self, index: int, version: int = 9) -> None:
        raw = raw_pod(index, uid=f"u{version}")
        self.known.pods.put(f"lab/mnist-worker-{index}", observation.pod(raw))

    async def begin_with_a_run(self) -> None:
        """The router adds to the queue, and has looked at its first run."""
        self.router.begin(self.queue)
        self.known.runs.put("lab/mnist", stored_run())
        await self.taken()

    async def taken(self) -> list[str]:
        """The keys that are ready, each looked at now."""
        found = []
        while self.queue.agenda.ready:
            key = await self.queue.get()
            assert key is not None
            found.append(key)
            self.queue.done(key)
            self.router.note_reconciled(key)
        return found


async def test_a_leader_begins_with_every_run() -> None:
    """Whatever happened while nobody led is seen so."""
    stage = Stage()
    stage.known.runs.put("lab/mnist", stored_run())
    stage.pod(0)
    assert stage.queue.agenda.ready == 0
    stage.router.begin(stage.queue)
    assert await stage.taken() == ["lab/mnist"]


async def test_a_changed_run_is_looked_at_at_once() -> None:
    """A change, a deletion, and a status that was written, whenever it was looked at last."""
    stage = Stage()
    stage.router.begin(stage.queue)
    for change in (stored_run(), stored_run(version=6), None):
        stage.known.runs.put("lab/mnist", change)
        assert await stage.taken() == ["lab/mnist"]


@pytest.mark.parametrize("pause_per_pod", [module.PAUSE_PER_POD, 1000])
async def test_after_the_longest_pause_a_pods_event_is_handled_at_once(
    monkeypatch: pytest.MonkeyPatch, pause_per_pod: float
) -> None:
    """A failure is not waited for, however many pods the run has."""
    monkeypatch.setattr(module, "PAUSE_PER_POD", pause_per_pod)
    stage = Stage()
    await stage.begin_with_a_run()
    stage.now += module.LONGEST_PAUSE
    stage.pod(0)
    assert await stage.taken() == ["lab/mnist"]


async def test_many_events_are_one_look() -> None:
    """The next look waits the longer the more pods the run has, up to a second."""
    stage = Stage()
    stage.router.begin(stage.queue)
    stage.known.runs.put("lab/mnist", stored_run())
    for index in range(2000):
        stage.pod(index)
    await stage.taken()
    for index in range(2000):
        stage.pod(index, version=10)
    assert (stage.queue.agenda.ready, len(stage.queue.agenda.due)) == (0, 1)


async def test_what_belongs_to_no_known_run_adds_nothing() -> None:
    """The run's own coming is what counts; a run that is gone has the garbage collector."""
    stage = Stage()
    stage.router.begin(stage.queue)
    stage.pod(0)
    stage.known.config_maps.put("lab/mnist", UID)
    assert (stage.queue.agenda.ready, len(stage.queue.agenda.due)) == (0, 0)


async def test_services_and_deployments_count_as_pods_do() -> None:
    """Somebody may delete them."""
    stage = Stage()
    await stage.begin_with_a_run()
    raw = {"metadata": raw_pod(0)["metadata"], "spec": {}}
    known = stage.known
    known_caches: tuple[Cache[Any], ...] = (
        known.services,
        known.config_maps,
        known.deployments,
    )
    for cache in known_caches:
        stage.now += module.LONGEST_PAUSE
        cache.put("lab/mnist", cache.keep(raw))
        assert await stage.taken() == ["lab/mnist"]


async def test_who_does_not_lead_adds_nothing() -> None:
    """Its queue is gone."""
    stage = Stage()
    stage.router.begin(stage.queue)
    stage.router.end()
    stage.known.runs.put("lab/mnist", stored_run())
    assert stage.queue.agenda.ready == 0


async def test_a_node_that_changes_is_a_reason_to_look_at_the_runs_that_have_pods_there() -> None:
    """A heartbeat is none, and nor is another node."""
    stage = Stage()
    stage.known.runs.put("lab/mnist", stored_run())
    raw = {**raw_pod(0), "spec": {"nodeName": "spot-0"}}
    stage.known.pods.put("lab/mnist-worker-0", observation.pod(raw))
    nodes = stage.known.nodes.cache
    for name in ("spot-0", "spot-1"):
        nodes.put(name, nodes.keep(raw_node(name)))
    stage.router.begin(stage.queue)
    await stage.taken()

    def heard(name: str, **changes: Any) -> None:
        stage.now += 100
        nodes.put(name, nodes.keep(raw_node(name, **changes)))

    heard("spot-0")
    heard("spot-1", ready="Unknown")
    assert await stage.taken() == []
    heard("spot-0", ready="Unknown")
    assert await stage.taken() == ["lab/mnist"]
    stage.now += 100
    nodes.put("spot-0", None)
    assert await stage.taken() == ["lab/mnist"]
    stage.known.pods.put("lab/mnist-worker-0", None)
    await stage.taken()
    heard("spot-0")
    assert await stage.taken() == []
