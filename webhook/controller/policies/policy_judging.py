"""Check policies and nodes when they change, in a thread."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from webhook.errors import ClusterError
from webhook.judgement.reporting.conditions import (
    NOT_CHECKED,
    Acceptance,
    judge_objects,
    remembered,
    satisfaction,
)
from webhook.judgement.set_judgement import Objects
from webhook.judgement.together.warnings import AT_ONCE, IN_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

    from webhook.cluster_objects.watched_objects import ClusterClasses, NodeView
    from webhook.controller.policies.status_writer import Stored, StoredObjects
    from webhook.crd.conditions import ConditionUpdate
    from webhook.judgement.together.warnings import Budget
    from webhook.kube.cache import Change
    from webhook.placement.nodes import Node
    from webhook.policy.status_model import ObservedObject, Version

# Seconds to wait for related changes: `kubectl apply` writes an object every 10 to 20 ms.
SETTLE_SECONDS: Final = 0.2
# Seconds after which a burst of changes is judged although it goes on. To judge a thousand policies
# takes seconds, which those who write them wait for.
BURST_MAX_SECONDS: Final = 30.0
# Seconds without a change until what takes minutes is judged.
QUIET_SECONDS: Final = 5.0
# Seconds until unchanged objects are judged again, because exceptions expire.
EXPIRY_CHECK_SECONDS: Final = 600.0
# The share of time for this work: thousands of policies and nodes take seconds to judge.
SHARE: Final = 0.1
# Seconds between checks for the first list of nodes, and after the nodes were reported unknown.
NODES_CHECK_SECONDS: Final = 0.5
UNKNOWN: Final = 2.0


@dataclass(eq=False, repr=False)
class Judging:
    """The status of the objects, kept current by `judge` and `survey`.

    `news` is called after each change of the result. `clock` is the wall clock, in UTC. What does
    not fit into a budget is judged after `quiet` seconds without a change.
    """

    objects: StoredObjects
    nodes: NodeView
    classes: ClusterClasses
    news: Callable[[], None]
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    quiet: float = QUIET_SECONDS
    acceptance: Acceptance = field(default_factory=Acceptance, init=False)
    satisfied: Mapping[str, tuple[Version, ConditionUpdate]] = field(
        default_factory=dict, init=False
    )

    def __post_init__(self) -> None:
        self._reader = Objects()
        # The versions of a set for which the budget did not suffice.
        self._large: Mapping[str, Version] = {}
        self._changed = asyncio.Event()
        self._another = asyncio.Event()
        self.objects.subscribe(self._note_change)
        self.nodes.subscribe(self._another.set)
        self.classes.subscribe(self._changed.set)

    async def judge(self) -> NoReturn:
        """Judge until cancelled; start with the state that the existing statuses report."""
        await self.objects.wait_synced()
        before = remembered(stored.observed for stored in self.objects.objects().values())
        self.acceptance = before
        try:
            while True:
                self._changed.clear()
                objects = {
                    place: stored.observed for place, stored in self.objects.objects().items()
                }
                if await self._whole():
                    await self._judge_objects(objects)
        finally:
            # A check that goes on in its thread ends at its next pause.
            self._changed.set()

    async def _judge_objects(self, objects: Mapping[str, ObservedObject]) -> None:
        """Judge at once; later all that was left out, unless objects change before it is done."""
        versions = {place: observed_object.version for place, observed_object in objects.items()}
        if versions != self._large:
            await self._judge_within(objects, AT_ONCE)
            if self.acceptance.unchecked and not await self._change_within(self.quiet):
                self._large = versions
        if versions == self._large:
            with suppress(Overtaken):
                await self._judge_within(objects, _pausing(IN_TIME, self._changed))
        if await self._change_within(EXPIRY_CHECK_SECONDS):
            until = time.monotonic() + BURST_MAX_SECONDS
            while await self._change_within(SETTLE_SECONDS) and time.monotonic() < until:
                self._changed.clear()
                await asyncio.sleep(SETTLE_SECONDS)

    async def _judge_within(self, objects: Mapping[str, ObservedObject], budget: Budget) -> None:
        policies, began = self.acceptance.policies, time.monotonic()
        judge = partial(self._reader.judge, budget=budget, now=self.clock())
        self.acceptance = await asyncio.to_thread(
            judge_objects,
            lambda texts: judge(texts, classes=self.classes.by_kind()),
            objects,
            self.acceptance,
            self.objects.newer,
        )
        if self.acceptance.policies is not policies:
            self._another.set()
        self.news()
        # Judging a thousand policies takes seconds; pause as long so that other work proceeds.
        await asyncio.sleep(time.monotonic() - began)

    async def _change_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._changed.wait()
        return False

    async def _whole(self) -> bool:
        """Return whether the objects that were just read are whole; if not, after a moment."""
        try:
            doubt = await self.objects.doubt()
        except ClusterError:
            doubt = "not known"
        if doubt:
            await asyncio.sleep(UNKNOWN)
        return not doubt

    async def survey(self) -> NoReturn:
        """Match the policies against the nodes until cancelled."""
        ended = asyncio.Event()
        try:
            while True:
                await self._another.wait()
                await asyncio.sleep(SETTLE_SECONDS)
                nodes = self.nodes.nodes()
                if self.acceptance.policies is None or (nodes is None and not self.nodes.trouble()):
                    # The first list of nodes has not arrived yet.
                    await asyncio.sleep(NODES_CHECK_SECONDS)
                    continue
                self._another.clear()
                await self._survey_nodes(self.acceptance, nodes, ended)
        finally:
            ended.set()

    async def _survey_nodes(
        self, acceptance: Acceptance, nodes: Sequence[Node] | None, ended: asyncio.Event
    ) -> None:
        large = acceptance.in_force == self._large
        budget = _pausing(IN_TIME, ended, self._changed) if large else AT_ONCE
        began = time.monotonic()
        try:
            conditions = await asyncio.to_thread(satisfaction, acceptance, nodes, budget)
        except Overtaken:
            return
        self.satisfied = {
            place: (acceptance.in_force[place], condition)
            for place, condition in conditions.items()
            if place in acceptance.in_force
        }
        self.news()
        await asyncio.sleep((time.monotonic() - began) * (1 / SHARE - 1))
        unchecked = any(condition.reason == NOT_CHECKED for condition in conditions.values())
        if unchecked and not (acceptance.unchecked or large or self._changed.is_set()):
            self._large = acceptance.in_force
            self._another.set()
        if nodes is None:
            # If the cluster has no node at all, no change of a node triggers the next check.
            await asyncio.sleep(UNKNOWN)
            self._another.set()

    def _note_change(self, change: Change[Stored]) -> None:
        before, after = change.before, change.after
        if before is None or after is None or before.observed[:5] != after.observed[:5]:
            # The last field is the status, which this process writes itself.
            self._changed.set()


class Overtaken(Exception):
    """What is checked has changed before the check was done."""


def _pausing(budget: Budget, *ends: asyncio.Event) -> Budget:
    """Return the budget of a check that rests as long as it works, and that an event ends.

    It raises Overtaken then.
    """
    began = time.monotonic()

    def pause() -> None:
        nonlocal began
        if any(end.is_set() for end in ends):
            raise Overtaken
        time.sleep(time.monotonic() - began)
        began = time.monotonic()

    return budget._replace(pause=pause)
