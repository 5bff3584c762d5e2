"""Write Events about Runs, with repeats counted and rates limited."""

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
from webhook.api_paths import CollectionPath
from webhook.errors import ClusterError, NotLeading
from webhook.kube.events import event
from webhook.kube.rate_limit import Paces
from webhook.recent import Recent
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from webhook.controller.stored_run import StoredRun
    from webhook.kube.writer import Writer
    from webhook.run.actions import Announcement

_logger = logging.getLogger(__name__)

COMPONENT: Final = "fairlead-controller"
# Seconds within which a repeated Event increases the count of the existing one. client-go's
# correlator uses ten minutes too.
REPEATED_EVENT_SECONDS: Final = 600.0
# Events of one run: an initial burst, then one per EVENT_INTERVAL_SECONDS seconds.
BURST: Final = 25
EVENT_INTERVAL_SECONDS: Final = 30.0
# The maximum length of the queue, and the number of Events and runs to remember.
QUEUE_LENGTH: Final = 1000
REMEMBERED_EVENTS: Final = 1024


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
    """Queue announcements without waiting; `run()` writes them in order.

    An Event that cannot be written is logged and dropped. The run's status has the same content.
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
        self._queue: asyncio.Queue[tuple[_Subject, Announcement, datetime]] = asyncio.Queue(
            QUEUE_LENGTH
        )
        self._written: Recent[tuple[str, Announcement], _Written] = Recent(REMEMBERED_EVENTS)
        self._paces = Paces(BURST, EVENT_INTERVAL_SECONDS, REMEMBERED_EVENTS)
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """The number of announcements that were dropped."""
        return self._dropped

    def announce(self, run: StoredRun, announcements: Iterable[Announcement]) -> None:
        """Queue these announcements, as far as the run's rate limit allows."""
        subject = _Subject(run.namespace, run.name, run.uid, run.version)
        for announcement in announcements:
            if self._queue.full() or not self._paces.passes(run.uid, self._clock()):
                self._dropped += 1
            else:
                self._queue.put_nowait((subject, announcement, self._now()))

    async def run(self) -> None:
        """Write the queued announcements until cancelled."""
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
        """Return when all queued announcements are written or dropped."""
        await self._queue.join()

    async def _write(self, subject: _Subject, announcement: Announcement, when: datetime) -> None:
        path = CollectionPath("v1", "events", subject.namespace)
        key = (subject.uid, announcement)
        before = self._written.get(key)
        if before and self._clock() - before.at < REPEATED_EVENT_SECONDS:
            again = {"count": before.count + 1, "lastTimestamp": to_second(when)}
            try:
                await self._writer.patch(path.path_of(before.name), again, "merge")
            except ClusterError as error:
                # The API server deletes Events after an hour, or after its --event-ttl.
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
            else:
                before.count += 1
                before.at = self._clock()
                return
        # A Run's name has at most 63 characters, so this fits the limit of an object name.
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
    content = (announcement.type, announcement.reason, announcement.message)
    return event(name, about, content, component=COMPONENT, when=when)
