"""Keep an installation's certificates: observe, do the next step with one guarded write, repeat."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from http import HTTPStatus
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from certs.bundle import same
from certs.rotation import KeepAuthority, KeepServing, Publish, Wait, phase, step
from webhook import names
from webhook.backoff import CONFLICT_DELAYS, REWRITE_DELAYS
from webhook.controller.certificates.certificate_objects import (
    OPAQUE,
    TLS,
    application,
    bundles,
    new_secret,
    replaced_secret,
)
from webhook.errors import ClusterError, NotLeading
from webhook.kube.answers import tells_nothing
from webhook.kube.rate_limit import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from contextlib import AbstractContextManager
    from typing import NoReturn

    from certs.rotation import Observed, Terms
    from webhook.controller.certificates.certificate_metrics import CertificateMetrics
    from webhook.controller.certificates.certificate_objects import Installation
    from webhook.controller.certificates.observe import ObservedCertificates, Observer
    from webhook.kube.writer import Writes

_logger = logging.getLogger(__name__)

# Seconds. Renewal depends on the wall clock, and timers do not follow a suspended machine or a
# clock that is set. A watch may also miss a change that reverts a write.
LONGEST_REST: Final = 60.0
# Seconds to wait for related changes, for example those of one `kubectl apply`.
GATHER: Final = 0.1
FOLLOWS: Final = "done by the leader"
_OBJECTS: Final = {KeepAuthority: "authority", KeepServing: "serving", Publish: "bundle"}
# How often the same write may be repeated without delay: users and tools occasionally revert one.
FREE: Final = 5
# Seconds without a write after which the count is reset.
FORGOTTEN: Final = 600.0
_APPLY: Final = {"fieldManager": names.CERTIFICATES_MANAGER, "force": "true"}


async def carry_out(
    step: KeepAuthority | KeepServing | Publish,
    observation: ObservedCertificates,
    installation: Installation,
    writes: Writes,
) -> None:
    """Write the objects of `step`, at the versions that were observed.

    Raises ClusterError; a 409 means that another client wrote first, and nothing was changed.
    Several configurations are written one after the other. Each write stands alone, so a partial
    result is valid: a configuration with the new bundle is correct.
    """
    match step:
        case Publish(bundle):
            for place, configuration in observation.configurations:
                held = bundles(configuration, installation).values()
                if not all(same(held_bundle, bundle) for held_bundle in held):
                    body = application(place, configuration, installation, bundle)
                    await writes.patch(place.path, body, "apply", query=_APPLY)
            return
        case KeepAuthority(authority):
            before = observation.observed.authority
            # A rotation that was already in progress does not satisfy the request.
            answered = authority.staged is not None and (
                before is None or before.staged != authority.staged
            )
            name, kind, data = installation.authority, OPAQUE, authority.data()
            secret = observation.authority
        case KeepServing(serving):
            old = observation.observed.serving
            answered = old is None or old.leaf != serving.leaf
            name, kind, data = installation.serving, TLS, serving.data()
            secret = observation.serving
    if secret is None:
        await writes.create(installation.secrets, new_secret(name, kind, data))
    else:
        body = replaced_secret(secret, data, answered=answered)
        await writes.replace(installation.secret(name), body)


def cause(step: KeepAuthority | KeepServing | Publish, observed: Observed) -> Hashable:
    """Return a key that distinguishes a repeated write from the next step of a rotation.

    Empty for a requested renewal, which is not limited.
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
                # Each new authority has a different bundle.
                return ("authority", why)
            if observed.renew_authority and observed.authority.staged is None:
                return ()
            return ("authority", why, sha256(authority.bundle).digest())


