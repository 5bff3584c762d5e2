"""Writes the statuses that differ: what is new of an object at once, what all share slowly."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from http import HTTPStatus
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol

from webhook import names
from webhook.errors import ClusterError, NotLeading
from webhook.kube.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

    from webhook.controller.policies.stored import Stored, StoredObjects
    from webhook.kube.cache import Change
    from webhook.policy.reporting.statuses import Due, Urgency
    from webhook.policy.status_model import ObjectStatus

_logger = logging.getLogger(__name__)

# Seconds between the writes of one object's counts: they change with every pod.
INTERVAL: Final = 60.0
# Seconds between any two writes of one object: somebody else may write its status too.
SPACING: Final = 0.5
# Seconds between two looks at what is due: with thousands of objects one takes a tenth of it.
AFRESH: Final = 0.3
# Writes a second at most. Runs have hundreds a second of the same bucket; one edit changes the
# hash that each of a thousand statuses shows.
PACES: Final[Mapping[Urgency, float]] = {"now": 50.0, "soon": 5.0, "counts": 5.0}
# Who changed it meanwhile, or deleted it, is told by the watch.
_OVERTAKEN: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)


class Writes(Protocol):
    """What of kube.writer.Writer is needed."""

    async def patch(
        self,
        path: str,
        body: Mapping[str, Any],
        patch_type: Any,
        *,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """As Client.patch."""


class StatusWriter:
    """Writes what `due` tells of the objects, and again whenever it is woken.

    `interval` is between the writes of one object's counts, in seconds. Clock and random numbers
    are handed in.
    """

    def __init__(
        self,
        writer: Writes,
        objects: StoredObjects,
        due: Callable[[], Sequence[Due]],
        *,
        interval: float = INTERVAL,
        clock: Callable[[], float] = time.monotonic,
        random: Random | None = None,
    ) -> None:
        self._writer = writer
        self._objects = objects
        self._due = due
        self._interval = interval
        self._clock = clock
        self._backoff = Backoff(random or Random())  # noqa: S311 (spreads load, keeps no secret)
        self._wake = asyncio.Event()
        # By uid, when an object was last written, and as what.
        self._at: dict[str, float] = {}
        self._as: dict[str, ObjectStatus] = {}
        self.trouble = ""
        objects.subscribe(self._changed)

    def wake(self) -> None:
        """Something is known that was not."""
        self._wake.set()

    async def run(self) -> NoReturn:
        """Go on until cancelled."""
        while True:
            self._wake.clear()
            began = self._clock()
            rest = await self._write_all(began)
            await self._rested(rest)
            await asyncio.sleep(max(0.0, began + AFRESH - self._clock()))

    async def write_once(self) -> None:
        """Write what differs now, however lately it was written. Not while `run` goes on."""
        for each in sorted(self._due(), key=self._order):
            trouble = await self._write(each)
            if trouble is not None and not _of_the_object(trouble):
                return

    async def _write_all(self, now: float) -> float:
        """Write what may be written now, unless woken; the seconds until more may be."""
        ready: list[Due] = []
        rest = self._interval
        for each in self._due():
            wait = self._at.get(each.seen.uid, -self._interval) + self._spacing(each) - now
            if wait <= 0:
                ready.append(each)
            else:
                rest = min(rest, wait)
        ready.sort(key=self._order)
        refused = ""
        for each in ready:
            trouble = await self._write(each)
            if trouble is not None and not _of_the_object(trouble):
                return self._failed(str(trouble))
            refused = refused or (str(trouble) if trouble else "")
            await asyncio.sleep(1 / PACES[each.urgency])
            if self._wake.is_set() and self._clock() - now >= AFRESH:
                # There may be something more urgent.
                return 0.0
        if refused:
            return self._failed(refused)
        self._backoff.reset()
        self.trouble = ""
        return rest

    async def _write(self, due: Due) -> ClusterError | None:
        """Write one status; what went wrong, if it did, and is to be told."""
        stored = self._objects.get(due.seen.resource, due.seen.name)
        if stored is None or stored.seen != due.seen:
            # The wake-up is on its way.
            return None
        self._at[due.seen.uid], self._as[due.seen.uid] = self._clock(), due.status
        try:
            answer = await self._writer.patch(
                stored.path,
                _patch(stored, due.status),
                "merge",
                query={"fieldManager": names.CONTROLLER},
            )
        except NotLeading:
            # Whoever leads now writes what there is to write.
            return None
        except ClusterError as error:
            if error.status in _OVERTAKEN:
                _logger.debug("status of %s: %s", due.seen.place, error)
                return None
            return error
        self._objects.offer(due.seen.resource, answer)
        return None

    def _failed(self, words: str) -> float:
        if words != self.trouble:
            _logger.warning("statuses of policies cannot be written: %s", words)
        self.trouble = words
        return self._backoff.next()

    async def _rested(self, seconds: float) -> None:
        """Rest until something wakes us, or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _spacing(self, due: Due) -> float:
        return self._interval if due.urgency == "counts" else min(SPACING, self._interval)

    def _order(self, due: Due) -> tuple[bool, float, str]:
        """What is urgent first, then what was written the longest ago."""
        return due.urgency != "now", self._at.get(due.seen.uid, 0.0), due.seen.place

    def _changed(self, change: Change[Stored]) -> None:
        if change.after is None:
            if change.before is not None:
                self._at.pop(change.before.seen.uid, None)
                self._as.pop(change.before.seen.uid, None)
        elif self._as.get(change.after.seen.uid) != change.after.seen.status:
            self.wake()


def _patch(stored: Stored, status: ObjectStatus) -> dict[str, Any]:
    """What changes the status of this version of this object alone; null takes a field away."""
    metadata = {"uid": stored.seen.uid, "resourceVersion": stored.version}
    return {"metadata": metadata, "status": status.model_dump(mode="json", by_alias=True)}


def _of_the_object(error: ClusterError) -> bool:
    """Whether the others may be written all the same."""
    status = error.status or HTTPStatus.SERVICE_UNAVAILABLE
    return status < HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.TOO_MANY_REQUESTS
