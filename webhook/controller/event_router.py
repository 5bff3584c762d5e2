"""From changes in the caches to keys in the queue, a large run's pods many at a time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.controller.nodes import WatchedNode
    from webhook.controller.observed_state import ObservedState, RunsDeployment, RunsService
    from webhook.controller.stored_run import StoredRun
    from webhook.kube.cache import Change
    from webhook.kube.work_queue import WorkQueue
    from webhook.run.observed import OwnedPod

# Between two looks at one run because of its pods, in seconds: a look at 5,000 pods takes some 50
# ms, and each of them has several events. What comes after a quiet time is looked at at once.
A_POD: Final = 0.0001
LEAST: Final = 0.02
MOST: Final = 1.0


class EventRouter:
    """Adds a run's key when the run or something that it owns has changed.

    Without a queue, in a process that does not lead, changes go nowhere.
    """

    def __init__(
        self, known: ObservedState, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._known = known
        self._clock = clock
        self._queue: WorkQueue | None = None
        self._looked: dict[str, float] = {}
        known.runs.subscribe(self._run_changed)
        known.pods.subscribe(self._owned_changed)
        known.services.subscribe(self._owned_changed)
        known.config_maps.subscribe(self._config_map_changed)
        known.deployments.subscribe(self._owned_changed)
        known.nodes.cache.subscribe(self._node_changed)

    def begin(self, queue: WorkQueue) -> None:
        """EventRouter this queue from now on: first with every run there is."""
        self._queue = queue
        for key in self._known.runs.items():
            queue.add(key)

    def end(self) -> None:
        """EventRouter no queue any more."""
        self._queue = None
        self._looked.clear()

    def looked(self, key: str) -> None:
        """Note that a run was looked at just now."""
        if self._known.runs.get(key) is not None:
            self._looked[key] = self._clock()

    def _run_changed(self, change: Change[StoredRun]) -> None:
        if change.after is None:
            self._looked.pop(change.key, None)
        if self._queue is not None:
            self._queue.add(change.key)

    def _config_map_changed(self, change: Change[str]) -> None:
        self._add(change.after or change.before or "")

    def _owned_changed(
        self, change: Change[OwnedPod] | Change[RunsService] | Change[RunsDeployment]
    ) -> None:
        owned = change.after or change.before
        if owned is not None:
            self._add(owned.run_uid)

    def _node_changed(self, change: Change[WatchedNode]) -> None:
        for uid in self._known.runs_on(change.key):
            self._add(uid)

    def _add(self, uid: str) -> None:
        key = self._known.key_of(uid)
        if key is None or self._queue is None:
            # Of a run that is not known yet the first look sees everything.
            return
        pause = min(MOST, max(LEAST, self._known.pod_count(key.partition("/")[0], uid) * A_POD))
        since = self._clock() - self._looked.get(key, float("-inf"))
        self._queue.add_after(key, pause - since)
