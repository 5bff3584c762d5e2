"""Write Events on workloads in the background, at a limited rate."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Protocol, TypeAlias

from webhook.dns_names import is_subdomain
from webhook.errors import ClusterError
from webhook.kube.events import event
from webhook.kube.rate_limit import Paces
from webhook.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.admission.notice import Notice

_logger = logging.getLogger(__name__)

# The result of a notice. repeated: sent within the hour, by any replica; dropped: the queue is full
# or the namespace over its limit; failed: the API server rejected it.
Outcome: TypeAlias = Literal["written", "repeated", "dropped", "failed"]

COMPONENT: Final = "fairlead-webhook"
# The maximum length of the queue, and the number of Events and namespaces to remember.
WAITING: Final = 500
REMEMBERED: Final = 4096
# The rate limit per namespace: a burst of Events, then one per EVERY seconds.
BURST: Final = 50
EVERY: Final = 10.0
_HOUR: Final = 3600
# Characters of an owner's name in the name of an Event.
_LONGEST_NAME: Final = 200


class Creates(Protocol):
    """A client that creates objects."""

    async def create(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create `body` in the collection at `path`. Raises ClusterError."""


class Notices:
    """Queues notices without waiting; `run()` writes them as Events, one at a time.

    The name of an Event is derived from the owner's uid, the reason and the hour. So all replicas,
    also after a restart, write the same Event. A lost notice is repeated, because controllers try
    again. `clock` is a monotonic clock in seconds for the rate limit.
    """

    def __init__(
        self,
        client: Creates,
        on_outcome: Callable[[Outcome], None],
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._now = now
        self._clock = clock
        self._queue: asyncio.Queue[tuple[str, Notice, datetime]] = asyncio.Queue(WAITING)
        self._sent: Recent[str, datetime] = Recent(REMEMBERED)
        self._paces = Paces(BURST, EVERY, REMEMBERED)

    def submit(self, notice: Notice) -> None:
        """Queue an Event, unless it was sent within the hour or a limit is reached."""
        when = self._now()
        name = event_name(notice, when)
        if self._sent.get(name):
            self._on_outcome("repeated")
            return
        if self._queue.full() or not self._paces.passes(notice.namespace, self._clock()):
            self._on_outcome("dropped")
            return
        self._sent.put(name, when)
        self._queue.put_nowait((name, notice, when))

    async def run(self) -> NoReturn:
        """Write the queued Events until cancelled."""
        while True:
            name, notice, when = await self._queue.get()
            try:
                self._on_outcome(await self._write_event(name, notice, when))
            except Exception:
                # The same process decides on pods, so no Event may stop it.
                self._on_outcome("failed")
                _logger.exception("event lost", extra={"reason": notice.reason})
            finally:
                self._queue.task_done()

    async def flushed(self) -> None:
        """Return when all queued Events are written or lost."""
        await self._queue.join()

    async def _write_event(self, name: str, notice: Notice, when: datetime) -> Outcome:
        path = f"/api/v1/namespaces/{notice.namespace}/events"
        try:
            await self._client.create(path, _event(name, notice, when))
        except ClusterError as error:
            if error.status == HTTPStatus.CONFLICT:
                return "repeated"
            # Retry with the owner's next pod.
            self._sent.forget(name)
            _logger.warning(
                "event lost",
                extra={
                    "namespace": notice.namespace,
                    "owner": f"{notice.owner.kind}/{notice.owner.name}",
                    "reason": notice.reason,
                    "error": str(error),
                },
            )
            return "failed"
        return "written"


def event_name(notice: Notice, when: datetime) -> str:
    """Return a name that is the same for the same owner, reason and hour, in every replica."""
    hour = int(when.timestamp()) // _HOUR
    identity = "\n".join((notice.owner.uid, notice.reason, str(hour)))
    digest = hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    owner = notice.owner.name[:_LONGEST_NAME].rstrip("-.")
    # Some kinds allow names that are not valid for an Event.
    return f"{owner if is_subdomain(owner) else 'workload'}.{digest}"


def _event(name: str, notice: Notice, when: datetime) -> dict[str, Any]:
    owner = notice.owner
    about = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "namespace": notice.namespace,
        "name": owner.name,
        "uid": owner.uid,
    }
    content = ("Warning", notice.reason, notice.message)
    return event(name, about, content, component=COMPONENT, when=when)
