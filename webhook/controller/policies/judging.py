"""Judges the objects whenever they have changed, and the nodes that they leave, off the loop."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Protocol

from webhook.policy.objects import Objects
from webhook.policy.reporting.acceptance import Acceptance, judged, remembered
from webhook.policy.reporting.satisfaction import satisfaction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

    from webhook.controller.policies.stored import Stored, StoredObjects
    from webhook.crd.conditions import Said
    from webhook.kube.cache import Change
    from webhook.placement.nodes import Node
    from webhook.policy.reporting.observed_object import Version
    from webhook.policy.set_judgement import SetJudgement

# Seconds: of a `kubectl apply` of fifty objects, one comes every ten or twenty milliseconds.
SETTLE: Final = 0.2
# Seconds until objects that have not changed are judged anew: exceptions end.
AGAIN: Final = 600.0
# Thousands of policies and nodes take seconds, which must not be all that this process does.
SHARE: Final = 0.1
# Seconds between looks at whether the nodes are known by now, and once it was said that they are
# not.
PERIOD: Final = 0.5
UNKNOWN: Final = 2.0


class Nodes(Protocol):
    """What of kube.node_view.NodeView is needed."""

    def nodes(self) -> Sequence[Node] | None:
        """Every node; None before they are known. The same object while nothing changes."""

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change of a node."""

    def trouble(self) -> str:
        """Why they are not known; "" if they are."""


class Judging:
    """What is to be said of the objects, kept current by `judge` and `survey`.

    `news` is called whenever something else is to be said. `clock` is the wall clock, in UTC.
    """

    def __init__(
        self,
        objects: StoredObjects,
        nodes: Nodes,
        news: Callable[[], None],
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._objects = objects
        self._nodes = nodes
        self._news = news
        self._clock = clock
        self._reader = Objects()
        self._changed = asyncio.Event()
        self._another = asyncio.Event()
        self.acceptance = Acceptance()
        self.satisfied: Mapping[str, tuple[Version, Said]] = {}
        objects.subscribe(self._told)
        nodes.subscribe(self._another.set)

    async def judge(self) -> NoReturn:
        """Go on until cancelled; begins with what the statuses tell of whoever led before."""
        await self._objects.wait_synced()
        before = remembered(each.seen for each in self._objects.objects().values())
        self.acceptance = before
        while True:
            self._changed.clear()
            objects = {place: each.seen for place, each in self._objects.objects().items()}
            policies = self.acceptance.policies
            began = time.monotonic()
            self.acceptance = await asyncio.to_thread(judged, self._judge, objects, self.acceptance)
            if self.acceptance.policies is not policies:
                self._another.set()
            self._news()
            # A thousand policies take seconds, which must not be all that this process does.
            await asyncio.sleep(time.monotonic() - began)
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN):
                    await self._changed.wait()
            await asyncio.sleep(SETTLE)

    def _judge(self, objects: Mapping[str, bytes]) -> SetJudgement:
        return self._reader.judged(objects, self._clock())

    async def survey(self) -> NoReturn:
        """Go on until cancelled."""
        while True:
            await self._another.wait()
            await asyncio.sleep(SETTLE)
            nodes = self._nodes.nodes()
            acceptance = self.acceptance
            if acceptance.policies is None or (nodes is None and not self._nodes.trouble()):
                # The first list is on its way.
                await asyncio.sleep(PERIOD)
                continue
            self._another.clear()
            began = time.monotonic()
            said = await asyncio.to_thread(
                satisfaction, acceptance.policies, nodes, acceptance.ready, acceptance.faults
            )
            self.satisfied = {
                place: (acceptance.in_force[place], each)
                for place, each in said.items()
                if place in acceptance.in_force
            }
            self._news()
            await asyncio.sleep((time.monotonic() - began) * (1 / SHARE - 1))
            if nodes is None:
                # Should there be none in the end, no change of a node tells that they are known.
                await asyncio.sleep(UNKNOWN)
                self._another.set()

    def _told(self, change: Change[Stored]) -> None:
        before, after = change.before, change.after
        if before is None or after is None or before.seen[:5] != after.seen[:5]:
            # The status, which comes last, is our own business.
            self._changed.set()
