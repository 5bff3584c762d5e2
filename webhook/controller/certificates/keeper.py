"""Keeps an installation's certificates: looks, does the one thing that is next, looks again."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http import HTTPStatus
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from certs.rotation import KeepAuthority, KeepServing, Publish, Wait, phase, step
from webhook.backoff import CONFLICT_DELAYS, REWRITE_DELAYS
from webhook.controller.certificates.carry_out import carry_out
from webhook.errors import ClusterError, NotLeading
from webhook.kube.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable
    from typing import NoReturn

    from certs.rotation import Observed, Terms
    from webhook.controller.certificates.carry_out import Writes
    from webhook.controller.certificates.metrics import CertificateMetrics
    from webhook.controller.certificates.observe import ObservedCertificates, Observer
    from webhook.controller.certificates.places import Installation

_logger = logging.getLogger(__name__)

# Seconds. The wall clock decides what is due, and no timer follows it through a suspended machine
# or a clock that is set. A watch may have missed what undoes our work, too.
LONGEST_REST: Final = 60.0
# Several changes come together: what a `kubectl apply` writes, say.
GATHER: Final = 0.1
FOLLOWS: Final = "kept by whoever leads"
_OBJECTS: Final = {KeepAuthority: "authority", KeepServing: "serving", Publish: "bundle"}
_PASSING: Final = (
    None,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
# So often the same write is repeated at once: people and tools do undo a thing now and then.
FREE: Final = 5
# Seconds without a write after which the count is forgotten.
FORGOTTEN: Final = 600.0


def cause(step: KeepAuthority | KeepServing | Publish, observed: Observed) -> Hashable:
    """What tells a write that is repeated from the next one of a rotation.

    Empty for what somebody asked for: they may ask as often as they like.
    """
    match step:
        case Publish(bundle):
            return ("publish", sha256(bundle).digest())
        case KeepServing(serving, why):
            if observed.renew_leaf:
                return ()
            return ("serving", why, sha256(serving.bundle).digest())
        case KeepAuthority(authority, why):
            if observed.authority is None:
                # Another authority each time.
                return ("authority", why)
            if observed.renew_authority and observed.authority.staged is None:
                return ()
            return ("authority", why, sha256(authority.bundle).digest())


class Quarrel:
    """Counts writes by cause. Times are seconds of any clock that only goes forward."""

    def __init__(self) -> None:
        self._written: dict[Hashable, tuple[int, float]] = {}

    def times(self, cause: Hashable) -> int:
        """How often it has been written without a longer quiet."""
        return self._written.get(cause, (0, 0.0))[0]

    def pause(self, cause: Hashable, now: float) -> float:
        """Seconds for which this is better not written yet."""
        count, last = self._written.get(cause, (0, now))
        if count < FREE:
            return 0.0
        return max(0.0, last + REWRITE_DELAYS.after(count - FREE + 1) - now)

    def wrote(self, cause: Hashable, now: float) -> None:
        """It has been written once more."""
        self._written = {
            each: (count, last)
            for each, (count, last) in self._written.items()
            if now - last < FORGOTTEN
        }
        if cause:
            self._written[cause] = (self.times(cause) + 1, now)


def kind_of(error: ClusterError) -> str:
    """One of metrics.ERRORS."""
    if error.status == HTTPStatus.CONFLICT:
        return "conflict"
    if error.status in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED):
        return "forbidden"
    return "unreachable" if error.status in _PASSING else "refused"


def in_words(error: ClusterError) -> str:
    """The API server's words, which name the right that is missing or the field, and the cure."""
    match kind_of(error):
        case "forbidden":
            return (
                f"{error}. The keeper of certificates needs this right: apply the Roles of the"
                " manifests again, or start the controller with --no-certificates"
            )
        case "refused" if error.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            return (
                f"{error}. If this is a Secret that cannot be written, an immutable one or one of"
                " a type that wants something else, delete it: it is made anew"
            )
    return str(error)


class Rest(NamedTuple):
    """How long to rest, in seconds, and whether a change ends it before."""

    seconds: float
    wakes: bool = False


