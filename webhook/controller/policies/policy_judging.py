"""Check policies and nodes when they change, in a thread."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from webhook.errors import ClusterError
from webhook.judgement.reporting.conditions import (
    Acceptance,
    judge_objects,
    remembered,
    satisfaction,
)
from webhook.judgement.set_judgement import Objects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

    from webhook.cluster_objects.watched_objects import ClusterClasses, NodeView
    from webhook.controller.policies.status_writer import Stored, StoredObjects
    from webhook.crd.conditions import ConditionUpdate
    from webhook.judgement.set_judgement import SetJudgement
    from webhook.kube.cache import Change
    from webhook.policy.status_model import Version

# Seconds to wait for related changes: `kubectl apply` writes an object every 10 to 20 ms.
SETTLE: Final = 0.2
# Seconds until unchanged objects are judged again, because exceptions expire.
AGAIN: Final = 600.0
# The share of time for this work: thousands of policies and nodes take seconds to judge.
SHARE: Final = 0.1
# Seconds between checks for the first list of nodes, and after the nodes were reported unknown.
PERIOD: Final = 0.5
UNKNOWN: Final = 2.0


@dataclass(eq=False, repr=False)
class Judging:
    """The status of the objects, kept current by `judge` and `survey`.

    `news` is called after each change of the result. `clock` is the wall clock, in UTC.
    """

    objects: StoredObjects
    nodes: NodeView
    classes: ClusterClasses
    news: Callable[[], None]
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    acceptance: Acceptance = field(default_factory=Acceptance, init=False)
    satisfied: Mapping[str, tuple[Version, ConditionUpdate]] = field(
        default_factory=dict, init=False
    )

    def __post_init__(self) -> None:
        self._reader = Objects()
        self._changed = asyncio.Event()
        self._another = asyncio.Event()
        self.objects.subscribe(self._note_change)
        self.nodes.subscribe(self._another.set)
        self.classes.subscribe(self._changed.set)

    async def judge(self) -> NoReturn:
        """Judge until cancelled; start with the state that the existing statuses report."""
        await self.objects.wait_synced()
        before = remembered(each.observed for each in self.objects.objects().values())
        self.acceptance = before
        while True:
            self._changed.clear()
            objects = {place: each.observed for place, each in self.objects.objects().items()}
            if not await self._whole():
                continue
            policies = self.acceptance.policies
            began = time.monotonic()
            self.acceptance = await asyncio.to_thread(
                judge_objects, self._judge, objects, self.acceptance
            )
            if self.acceptance.policies is not policies:
                self._another.set()
            self.news()
            # Judging a thousand policies takes seconds; pause as long so that other work proceeds.
            await asyncio.sleep(time.monotonic() - began)
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN):
                    await self._changed.wait()
            await asyncio.sleep(SETTLE)

    async def _whole(self) -> bool:
        """Return whether the objects that were just read are whole; if not, after a moment."""
        try:
            doubt = await self.objects.doubt()
        except ClusterError:
            doubt = "not known"
        if doubt:
            await asyncio.sleep(UNKNOWN)
        return not doubt

    def _judge(self, objects: Mapping[str, bytes]) -> SetJudgement:
        return self._reader.judge(objects, self.clock(), self.classes.by_kind())

    async def survey(self) -> NoReturn:
        """Match the policies against the nodes until cancelled."""
        while True:
            await self._another.wait()
            await asyncio.sleep(SETTLE)
            nodes = self.nodes.nodes()
            acceptance = self.acceptance
            if acceptance.policies is None or (nodes is None and not self.nodes.trouble()):
                # The first list of nodes has not arrived yet.
                await asyncio.sleep(PERIOD)
                continue
            self._another.clear()
            began = time.monotonic()
            conditions = await asyncio.to_thread(
                satisfaction, acceptance.policies, nodes, acceptance.ready, acceptance.faults
            )
            self.satisfied = {
                place: (acceptance.in_force[place], each)
                for place, each in conditions.items()
                if place in acceptance.in_force
            }
            self.news()
            await asyncio.sleep((time.monotonic() - began) * (1 / SHARE - 1))
            if nodes is None:
                # If the cluster has no node at all, no change of a node triggers the next check.
                await asyncio.sleep(UNKNOWN)
                self._another.set()

    def _note_change(self, change: Change[Stored]) -> None:
        before, after = change.before, change.after
        if before is None or after is None or before.observed[:5] != after.observed[:5]:
            # The last field is the status, which this process writes itself.
            self._changed.set()
