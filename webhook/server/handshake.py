"""Test the TLS port with a handshake, as the API server would make it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn

from certs.bundle import certificates
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.server.webhook_entries import Published

_logger = logging.getLogger(__name__)

# Seconds between two handshakes without changes, because a certificate may expire and a listener
# may hang. A handshake costs a few milliseconds.
INTERVAL: Final = 5.0
# Seconds for which handshakes may fail after a success before the replica is not ready. A bundle
# that was erased is wrong for all replicas at once. It is restored within a few seconds, and
# replicas that became unready would return later than that.
FAILURE_TOLERANCE_SECONDS: Final = 10.0
_SECONDS: Final = 5.0
_NONE_YET: Final = "no handshake with itself yet"
# Errors of an overloaded port. A short overload does not make the webhook unready, because that
# would increase the load of the other replicas. A port without any handshake for longer than this
# serves no new client, and is reported as not ready.
BUSY_PATIENCE: Final = 30.0
_BUSY: Final = (TimeoutError, ConnectionResetError, ConnectionAbortedError, ssl.SSLEOFError)


@dataclass(eq=False, repr=False, slots=True)
class SelfHandshake:
    """Makes handshakes with the own port as the API server does, and keeps the results.

    `address` is the port's own address on this machine. `host` is the required name in the
    certificate. `trusted` returns the published bundles, each of which must verify; if there are
    none, nothing is published yet. `hindered` returns why a handshake is pointless; "" if it is
    not. Setting `due` triggers the next handshake at once. `on_result` is called with each result.
    """

    address: tuple[str, int]
    host: str
    trusted: Callable[[], Sequence[Published]]
    _: KW_ONLY
    due: asyncio.Event
    hindered: Callable[[], str] = str
    interval: float = INTERVAL
    patience: float = FAILURE_TOLERANCE_SECONDS
    clock: Callable[[], float] = time.monotonic
    on_result: Callable[[bool], None] = lambda _verified: None
    _verified: float | None = field(default=None, init=False)
    _result: str = field(default=_NONE_YET, init=False)
    _problems: tuple[str, ...] = field(default=(_NONE_YET,), init=False)

    def condition(self) -> Condition:
        """Return the result of the last handshakes; a recent failure is tolerated."""
        if not self._problems:
            return Condition(ready=True, reason=self._result)
        reason = "; ".join(self._problems)
        if self._verified is None:
            return Condition(ready=False, reason=reason)
        ago = self.clock() - self._verified
        return Condition(ago <= self.patience, f"not verified for {ago:.0f} s: {reason}")

    async def run(self) -> NoReturn:
        """Make handshakes when due, until cancelled."""
        while True:
            self.due.clear()
            await self.check()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.interval):
                    await self.due.wait()

    async def check(self) -> None:
        """Make one handshake per bundle, and store the result."""
        if hindrance := self.hindered():
            self._problems = (hindrance,)
            return
        trusted = self.trusted()
        try:
            failures = [problem for bundle in trusted if (problem := await self._problem(bundle))]
        except _BUSY as error:
            if self._verified is not None and self.clock() - self._verified <= BUSY_PATIENCE:
                _logger.warning("no time for a handshake with itself", extra={"error": str(error)})
                return
            failures = [f"no handshake at {self._where}: {error!r}"]
        problems = tuple(dict.fromkeys(failures))
        if problems and problems != self._problems:
            _logger.error("handshake with itself failed", extra={"error": "; ".join(problems)})
        self._problems = problems
        if not problems:
            self._verified = self.clock()
            under = " and ".join(bundle.where for bundle in trusted)
            self._result = (
                f"{self.host} verified under {under}"
                if trusted
                else "no bundle is published yet to verify under"
            )
        self.on_result(not problems)

    async def _problem(self, published: Published) -> str:
        if not certificates(published.bundle):
            return (
                f"{published.where} has no certificate: `fairlead controller --certificates` or "
                f"cert-manager writes it"
            )
        try:
            await self._shake(_client(published.bundle))
        except ssl.SSLCertVerificationError as error:
            return (
                f"{self.host} is not verified under {published.where}: {error.verify_message}; "
                f"publish the authority that signed the certificate that is served"
            )
        except _BUSY:
            raise
        except OSError as error:
            return f"no handshake at {self._where}: {error!r}"
        return ""

    @property
    def _where(self) -> str:
        return f"{self.address[0]} port {self.address[1]}"

    async def _shake(self, context: ssl.SSLContext) -> None:
        host, port = self.address
        async with asyncio.timeout(_SECONDS):
            transport, _ = await asyncio.get_running_loop().create_connection(
                asyncio.Protocol, host, port, ssl=context, server_hostname=self.host
            )
        transport.abort()


def _client(bundle: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # In TLS 1.3 the client side completes before a server rejects a missing client certificate.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=bundle.decode())
    # As Go does: every certificate in the bundle is trusted, not only roots.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def reached_by(listening: socket.socket) -> tuple[str, int]:
    """Return the address at which the socket is reached from its own machine."""
    address, port = listening.getsockname()[:2]
    if address == "0.0.0.0":  # noqa: S104 (compared with, not listened on)
        return "127.0.0.1", port
    if address != "::":
        return address, port
    only_six = listening.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
    return ("::1" if only_six else "127.0.0.1"), port
