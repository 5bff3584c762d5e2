"""Writes Events on workloads, in the background: at most one for each reason and hour."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
from collections import OrderedDict
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Protocol, TypeAlias

from webhook.errors import ClusterError
from webhook.kube.pace import Pace
from webhook.times import to_second

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
# The API server refuses a longer message.
LONGEST: Final = 1024
_HOUR: Final = 3600
# What a name may be made of, and how much of an owner's goes into an Event's.
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LONGEST_NAME: Final = 200


class Creates(Protocol):
    """What writes an object: the client of the API server."""

    async def create(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Create `body` in the collection at `path`. Raises ClusterError."""


class Notices:
    """Takes notices without waiting, and writes them as Events from `run()`, one at a time.

    The name of an Event is made of the owner's uid, the reason and the hour: so replicas, and
    processes that start anew, make one and the same. A notice that is lost is no loss for long:
    controllers try again.
    """

    def __init__(
        self,
        client: Creates,
        on_outcome: Callable[[Outcome], None],
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._on_outcome = on_outcome
        self._now = now
        self._queue: asyncio.Queue[tuple[str, Notice, datetime]] = asyncio.Queue(WAITING)
        self._told: OrderedDict[str, None] = OrderedDict()
        self._paces: OrderedDict[str, Pace] = OrderedDict()

    def tell(self, notice: Notice) -> None:
        """Have an Event written, unless this was told within the hour, or too much is."""
        when = self._now()
        name = event_name(notice, when)
        if name in self._told:
            self._told.move_to_end(name)
            self._on_outcome("repeated")
            return
        seconds = when.timestamp()
        pace = self._pace(notice.namespace)
        if self._queue.full() or pace.wait(seconds) > 0:
            self._on_outcome("dropped")
            return
        pace.take(seconds)
        self._told[name] = None
        if len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
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
            self._told.pop(name, None)
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

    def _pace(self, namespace: str) -> Pace:
        pace = self._paces.get(namespace)
        if pace is None:
            pace = self._paces[namespace] = Pace(1 / EVERY, BURST)
        self._paces.move_to_end(namespace)
        if len(self._paces) > REMEMBERED:
            self._paces.popitem(last=False)
        return pace


def event_name(notice: Notice, when: datetime) -> str:
    """The same for the same owner, reason and hour, whoever writes it."""
    hour = int(when.timestamp()) // _HOUR
    told = "\n".join((notice.owner.uid, notice.reason, str(hour)))
    digest = hashlib.sha256(told.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    owner = notice.owner.name[:_LONGEST_NAME].rstrip("-.")
    # Some kinds may be called what no Event can be.
    return f"{owner if _NAME.fullmatch(owner) else 'workload'}.{digest}"


def _event(name: str, notice: Notice, when: datetime) -> dict[str, Any]:
    """A v1.Event, which `kubectl describe` finds by the object that it is about."""
    owner, message = notice.owner, notice.message
    at = to_second(when)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": notice.namespace},
        "involvedObject": {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "namespace": notice.namespace,
            "name": owner.name,
            "uid": owner.uid,
        },
        "type": "Warning",
        "reason": notice.reason,
        "message": message if len(message) <= LONGEST else f"{message[: LONGEST - 1]}…",
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
    }
