"""Grants the starts of gangs, one after the other, while this process leads."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from webhook.run.gangs import Gang, Gangs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from webhook.controller.observed_state import ObservedState
    from webhook.controller.refusals import Refusals
    from webhook.controller.stored_run import StoredRun
    from webhook.kube.cache import Change
    from webhook.placement.room import Room
    from webhook.run.model import Run
    from webhook.run.observed import OwnedPod, Refusal
    from webhook.run.plan import Plan
    from webhook.run.start_order import Start


class Starts:
    """The gangs that are not whole. `wake` is called with the uid of each that may be next."""

    def __init__(
        self,
        state: ObservedState,
        refusals: Refusals,
        wake: Callable[[str], None],
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._state = state
        self._refusals = refusals
        self._wake = wake
        self._now = now
        self._gangs = Gangs(self._objects)
        state.runs.subscribe(self._run_changed)

    def observe(self, run: Run, plan: Plan, room: Room | Refusal | None) -> Start:
        """Return whether the Run may start; `room`: None if the nodes are not known."""
        classes = self._state.nodes.classes.items().values()
        on_demand = any(capacity.spec.autoscaled for capacity in classes)
        return self._gangs.observe(run, plan, room, self._now(), on_demand=on_demand)

    def count(self, state: str) -> int:
        """Return how many gangs are Waiting, or Starting."""
        return self._gangs.count(state)

    def longest_wait(self) -> float:
        """Return the seconds for which a gang has not been whole, the longest of all."""
        return self._gangs.longest_wait(self._now())

    def _objects(self, name: str, uid: str) -> tuple[Collection[OwnedPod], Collection[Refusal]]:
        namespace = name.partition("/")[0]
        return self._state.pods_of(namespace, uid).values(), self._refusals.refusals_of(uid)

    def _run_changed(self, change: Change[StoredRun]) -> None:
        before, after = change.before, change.after
        others_may = False
        if before is not None and (after is None or after.uid != before.uid):
            others_may = self._gangs.store(before.uid, None)
        if after is not None:
            understood = after.gang if after.understood else None
            gang = Gang(after.key, after.created, understood) if understood else None
            others_may |= self._gangs.store(after.uid, gang)
        if others_may:
            for uid in self._gangs.waiting:
                self._wake(uid)
