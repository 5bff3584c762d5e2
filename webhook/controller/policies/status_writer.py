"""Policy objects as the controller caches them, and the writes of statuses that differ."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from http import HTTPStatus
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.cluster_objects.policy_objects import PolicyObjects, text_of
from webhook.errors import ClusterError, NotLeading
from webhook.kube.answers import tells_nothing
from webhook.kube.rate_limit import Backoff
from webhook.policy.status_model import MODELS, ObservedObject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

    from webhook.api_paths import ObjectPath
    from webhook.judgement.reporting.statuses import Due, Urgency
    from webhook.kube.cache import Change
    from webhook.kube.watches import Watches
    from webhook.kube.writer import Writes
    from webhook.policy.status_model import ObjectStatus

_logger = logging.getLogger(__name__)

# Seconds between the writes of one object's counts, which change with every pod.
INTERVAL: Final = 60.0
# Seconds between any two writes of one object, because another client may write its status too.
SPACING: Final = 0.5
# Seconds between two passes; a pass over thousands of objects takes a tenth of it.
AFRESH: Final = 0.3
# Maximum writes per second. Runs use hundreds per second of the same rate limit. One edit of the
# policy set changes the hash in each of a thousand statuses.
PACES: Final[Mapping[Urgency, float]] = {"now": 50.0, "soon": 5.0, "counts": 5.0}
# The watch reports the new version or the deletion.
_OVERTAKEN: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)


class Stored(NamedTuple):
    """One object, and the resource version at which it was read."""

    observed: ObservedObject
    version: str

    @property
    def path(self) -> ObjectPath:
        """The path of its status."""
        path = CollectionPath(names.API_VERSION, self.observed.resource)
        return path.path_of(self.observed.name).subresource("status")


def stored(resource: str, raw: dict[str, Any]) -> Stored:
    """Convert a raw object from a response, a list or a watch."""
    metadata = raw["metadata"]
    observed = ObservedObject(
        resource,
        metadata["name"],
        metadata["uid"],
        metadata.get("generation") or 0,
        text_of(resource, raw),
        MODELS[resource].read(raw.get("status")),
    )
    return Stored(observed, metadata["resourceVersion"])


class StoredObjects(PolicyObjects[Stored]):
    """All policy objects as `Stored`; a change of a status is a change as well."""

    def __init__(self, watches: Watches) -> None:
        super().__init__(watches, stored)

    def get(self, resource: str, name: str) -> Stored | None:
        """Return one object; None if there is none."""
        return self.caches[resource].get(name)

    def offer(self, resource: str, raw: dict[str, Any]) -> None:
        """Store the API server's response to a write."""
        new = stored(resource, raw)
        self.caches[resource].offer(new.observed.name, new, new.version)


