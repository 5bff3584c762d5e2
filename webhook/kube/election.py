"""Leader election with a Lease."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from random import Random
from typing import TYPE_CHECKING, Any

from webhook.api_paths import CollectionPath
from webhook.errors import ClusterError, NotLeading, PassOver
from webhook.kube.lease import LeaseState, Terms, lease_spec, parse_lease, released

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from webhook.kube.client import Client

log = logging.getLogger(__name__)


def clock_since_boot() -> float:
    """Return seconds of a monotonic clock that continues while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(eq=False, repr=False)
class Election:
    """Competes for the Lease `name` in `namespace`, which is created if it is absent.

    `identity` must be unique to this process: two processes with one identity would both lead.
    Clock, sleep, random numbers and the wall clock are arguments. The wall clock (UTC) is written
    to the Lease and has no effect on decisions. The election needs the verbs get, create and patch
    on Leases.

    `last_error` is the last error with the Lease; None after the next success.

    While leading, every write must check `may_write` just before it is sent. Calls in progress at
    the end should finish within the rest of the lease duration (5 seconds). They must also be
    harmless if they do not: creations with deterministic names, and replacements and deletions of
    a known version.
    """

    client: Client
    namespace: str
    name: str
    identity: str
    terms: Terms = field(default_factory=Terms)
    _: KW_ONLY
    clock: Callable[[], float] = clock_since_boot
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Random = field(default_factory=Random)  # It spreads load, and keeps no secret.
    wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    last_error: ClusterError | None = field(default=None, init=False)
    # True if our copy of the Lease is current, so that a renewal takes one call.
    _current: bool = field(default=False, init=False)
    # The holder that was waited for last, as logged.
    _awaited: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self._collection = CollectionPath("coordination.k8s.io/v1", "leases", self.namespace)
        self._tenure = LeaseState(self.identity, self.terms)

    def may_write(self) -> bool:
        """Return True while this process leads and no other can. Check again before each call."""
        return self._tenure.may_write(self.clock())

    @property
    def leading(self) -> bool:
        """The same, for health and metrics."""
        return self.may_write()

    @property
    def holder(self) -> str:
        """The holder of the Lease as last observed; empty without one."""
        return "" if self._tenure.gone or not self._tenure.lease else self._tenure.lease.holder

    async def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Acquire the Lease, run `work` while holding it, and release it when the work returns.

        If the Lease cannot be renewed in time, the work is cancelled; `work` is called again after
        the Lease is acquired again. If the work raises, or this call is cancelled, the Lease is
        released too, after the work has ended.
        """
        while True:
            await self._win()
            log.info("leading: %s holds the lease %s", self._tenure.identity, self.name)
            if await self._serve(work):
                return
            log.warning("not leading any more: the lease %s was lost", self.name)

    async def _win(self) -> None:
        while True:
            await self._try(self.terms.renew_deadline / 2)
            if self.may_write():
                return
            await self.sleep(self.terms.retry_period * self.random.uniform(1.0, 1.2))

    async def _serve(self, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Run the work until it ends (True) or the Lease is lost (False)."""
        working = asyncio.create_task(work())
        renewing = asyncio.create_task(self._renew())
        lost = False
        try:
            await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
            lost = renewing.done() and not working.done()
        finally:
            await _cancelled(renewing)
            await _cancelled(working)
            if not lost:
                await self._resign()
        if not renewing.cancelled():
            renewing.result()
        try:
            if not (lost and working.cancelled()):
                working.result()
        except* NotLeading:
            # The work detected the loss first.
            lost = True
        return not lost

    async def _renew(self) -> None:
        while (left := self._tenure.writes_until - self.clock()) > 0:
            await self.sleep(min(self.terms.retry_period, left))
            left = self._tenure.writes_until - self.clock()
            await self._try(min(self.terms.renew_deadline / 2, left))

    async def _try(self, seconds: float) -> None:
        """Read the Lease if needed, and acquire or renew it if possible."""
        if seconds <= 0:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._round()
        except ClusterError as error:
            self._failed(error)
        except TimeoutError:
            self._failed(ClusterError(f"lease {self.name}: no answer within {seconds:.1f} s"))
        else:
            self.last_error = None

    def _failed(self, error: ClusterError) -> None:
        self.last_error = error
        log.warning("the lease was not renewed: %s", error)

    async def _round(self) -> None:
        if not self._current:
            await self._read_lease()
        sent = self.clock()
        step = self._tenure.step(sent)
        # Cleared in any case: after a lost answer it is unknown what was written.
        self._current = False
        if step == "wait":
            self._say_who_leads()
            return
        lease = None if self._tenure.gone else self._tenure.lease
        identity, duration = self._tenure.identity, self.terms.lease_duration
        spec = lease_spec(lease, identity, duration, self.wall_clock())
        with PassOver(HTTPStatus.CONFLICT) as conflict:
            stored = await self._write(spec, lease and lease.version)
        if conflict.status:
            # Another client wrote first. If it is another holder, stop at once.
            await self._read_lease()
            return
        self._tenure = self._tenure.wrote(parse_lease(stored), sent, self.clock())
        self._current = True

    def _say_who_leads(self) -> None:
        lease = self._tenure.lease
        if lease and lease.holder != self._awaited:
            self._awaited = lease.holder
            log.info(
                "not leading: %s holds the lease %s, for %g s after its last renewal",
                *(lease.holder, self.name, lease.duration or self.terms.lease_duration),
            )

    async def _read_lease(self) -> None:
        raw_lease = await self.client.find(self._collection.path_of(self.name))
        self._tenure = self._tenure.saw(parse_lease(raw_lease) if raw_lease else None, self.clock())

    async def _write(self, spec: Mapping[str, Any], version: str | None) -> dict[str, Any]:
        """Write this spec to the Lease, if it still has this version; None: create it."""
        if version is None:
            lease = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": self.name},
                "spec": spec,
            }
            return await self.client.create(self._collection, lease)
        # A patch keeps labels and annotations of other clients.
        patch = {"metadata": {"resourceVersion": version}, "spec": spec}
        return await self.client.patch(self._collection.path_of(self.name), patch, "merge")

    async def _resign(self) -> None:
        """Stop writing, and release the Lease if this process still holds it."""
        self._tenure = self._tenure.resigned()
        self._current = False
        try:
            async with asyncio.timeout(self.terms.renew_deadline / 2):
                # A cancelled renewal may have been stored, so read the current version first.
                await self._read_lease()
                lease = self._tenure.lease
                if lease and self.holder == self._tenure.identity:
                    await self._write(released(lease, self.wall_clock()), lease.version)
                    log.info("the lease %s is given back", self.name)
        except (ClusterError, TimeoutError) as error:
            log.warning("the lease could not be given back, and will expire: %s", error)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait((task,))
