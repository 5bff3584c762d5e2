"""Keeps the statuses of policies and capacity classes while this process leads."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

import aiohttp

from webhook.controller.policies.judging import Judging
from webhook.controller.policies.reading import report_of
from webhook.controller.policies.stored import StoredObjects
from webhook.controller.policies.writing import INTERVAL, StatusWriter
from webhook.errors import ClusterError
from webhook.kube.node_view import NodeView
from webhook.policy.reporting.counting import Ledger, counted, met
from webhook.policy.reporting.statuses import Due, Knowledge, due
from webhook.policy.status_model import Served
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import NoReturn

    from webhook.controller.policies.writing import Writes
    from webhook.kube.client import Client
    from webhook.kube.replicas import Replica
    from webhook.policy.reporting.counting import Report

_logger = logging.getLogger(__name__)

FOLLOWS: Final = "kept by whoever leads"
NO_SET: Final = "none"
# Looks at the replicas for each time that counts may be written.
_LOOKS: Final = 4
# So many looks in a row that a replica may leave unanswered before its hash is not shown any more.
_PATIENT_LOOKS: Final = 4
# Seconds until a part that ended by a bug begins again.
_AFTER_A_BUG: Final = 30.0
# Seconds for what is written once this process is to lead no more.
LAST_WORD: Final = 2.0
# Seconds that one replica has; within a cluster it takes some milliseconds.
PATIENCE: Final = 5.0
AT_ONCE: Final = 8
# Bytes. With 1,000 policies in 1,000 namespaces there are some ten million.
_LONGEST: Final = 64 * 2**20


class PolicyReporter:
    """Writes what is known of policies and classes into their statuses.

    `replicas` tells where the webhook runs; `interval` is between the writes of one object's
    counts, in seconds. `clock` is the wall clock, in UTC.
    """

    def __init__(
        self,
        client: Client,
        writer: Writes,
        replicas: Callable[[], Awaitable[Sequence[Replica]]],
        *,
        interval: float = INTERVAL,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._writer = writer
        self._replicas = replicas
        self._interval = interval
        self._clock = clock
        self._tenure: _Tenure | None = None

    @property
    def reason(self) -> str:
        """How the statuses fare, for a readiness detail."""
        return self._tenure.reason() if self._tenure else FOLLOWS

    async def lead(self) -> None:
        """Go on until cancelled. Nothing that goes wrong here ends it: runs go on beside it."""
        # Anew each time: what is counted begins at what the statuses have by then.
        tenure = self._tenure = _Tenure(
            self._client, self._writer, self._replicas, self._interval, self._clock
        )
        try:
            await tenure.run()
        finally:
            self._tenure = None


class _Tenure:
    """What is known from the moment when this process began to lead."""

    def __init__(
        self,
        client: Client,
        writer: Writes,
        replicas: Callable[[], Awaitable[Sequence[Replica]]],
        interval: float,
        clock: Callable[[], datetime],
    ) -> None:
        self._replicas = replicas
        self._interval = interval
        self._clock = clock
        self._objects = StoredObjects(client)
        self._nodes = NodeView(client)
        self._statuses = StatusWriter(writer, self._objects, self._due, interval=interval)
        self._judging = Judging(self._objects, self._nodes, self._statuses.wake, clock)
        self._ledger = Ledger()
        self._served: tuple[Served, ...] | None = None
        self._silent: dict[str, int] = {}
        self._unseen = ""

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for part in (
                    self._objects.run,
                    self._nodes.run,
                    self._judging.judge,
                    self._judging.survey,
                    self._look_again_and_again,
                    self._write,
                ):
                    group.create_task(_always(part))
        finally:
            await self._last_word()

    async def _last_word(self) -> None:
        """Write what was counted: whoever leads next counts on from what is written."""
        if self._ledger.there is None:
            # Nothing has been counted.
            return
        try:
            async with asyncio.timeout(LAST_WORD):
                with suppress(ClusterError):
                    self._learn(await ask(self._replicas, patience=LAST_WORD / 2))
                await self._statuses.write_once()
        except TimeoutError:
            _logger.info("not all counts of policies were written in the end")
        except Exception:
            _logger.exception("counts of policies were not written in the end: this is a bug")

    def reason(self) -> str:
        judged = self._judging.acceptance
        said = [f"{len(judged.said)} objects" if judged.said else "no object judged yet"]
        if judged.faulty:
            said.append(f"refused for {', '.join(judged.faulty[:3])}")
        if self._served is not None:
            said.append(f"{len(self._served)} replicas of the webhook")
        parts = (
            self._objects.trouble(),
            self._unseen,
            self._nodes.trouble(),
            self._statuses.trouble,
        )
        return "; ".join([*said, *filter(None, parts)])

    async def _write(self) -> None:
        await self._objects.wait_synced()
        await self._statuses.run()

    async def _look_again_and_again(self) -> NoReturn:
        await self._objects.wait_synced()
        while True:
            try:
                self._learn(await ask(self._replicas))
                self._unseen = ""
            except ClusterError as error:
                self._unseen = f"the webhook's replicas are not known: {error}"
            await asyncio.sleep(self._interval / _LOOKS)

    def _learn(self, look: Look) -> None:
        self._meet()
        listed = {each.key for each in look.replicas}
        self._silent = {
            key: 0 if key in look.reports else self._silent.get(key, 0) + 1 for key in listed
        }
        self._ledger = counted(self._ledger, listed, look.reports)
        self._served = tuple(
            Served(replica=each.name, hash=said.hash or NO_SET)
            for each in look.replicas
            if not each.leaving
            and self._silent[each.key] < _PATIENT_LOOKS
            and (said := self._ledger.last.get(each.key)) is not None
        )
        self._statuses.wake()

    def _meet(self) -> None:
        seen = (each.seen for each in self._objects.objects().values())
        self._ledger = met(self._ledger, seen, to_second(self._clock()))

    def _due(self) -> Sequence[Due]:
        self._meet()
        known = Knowledge(
            self._judging.acceptance, self._judging.satisfied, self._ledger, self._served
        )
        seen = [each.seen for each in self._objects.objects().values()]
        return tuple(due(seen, known, to_second(self._clock())))


async def _always(part: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await part()
        except Exception:
            _logger.exception("a part of what keeps statuses ended: this is a bug")
        await asyncio.sleep(_AFTER_A_BUG)


class Look(NamedTuple):
    """The replicas that there are, and what those said that answered, by key."""

    replicas: Sequence[Replica]
    reports: Mapping[str, Report]


async def ask(
    replicas: Callable[[], Awaitable[Sequence[Replica]]], *, patience: float = PATIENCE
) -> Look:
    """Look once, at several at a time. Raises ClusterError if it is not known who there is.

    A replica that does not answer, or no metrics, has no report; the next look may find it.
    """
    found = await replicas()
    turns = asyncio.Semaphore(AT_ONCE)
    limits = aiohttp.ClientTimeout(total=patience)
    async with aiohttp.ClientSession(timeout=limits, auto_decompress=False) as session:

        async def one(replica: Replica) -> Report | None:
            async with turns:
                try:
                    text = await _text(session, replica)
                    # It takes milliseconds with many policies.
                    return await asyncio.to_thread(report_of, text)
                except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
                    return None

        reports = await asyncio.gather(*(one(replica) for replica in found))
    said = zip(found, reports, strict=True)
    return Look(found, {replica.key: report for replica, report in said if report is not None})


async def _text(session: aiohttp.ClientSession, replica: Replica) -> str:
    host = f"[{replica.host}]" if ":" in replica.host else replica.host
    url = f"http://{host}:{replica.port}/metrics"
    async with session.get(url, allow_redirects=False) as response:
        if response.status != 200:
            raise ValueError(f"{url} answered {response.status}")
        text = bytearray()
        async for chunk in response.content.iter_any():
            text += chunk
            if len(text) > _LONGEST:
                raise ValueError(f"{url} does not come to an end")
    return text.decode("utf-8", "replace")
