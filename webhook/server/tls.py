"""The server's TLS: one certificate at a time, swapped as a whole between two handshakes."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from certs.errors import CertificateError
from certs.pair import Pair
from webhook.errors import ServingError, UnreadableInput
from webhook.server.pem import load_pair
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import uvicorn
    from cryptography import x509

# Forward secrecy and authenticated encryption; the names below are TLS 1.2's, 1.3 has no others.
_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


@dataclass(frozen=True, slots=True)
class ServedCertificate:
    """What the world may know of the certificate that serves. `not_after` is in UTC."""

    serial_number: int
    not_after: datetime


class ServerTls:
    """Holds the certificate that new handshakes get; connections that stand keep theirs.

    uvicorn gets one outer context for good. It has no certificate: at each handshake it hands
    over to the context of the current pair, which was built and checked before it became that.
    (Loading a pair that does not match into a live context breaks every later handshake.)
    """

    def __init__(self, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._clock = clock
        self._current: ssl.SSLContext | None = None
        self._served: ServedCertificate | None = None
        self._outer = _new_context()
        self._outer.sni_callback = self._choose

    @property
    def served(self) -> ServedCertificate | None:
        """The certificate that new handshakes get; None before the first swap."""
        return self._served

    def swap(self, certificate_pem: bytes, key_pem: bytes) -> ServedCertificate:
        """Serve with this pair from the next handshake on, and return what it is.

        `certificate_pem` may be a chain, the leaf first; `key_pem` is not encrypted. Raises
        ServingError if one of them cannot be read, they do not match, or the certificate has
        expired; then the pair before serves on.
        """
        pair = Pair(certificate_pem, key_pem)
        try:
            certificate = pair.check()
        except CertificateError as error:
            raise ServingError(f"TLS certificate: {error}") from error
        self._refuse_expired(certificate)
        context = _new_context()
        try:
            load_pair(context, pair)
        except ssl.SSLError as error:
            # An elliptic curve or a key size that this build of OpenSSL does not serve with.
            raise ServingError(
                f"TLS certificate: OpenSSL refuses the pair ({error.reason}); use ECDSA on P-256"
            ) from error
        served = ServedCertificate(certificate.serial_number, certificate.not_valid_after_utc)
        self._current, self._served = context, served
        return served

    def context_factory(
        self, _config: uvicorn.Config, _default: Callable[[], ssl.SSLContext]
    ) -> ssl.SSLContext:
        """Return the outer context: what uvicorn's `ssl_context_factory` wants."""
        return self._outer

    def condition(self) -> Condition:
        """Tell whether handshakes get a certificate that clients can accept."""
        served = self._served
        if served is None:
            return Condition(ready=False, reason="no certificate yet")
        until = served.not_after.isoformat(timespec="seconds")
        if served.not_after <= self._clock():
            return Condition(ready=False, reason=f"the certificate expired at {until}")
        return Condition(ready=True, reason=f"serial {served.serial_number:x}, until {until}")

    def _choose(
        self, connection: ssl.SSLObject, _name: str | None, _outer: ssl.SSLContext
    ) -> int | None:
        # OpenSSL asks for every client hello, a server name in it or not.
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._current
        return None

    def _refuse_expired(self, certificate: x509.Certificate) -> None:
        if certificate.not_valid_after_utc <= self._clock():
            raise ServingError(
                f"TLS certificate: serial number {certificate.serial_number:x} expired at "
                f"{certificate.not_valid_after_utc.isoformat()}; renew it"
            )


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate and its key in two files, as a mounted Secret has them: a reload.Source."""

    certificate: Path
    private_key: Path

    def read(self) -> dict[str, bytes]:
        """Return both files' contents by their paths; raise UnreadableInput."""
        contents: dict[str, bytes] = {}
        problems: list[str] = []
        for path in (self.certificate, self.private_key):
            try:
                contents[str(path)] = path.read_bytes()
            except OSError as error:
                problems.append(f"{path}: {error.strerror}; it is needed to serve TLS")
        if problems:
            raise UnreadableInput(problems)
        return contents

    def signature(self) -> None:
        """Return None: two small files are read as fast as they are looked at."""

    def swap_into(self, tls: ServerTls) -> Callable[[dict[str, bytes]], ServedCertificate]:
        """Return what a Reloader compiles with: it swaps what was read into `tls`."""
        certificate, private_key = str(self.certificate), str(self.private_key)
        return lambda contents: tls.swap(contents[certificate], contents[private_key])


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    # A resumed session would go on with the certificate of before the swap. (TLS 1.2 resumes by
    # session ID as well, which Python cannot turn off; Go's clients, the API server, do not.)
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    return context