@dataclass(eq=False, repr=False)
class StatusWriter:
    """Writes the statuses that `due` returns, and again after each wake-up.

    `interval` is the time between the writes of one object's counts, in seconds. Clock and random
    numbers are arguments.
    """

    writer: Writes
    objects: StoredObjects
    due: Callable[[], Sequence[Due]]
    _: KW_ONLY
    interval: float = INTERVAL
    clock: Callable[[], float] = time.monotonic
    random: Random = field(default_factory=Random)  # It spreads load, and keeps no secret.
    trouble: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self._backoff = Backoff(self.random)
        self._wake = asyncio.Event()
        # By uid: the time and the content of the last write of each object.
        self._at: dict[str, float] = {}
        self._as: dict[str, ObjectStatus] = {}
        self.objects.subscribe(self._changed)

    def wake(self) -> None:
        """Request another pass, because the results have changed."""
        self._wake.set()

    async def run(self) -> NoReturn:
        while True:
            self._wake.clear()
            began = self.clock()
            rest = await self._write_all(began)
            await self._rested(rest)
            await asyncio.sleep(max(0.0, began + AFRESH - self.clock()))

    async def write_once(self) -> None:
        """Write all differences now, without spacing. Must not be called while `run` is active."""
        ready = sorted(self.due(), key=self._order)
        if await self._doubt():
            return
        for due_write in ready:
            trouble = await self._write(due_write)
            if trouble is not None and tells_nothing(trouble):
                return

    async def _write_all(self, now: float) -> float:
        """Write what is due, unless woken; return the seconds until the next write."""
        ready: list[Due] = []
        rest = self.interval
        for due_write in self.due():
            wait = (
                self._at.get(due_write.observed.uid, -self.interval)
                + self._spacing(due_write)
                - now
            )
            if wait <= 0:
                ready.append(due_write)
            else:
                rest = min(rest, wait)
        ready.sort(key=self._order)
        # Asked after `due` has taken the objects that it is about.
        if ready and (doubt := await self._doubt()):
            return self._failed(doubt)
        refused = ""
        for due_write in ready:
            trouble = await self._write(due_write)
            if trouble is not None and tells_nothing(trouble):
                # Others could not be written either.
                return self._failed(str(trouble))
            refused = refused or (str(trouble) if trouble else "")
            await asyncio.sleep(1 / PACES[due_write.urgency])
            if self._wake.is_set() and self.clock() - now >= AFRESH:
                # A more urgent write may be due.
                return 0.0
        if refused:
            return self._failed(refused)
        self._backoff.reset()
        self.trouble = ""
        return rest

    async def _write(self, due: Due) -> ClusterError | None:
        """Write one status; return an error that must be reported, else None."""
        stored = self.objects.get(due.observed.resource, due.observed.name)
        if stored is None or stored.observed != due.observed:
            # The object has changed, and a wake-up follows.
            return None
        self._at[due.observed.uid], self._as[due.observed.uid] = self.clock(), due.status
        try:
            answer = await self.writer.patch(
                stored.path,
                _patch(stored, due.status),
                "json",
                query={"fieldManager": names.CONTROLLER},
            )
        except NotLeading:
            # The new leader writes its own statuses.
            return None
        except ClusterError as error:
            if error.status in _OVERTAKEN:
                _logger.debug("status of %s: %s", due.observed.place, error)
                return None
            return error
        self.objects.offer(due.observed.resource, answer)
        return None

    async def _doubt(self) -> str:
        """Return why no status may be written now; "" if all may.

        With a status, the API server stores the spec as its definition has it.
        """
        try:
            return await self.objects.doubt()
        except ClusterError as error:
            return str(error)

    def _failed(self, words: str) -> float:
        if words != self.trouble:
            _logger.warning("statuses of policies cannot be written: %s", words)
        self.trouble = words
        return self._backoff.next()

    async def _rested(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    def _spacing(self, due: Due) -> float:
        return self.interval if due.urgency == "counts" else min(SPACING, self.interval)

    def _order(self, due: Due) -> tuple[bool, float, str]:
        """Sort urgent writes first, then the least recently written objects."""
        return due.urgency != "now", self._at.get(due.observed.uid, 0.0), due.observed.place

    def _changed(self, change: Change[Stored]) -> None:
        """Wake for a status that is not as it was written, or read. Others wake for a new spec,
        once it is judged."""
        before, after = change.before, change.after
        if before is None:
            return
        uid = before.observed.uid
        if after is None:
            self._at.pop(uid, None)
            self._as.pop(uid, None)
        elif self._as.get(uid, before.observed.status) != after.observed.status:
            self.wake()


def _patch(stored: Stored, status: ObjectStatus) -> list[dict[str, Any]]:
    """Return the patch of the status, bound to this version and to the spec as it was read.

    Where an older definition drops a field meanwhile, the spec is another one, and the patch fails:
    it would store the spec without the field.
    """
    written = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    return [
        {"op": "test", "path": "/metadata/uid", "value": stored.observed.uid},
        {"op": "test", "path": "/spec", "value": orjson.loads(stored.observed.text)["spec"]},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": stored.version},
        {"op": "add", "path": "/status", "value": written},
    ]