class Keeper:
    """Looks after the certificates of one installation while this process leads.

    Two that both believe to lead do no harm: each write holds for the version that was read.
    `clock` is the wall clock, in UTC. `watch` runs beside it, and calls what it is given whenever
    something has changed; without it a change is seen within a minute.
    """

    def __init__(
        self,
        observer: Observer,
        writes: Writes,
        installation: Installation,
        terms: Terms,
        metrics: CertificateMetrics,
        *,
        watch: Callable[[Callable[[], None]], Coroutine[None, None, NoReturn]] | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        steady_clock: Callable[[], float] = time.monotonic,
        random: Random | None = None,
    ) -> None:
        self._observer = observer
        self._writes = writes
        self._installation = installation
        self._terms = terms
        self._metrics = metrics
        self._watch = watch
        self._clock = clock
        self._steady_clock = steady_clock
        self._random = random or Random()  # noqa: S311 (spreads load, keeps no secret)
        self._backoff = Backoff(self._random)
        self._conflicts = Backoff(self._random, CONFLICT_DELAYS)
        self._quarrel = Quarrel()
        self._changed = asyncio.Event()
        self._unchanged: tuple[tuple[str | None, ...], float] | None = None
        self._leading = False
        self._settled = False
        self._says = FOLLOWS
        self._trouble = ""
        self._waits_for = ""

    @property
    def ready(self) -> bool:
        """False while this process leads and has never yet been through with a look."""
        # What was right once stays ready: an API server that is away is no fault of ours.
        return not self._leading or self._settled or not self._trouble

    @property
    def reason(self) -> str:
        """What the certificates are in the middle of, what is waited for, what went wrong last."""
        return f"{self._says}; {self._trouble}" if self._trouble else self._says

    async def lead(self) -> None:
        """Go on until cancelled."""
        self._leading = True
        # Another may have led meanwhile.
        self._unchanged = None
        self._says = "not looked at yet"
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watched())
                group.create_task(self._keep())
        finally:
            self._leading = False
            self._says, self._trouble = FOLLOWS, ""
            self._metrics.unknown()

    async def _watched(self) -> None:
        try:
            if self._watch:
                await self._watch(self._changed.set)
        except Exception:
            # Changes are seen within a minute then; and the runs' controller goes on.
            _logger.exception("certificates are not watched any more: this is a bug")

    async def _keep(self) -> NoReturn:
        while True:
            self._changed.clear()
            await self._rest(await self.look())

    async def _rest(self, rest: Rest) -> None:
        if not rest.wakes:
            await asyncio.sleep(rest.seconds)
            return
        try:
            async with asyncio.timeout(rest.seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        await asyncio.sleep(GATHER)

    async def look(self) -> Rest:
        """Look, and write at most one thing. Raises nothing but cancellation."""
        try:
            seen = self._timed(await self._observer.observe())
            self._metrics.saw(seen.observed)
            rest = await self._act(seen)
        except ClusterError as error:
            return self._failed(error)
        except NotLeading as error:
            # Whoever leads now goes on.
            self._trouble = str(error)
            return Rest(self._backoff.next())
        except Exception:
            # A bug here must not take the runs with it.
            self._trouble = "this is a bug, see the log"
            _logger.exception("certificates cannot be looked after: this is a bug")
            return Rest(self._backoff.next())
        self._backoff.reset()
        self._conflicts.reset()
        return rest

    def _timed(self, seen: ObservedCertificates) -> ObservedCertificates:
        """What was seen, with how long it has been so: a time in it is by any leader's clock."""
        versions = tuple(
            (each or {}).get("metadata", {}).get("resourceVersion")
            for each in (seen.authority, seen.serving)
        )
        now = self._steady_clock()
        if self._unchanged is None or self._unchanged[0] != versions:
            self._unchanged = versions, now
        unchanged = timedelta(seconds=now - self._unchanged[1])
        return replace(seen, observed=replace(seen.observed, unchanged=unchanged))

    async def _act(self, seen: ObservedCertificates) -> Rest:
        now = self._clock()
        due = step(seen.observed, now, self._terms)
        in_phase = phase(seen.observed.authority)
        self._says = f"{in_phase}: {due.why}"
        if isinstance(due, Wait):
            if due.why != self._waits_for:
                _logger.info("certificates: %s", self._says)
            self._waits_for = due.why
            self._says += f", until {due.until.isoformat(timespec='seconds')}"
            self._trouble = ""
            self._settled = True
            seconds = (due.until - now).total_seconds()
            return Rest(min(max(seconds, 0.0), LONGEST_REST), wakes=True)
        kept = _OBJECTS[type(due)]
        of = cause(due, seen.observed)
        if pause := self._quarrel.pause(of, self._steady_clock()):
            return self._undone(kept, due.why, self._quarrel.times(of), pause)
        await carry_out(due, seen, self._installation, self._writes)
        self._quarrel.wrote(of, self._steady_clock())
        self._metrics.wrote(kept)
        self._waits_for = ""
        _logger.info("certificates: %s written: %s", kept, due.why, extra={"phase": in_phase})
        return Rest(0.0)

    def _undone(self, kept: str, why: str, times: int, pause: float) -> Rest:
        self._trouble = (
            f"{kept} was written {times} times ({why}), and somebody undoes it each time: look at"
            f" the managedFields of the object for who that is; next in {pause:.0f} s"
        )
        self._metrics.failed("undone")
        _logger.warning("certificates: %s", self._trouble)
        return Rest(pause)

    def _failed(self, error: ClusterError) -> Rest:
        kind = kind_of(error)
        self._metrics.failed(kind)
        if kind == "conflict":
            _logger.debug("certificates: somebody was quicker: %s", error)
            return Rest(self._conflicts.next())
        words = in_words(error)
        if words != self._trouble:
            # Something else: what was wrong before has been put right.
            self._backoff.reset()
        self._trouble = words
        pause = max(self._backoff.next(), min(error.retry_after or 0.0, LONGEST_REST))
        _logger.warning("certificates: %s; again in %.1f s", self._trouble, pause)
        return Rest(pause)
