"""Writes Events on workloads, in the background: at most one for each reason and hour."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Protocol, TypeAlias

from webhook.errors import ClusterError
from webhook.kube.paces import Paces
from webhook.kube.v1_event import event
from webhook.placement.schema.syntax import is_subdomain
from webhook.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.admission.notice import Notice

_logger = logging.getLogger(__name__)

# What became of a notice. repeated: it was told within the hour, by this replica or another;
# dropped: too many were waiting, or came of one namespace; failed: the API server would not.
Outcome: TypeAlias = Literal["written", "repeated", "dropped", "failed"]

COMPONENT: Final = "fairlead-webhook"
# Notices that wait, and Events and namespaces that are remembered.
WAITING: Final = 500
REMEMBERED: Final = 4096
# Of one namespace: so many Events at once, then one in so many seconds.
BURST: Final = 50
EVERY: Final = 10.0
_HOUR: Final = 3600
# How much of an owner's name goes into an Event's.
_LONGEST_NAME: Final = 200


class Creates(Protocol):
    """What writes an object: the client of the API server."""

    async def create(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create `body` in the collection at `path`. Raises ClusterError."""


class Notices:
    """Takes notices without waiting, and writes them as Events from `run()`, one at a time.

    The name of an Event is made of the owner's uid, the reason and the hour: so replicas, and
    processes that start anew, make one and the same. A notice that is lost is no loss for long:
    controllers try again. `clock` paces them, in seconds: the wall clock may be set back.
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
        self._told: Recent[str, datetime] = Recent(REMEMBERED)
        self._paces = Paces(BURST, EVERY, REMEMBERED)

    def tell(self, notice: Notice) -> None:
        """Have an Event written, unless this was told within the hour, or too much is."""
        when = self._now()
        name = event_name(notice, when)
        if self._told.get(name):
            self._on_outcome("repeated")
            return
        if self._queue.full() or not self._paces.passes(notice.namespace, self._clock()):
            self._on_outcome("dropped")
            return
        self._told.put(name, when)
        self._queue.put_nowait((name, notice, when))

    async def run(self) -> NoReturn:
        """Write what is told, until cancelled."""
        while True:
            name, notice, when = await self._queue.get()
            try:
                self._on_outcome(await self._written(name, notice, when))
            except Exception:
                # Pods are decided on by the same process: no Event is worth stopping it.
                self._on_outcome("failed")
                _logger.exception("event lost", extra={"reason": notice.reason})
            finally:
                self._queue.task_done()

    async def flushed(self) -> None:
        """Return once everything told so far is written, or lost."""
        await self._queue.join()

    async def _written(self, name: str, notice: Notice, when: datetime) -> Outcome:
        path = f"/api/v1/namespaces/{notice.namespace}/events"
        try:
            await self._client.create(path, _event(name, notice, when))
        except ClusterError as error:
            if error.status == HTTPStatus.CONFLICT:
                return "repeated"
            # The next pod of the owner is another chance.
            self._told.forget(name)
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
    """The same for the same owner, reason and hour, whoever writes it."""
    hour = int(when.timestamp()) // _HOUR
    told = "\n".join((notice.owner.uid, notice.reason, str(hour)))
    digest = hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    owner = notice.owner.name[:_LONGEST_NAME].rstrip("-.")
    # Some kinds may be called what no Event can be.
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
    said = ("Warning", notice.reason, notice.message)
    return event(name, about, said, component=COMPONENT, when=when)