class Quarrel:
    """Counts writes by cause. Times are in seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._written: dict[Hashable, tuple[int, float]] = {}

    def times(self, cause: Hashable) -> int:
        """Return the number of repeated writes since the last quiet period."""
        return self._written.get(cause, (0, 0.0))[0]

    def pause(self, cause: Hashable, now: float) -> float:
        """Return the seconds to wait before this write."""
        count, last = self._written.get(cause, (0, now))
        if count < FREE:
            return 0.0
        return max(0.0, last + REWRITE_DELAYS.after(count - FREE + 1) - now)

    def lasts(self, now: float) -> bool:
        """Return whether a write was repeated so often that it waits, until long after the last."""
        return any(
            count > FREE and now - last < FORGOTTEN for count, last in self._written.values()
        )

    def wrote(self, cause: Hashable, now: float) -> None:
        """Record one write."""
        self._written = {
            key: (count, last)
            for key, (count, last) in self._written.items()
            if now - last < FORGOTTEN
        }
        if cause:
            self._written[cause] = (self.times(cause) + 1, now)


def kind_of(error: ClusterError) -> str:
    """Return the error's label, one of certificate_metrics.ERRORS."""
    if error.status == HTTPStatus.CONFLICT:
        return "conflict"
    if error.status in (HTTPStatus.FORBIDDEN, HTTPStatus.UNAUTHORIZED):
        return "forbidden"
    return "unreachable" if tells_nothing(error) else "refused"


def describe_error(error: ClusterError) -> str:
    """Return the API server's message, which names the missing right or the field, and a cure."""
    match kind_of(error):
        case "forbidden":
            return (
                f"{error}. The keeper of certificates needs this right: apply the Roles of the"
                " manifests again, or start the controller with --no-certificates"
            )
        case "refused" if error.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            return (
                f"{error}. If this is a Secret that cannot be written, an immutable one or "
                "one of another type, delete it: it is created again"
            )
    return str(error)


class Pause(NamedTuple):
    """The seconds until the next check, and whether a change ends the pause early."""

    seconds: float
    wakes: bool = False


