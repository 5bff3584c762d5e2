"""Whether the API server could speak to us: a verified handshake of the process with itself."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import time
from typing import TYPE_CHECKING, Final, NoReturn

from certs.bundle import certificates
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webhook.server.published import Published

_logger = logging.getLogger(__name__)

# Seconds between two handshakes where nothing changes: a certificate may expire meanwhile, and a
# listener hang. One costs a few milliseconds.
INTERVAL: Final = 5.0
# For how many seconds a handshake may fail, once one was good, before we are not ready. A bundle
# that is wiped is wrong for all replicas at once: it is repaired within a few seconds, and
# replicas that went for it would come back seconds later than it did.
PATIENCE: Final = 10.0
_SECONDS: Final = 5.0
# What comes of a port that has too much to do. For a while it is no reason to leave: then the other
# replicas would have more to do. But a port at which nobody gets a handshake for longer serves
# nobody who comes, and says so.
BUSY_PATIENCE: Final = 30.0
_BUSY: Final = (TimeoutError, ConnectionResetError, ConnectionAbortedError, ssl.SSLEOFError)


class SelfHandshake:
    """Shakes hands with the own port as the API server does, and remembers what came of it.

    `address` is the port's own, on this machine. `host` is the name that has to be in the
    certificate.
    `trusted` gives each bundle that is published, of which every one has to verify; none: nothing
    is published yet, and nothing can be wrong. `hindered` says why there is no use in trying, if
    there is none. Whoever sets `due` has the next handshake made at once. `on_result` gets each
    result.
    """

    def __init__(
        self,
        address: tuple[str, int],
        host: str,
        trusted: Callable[[], Sequence[Published]],
        *,
        due: asyncio.Event,
        hindered: Callable[[], str] = str,
        interval: float = INTERVAL,
        patience: float = PATIENCE,
        busy_patience: float = BUSY_PATIENCE,
        clock: Callable[[], float] = time.monotonic,
        on_result: Callable[[bool], None] = lambda _verified: None,
    ) -> None:
        self._address = address
        self._host = host
        self._trusted = trusted
        self._interval = interval
        self._patience = patience
        self._busy_patience = busy_patience
        self._clock = clock
        self._on_result = on_result
        self._due = due
        self._hindered = hindered
        self._verified: float | None = None
        self._result = "no handshake with itself yet"
        self._problems: tuple[str, ...] = (self._result,)

    def condition(self) -> Condition:
        """Tell what the last handshakes came to; one that failed a moment ago is forgiven."""
        if not self._problems:
            return Condition(ready=True, reason=self._result)
        reason = "; ".join(self._problems)
        if self._verified is None:
            return Condition(ready=False, reason=reason)
        ago = self._clock() - self._verified
        return Condition(ago <= self._patience, f"not verified for {ago:.0f} s: {reason}")

    async def run(self) -> NoReturn:
        """Shake hands whenever it is due, until cancelled."""
        while True:
            self._due.clear()
            await self.check()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._due.wait()

    async def check(self) -> None:
        """Shake hands once under each bundle, and remember what came of it."""
        if hindrance := self._hindered():
            self._problems = (hindrance,)
            return
        trusted = self._trusted()
        try:
            found = [problem for each in trusted if (problem := await self._problem(each))]
        except _BUSY as error:
            if self._verified is not None and self._clock() - self._verified <= self._busy_patience:
                _logger.warning("no time for a handshake with itself", extra={"error": str(error)})
                return
            found = [f"no handshake at {self._where}: {error!r}"]
        problems = tuple(dict.fromkeys(found))
        if problems and problems != self._problems:
            _logger.error("handshake with itself failed", extra={"error": "; ".join(problems)})
        self._problems = problems
        if not problems:
            self._verified = self._clock()
            under = " and ".join(each.where for each in trusted)
            self._result = (
                f"{self._host} verified under {under}"
                if trusted
                else "no bundle is published yet to verify under"
            )
        self._on_result(not problems)

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
                f"{self._host} is not verified under {published.where}: {error.verify_message}; "
                f"publish the authority that signed the certificate that is served"
            )
        except _BUSY:
            raise
        except OSError as error:
            return f"no handshake at {self._where}: {error!r}"
        return ""

    @property
    def _where(self) -> str:
        return f"{self._address[0]} port {self._address[1]}"

    async def _shake(self, context: ssl.SSLContext) -> None:
        host, port = self._address
        async with asyncio.timeout(_SECONDS):
            transport, _ = await asyncio.get_running_loop().create_connection(
                asyncio.Protocol, host, port, ssl=context, server_hostname=self._host
            )
        transport.abort()


def _client(bundle: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # With 1.3 our side is done before a server that wants a certificate of ours says no.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=bundle.decode())
    # As Go does: whatever is in the bundle is trusted, be it the root of a chain or not.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def reached_by(listening: socket.socket) -> tuple[str, int]:
    """Where the socket is reached from within its own machine."""
    address, port = listening.getsockname()[:2]
    if address == "0.0.0.0":  # noqa: S104 (compared with, not listened on)
        return "127.0.0.1", port
    if address != "::":
        return address, port
    only_six = listening.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
    return ("::1" if only_six else "127.0.0.1"), port
