"""Check policies and nodes when they change, in a thread."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook.judgement.reporting.conditions import (
    Acceptance,
    judge_objects,
    remembered,
    satisfaction,
)
from webhook.judgement.set_judgement import Objects

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

    from webhook.controller.policies.status_writer import Stored, StoredObjects
    from webhook.crd.conditions import ConditionUpdate
    from webhook.judgement.set_judgement import SetJudgement
    from webhook.kube.cache import Change
    from webhook.placement.nodes import Node
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


class Nodes(Protocol):
    """The required methods of kube.watched_objects.NodeView."""

    def nodes(self) -> Sequence[Node] | None:
        """Return all nodes; None before they are known. The same object until a change."""

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change of a node."""

    def trouble(self) -> str:
        """Return why the nodes are not known; "" if they are."""


class Classes(Protocol):
    """The required methods of kube.watched_objects.ClusterClasses."""

    def by_kind(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the objects by kind and name, as far as they are known."""

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change."""


class Judging:
    """The status of the objects, kept current by `judge` and `survey`.

    `news` is called after each change of the result. `clock` is the wall clock, in UTC.
    """

    def __init__(
        self,
        objects: StoredObjects,
        nodes: Nodes,
        classes: Classes,
        news: Callable[[], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._objects = objects
        self._nodes = nodes
        self._classes = classes
        self._news = news
        self._clock = clock
        self._reader = Objects()
        self._changed = asyncio.Event()
        self._another = asyncio.Event()
        self.acceptance = Acceptance()
        self.satisfied: Mapping[str, tuple[Version, ConditionUpdate]] = {}
        objects.subscribe(self._note_change)
        nodes.subscribe(self._another.set)
        classes.subscribe(self._changed.set)

    async def judge(self) -> NoReturn:
        """Judge until cancelled; start with the state that the existing statuses report."""
        await self._objects.wait_synced()
        before = remembered(each.observed for each in self._objects.objects().values())
        self.acceptance = before
        while True:
            self._changed.clear()
            objects = {place: each.observed for place, each in self._objects.objects().items()}
            policies = self.acceptance.policies
            began = time.monotonic()
            self.acceptance = await asyncio.to_thread(
                judge_objects, self._judge, objects, self.acceptance
            )
            if self.acceptance.policies is not policies:
                self._another.set()
            self._news()
            # Judging a thousand policies takes seconds; pause as long so that other work proceeds.
            await asyncio.sleep(time.monotonic() - began)
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN):
                    await self._changed.wait()
            await asyncio.sleep(SETTLE)

    def _judge(self, objects: Mapping[str, bytes]) -> SetJudgement:
        return self._reader.judge(objects, self._clock(), self._classes.by_kind())

    async def survey(self) -> NoReturn:
        """Match the policies against the nodes until cancelled."""
        while True:
            await self._another.wait()
            await asyncio.sleep(SETTLE)
            nodes = self._nodes.nodes()
            acceptance = self.acceptance
            if acceptance.policies is None or (nodes is None and not self._nodes.trouble()):
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
            self._news()
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