@dataclass(eq=False, repr=False)
class Keeper:
    """Keep the certificates of one installation current while this process leads.

    Two processes that both believe they lead do no harm: each write requires the version that was
    read. `clock` is the wall clock, in UTC. Within `watch`, its argument is called after each
    change; without it, a change is detected within LONGEST_REST seconds.
    """

    observer: Observer
    writes: Writes
    installation: Installation
    terms: Terms
    metrics: CertificateMetrics
    _: KW_ONLY
    watch: Callable[[Callable[[], None]], AbstractContextManager[None]] = lambda _: nullcontext()
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    steady_clock: Callable[[], float] = time.monotonic
    random: Random = field(default_factory=Random)  # It spreads load, and keeps no secret.
    _unchanged: tuple[tuple[str | None, ...], float] | None = field(default=None, init=False)
    _leading: bool = field(default=False, init=False)
    _settled: bool = field(default=False, init=False)
    _says: str = field(default=FOLLOWS, init=False)
    _trouble: str = field(default="", init=False)
    _failing_since: float | None = field(default=None, init=False)
    _waits_for: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self._backoff = Backoff(self.random)
        self._conflicts = Backoff(self.random, CONFLICT_DELAYS)
        self._quarrel = Quarrel()
        self._changed = asyncio.Event()
        self.metrics.read_failing(self.failing_age)

    def failing_age(self) -> float:
        """Return the seconds since the first failure after which nothing was as it should be.

        A write that another client reverts again and again is a failure until it stays for
        FORGOTTEN seconds, though each write succeeds.
        """
        since = self._failing_since
        return 0.0 if since is None else self.steady_clock() - since

    def _note_trouble(self, trouble: str) -> None:
        self._trouble = trouble
        if self._failing_since is None:
            self._failing_since = self.steady_clock()

    @property
    def ready(self) -> bool:
        """False while this process leads and has not yet completed a check."""
        # Once ready, the keeper stays ready: an API server outage is not its failure.
        return not self._leading or self._settled or not self._trouble

    @property
    def reason(self) -> str:
        """The step in progress, what it waits for, and the last error."""
        return f"{self._says}; {self._trouble}" if self._trouble else self._says

    async def lead(self) -> None:
        """Keep the certificates current until cancelled."""
        self._leading = True
        # Another process may have led in the meantime.
        self._unchanged = None
        self._says = "not checked yet"
        try:
            with self.watch(self._changed.set):
                await self._keep()
        finally:
            self._leading = False
            self._says, self._trouble, self._failing_since = FOLLOWS, "", None
            self.metrics.unknown()

    async def _keep(self) -> NoReturn:
        while True:
            self._changed.clear()
            await self._pause(await self.take_step())

    async def _pause(self, rest: Pause) -> None:
        if not rest.wakes:
            await asyncio.sleep(rest.seconds)
            return
        try:
            async with asyncio.timeout(rest.seconds):
                await self._changed.wait()
        except TimeoutError:
            return
        await asyncio.sleep(GATHER)

    async def take_step(self) -> Pause:
        """Observe, and write at most one object. Raises nothing but cancellation."""
        try:
            observation = self._timed(await self.observer.observe())
            self.metrics.saw(observation.observed)
            rest = await self._act(observation)
        except ClusterError as error:
            return self._failed(error)
        except NotLeading as error:
            # The new leader continues.
            self._note_trouble(str(error))
            return Pause(self._backoff.next())
        except Exception:
            # A bug here must not stop the controller of Runs.
            self._note_trouble("this is a bug, see the log")
            _logger.exception("certificates cannot be reconciled: this is a bug")
            return Pause(self._backoff.next())
        self._backoff.reset()
        self._conflicts.reset()
        return rest

    def _timed(self, observation: ObservedCertificates) -> ObservedCertificates:
        """Add the time since the last change, measured on this process's clock."""
        versions = tuple(
            (secret or {}).get("metadata", {}).get("resourceVersion")
            for secret in (observation.authority, observation.serving)
        )
        now = self.steady_clock()
        if self._unchanged is None or self._unchanged[0] != versions:
            self._unchanged = versions, now
        unchanged = timedelta(seconds=now - self._unchanged[1])
        return replace(observation, observed=replace(observation.observed, unchanged=unchanged))

    async def _act(self, observation: ObservedCertificates) -> Pause:
        now = self.clock()
        due = step(observation.observed, now, self.terms)
        in_phase = phase(observation.observed.authority)
        self._says = f"{in_phase}: {due.why}"
        if isinstance(due, Wait):
            if due.why != self._waits_for:
                _logger.info("certificates: %s", self._says)
            self._waits_for = due.why
            self._says += f", until {due.until.isoformat(timespec='seconds')}"
            self._trouble = ""
            if not self._quarrel.lasts(self.steady_clock()):
                self._failing_since = None
            self._settled = True
            seconds = (due.until - now).total_seconds()
            return Pause(min(max(seconds, 0.0), LONGEST_REST), wakes=True)
        kept = _OBJECTS[type(due)]
        write_cause = cause(due, observation.observed)
        if pause := self._quarrel.pause(write_cause, self.steady_clock()):
            return self._undone(kept, due.why, self._quarrel.times(write_cause), pause)
        await carry_out(due, observation, self.installation, self.writes)
        self._quarrel.wrote(write_cause, self.steady_clock())
        self.metrics.wrote(kept)
        self._waits_for = ""
        _logger.info("certificates: %s written: %s", kept, due.why, extra={"phase": in_phase})
        return Pause(0.0)

    def _undone(self, kept: str, why: str, times: int, pause: float) -> Pause:
        self._note_trouble(
            f"{kept} was written {times} times ({why}), and another client reverts it each time: "
            f"its managedFields name the client; next try in {pause:.0f} s"
        )
        self.metrics.failed("undone")
        _logger.warning("certificates: %s", self._trouble)
        return Pause(pause)

    def _failed(self, error: ClusterError) -> Pause:
        kind = kind_of(error)
        self.metrics.failed(kind)
        if kind == "conflict":
            _logger.debug("certificates: another client wrote first: %s", error)
            return Pause(self._conflicts.next())
        words = describe_error(error)
        if words != self._trouble:
            # A different error means that the previous one was resolved.
            self._backoff.reset()
        self._note_trouble(words)
        pause = max(self._backoff.next(), min(error.retry_after or 0.0, LONGEST_REST))
        _logger.warning("certificates: %s; again in %.1f s", self._trouble, pause)
        return Pause(pause)
