"""Writes Events about Runs: what repeats is counted, and no run may flood the cluster."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.errors import ClusterError, NotLeading
from webhook.kube.paces import Paces
from webhook.kube.v1_event import event
from webhook.recent import Recent
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.controller.stored_run import StoredRun
    from webhook.kube.writer import Writer
    from webhook.run.actions import Announcement

_logger = logging.getLogger(__name__)

COMPONENT: Final = "fairlead-controller"
# The same again within so many seconds is counted upon the Event that is there: client-go's
# correlator does so for ten minutes too.
AGAIN: Final = 600.0
# Events of one run: so many at once, then one in so many seconds.
BURST: Final = 25
EVERY: Final = 30.0
# Events that wait to be written, and Events and runs that are remembered.
WAITING: Final = 1000
REMEMBERED: Final = 1024


class _Subject(NamedTuple):
    """The Run that an Event is about."""

    namespace: str
    name: str
    uid: str
    version: str


@dataclass(slots=True)
class _Written:
    name: str
    count: int
    at: float


class Announcer:
    """Takes announcements without waiting, and writes them from `run()`, in their order.

    An Event that cannot be written is logged and lost: the run's status says it all the same.
    """

    def __init__(
        self,
        writer: Writer,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._now = now
        self._queue: asyncio.Queue[tuple[_Subject, Announcement, datetime]] = asyncio.Queue(WAITING)
        self._written: Recent[tuple[str, Announcement], _Written] = Recent(REMEMBERED)
        self._paces = Paces(BURST, EVERY, REMEMBERED)
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """How many announcements became no Event."""
        return self._dropped

    def announce(self, run: StoredRun, announcements: Iterable[Announcement]) -> None:
        """Have these written, as far as the run has not said too much lately."""
        subject = _Subject(run.namespace, run.name, run.uid, run.version)
        for each in announcements:
            if self._queue.full() or not self._paces.passes(run.uid, self._clock()):
                self._dropped += 1
            else:
                self._queue.put_nowait((subject, each, self._now()))

    async def run(self) -> None:
        """Write what is announced, until cancelled."""
        while True:
            subject, announcement, when = await self._queue.get()
            try:
                await self._write(subject, announcement, when)
            except (ClusterError, NotLeading) as error:
                self._dropped += 1
                _logger.warning("event lost", extra={"reason": announcement.reason}, exc_info=error)
            finally:
                self._queue.task_done()

    async def flushed(self) -> None:
        """Return once everything announced so far is written, or lost."""
        await self._queue.join()

    async def _write(self, subject: _Subject, announcement: Announcement, when: datetime) -> None:
        path = f"/api/v1/namespaces/{subject.namespace}/events"
        key = (subject.uid, announcement)
        before = self._written.get(key)
        if before and self._clock() - before.at < AGAIN:
            again = {"count": before.count + 1, "lastTimestamp": to_second(when)}
            try:
                await self._writer.patch(f"{path}/{before.name}", again, "merge")
            except ClusterError as error:
                # The API server forgets Events after an hour, or whenever it is told to.
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
            else:
                before.count += 1
                before.at = self._clock()
                return
        # A Run's name has at most 63 characters, so this fits any object's.
        name = f"{subject.name}.{uuid.uuid4().hex[:16]}"
        await self._writer.create(path, _event(name, subject, announcement, when))
        self._written.put(key, _Written(name, 1, self._clock()))


def _event(
    name: str, subject: _Subject, announcement: Announcement, when: datetime
) -> dict[str, Any]:
    about = {
        "apiVersion": names.API_VERSION,
        "kind": names.RUN_KIND,
        "namespace": subject.namespace,
        "name": subject.name,
        "uid": subject.uid,
        "resourceVersion": subject.version,
    }
    said = (announcement.type, announcement.reason, announcement.message)
    return event(name, about, said, component=COMPONENT, when=when)
