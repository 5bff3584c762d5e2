"""The server's TLS: one certificate at a time, swapped as a whole between two handshakes."""

from __future__ import annotations

import os
import ssl
import sys
import tempfile
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from certs.bundle import certificates, join
from certs.errors import CertificateError
from certs.pair import Pair
from webhook.errors import ServingError
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography import x509

# Forward secrecy and authenticated encryption; the names below are TLS 1.2's, 1.3 has no others.
_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


def load_pair(context: ssl.SSLContext, pair: Pair) -> None:
    """Load the pair into the context; raise ssl.SSLError if OpenSSL refuses it."""
    if sys.platform == "linux":
        load_from_memory(context, pair)
    else:
        load_from_file(context, pair)


if sys.platform == "linux":

    def load_from_memory(context: ssl.SSLContext, pair: Pair) -> None:
        """Load the pair by a file that exists in memory only, which a read-only root allows."""
        file = os.memfd_create("fairlead-tls", os.MFD_CLOEXEC)
        try:
            with open(file, "wb", closefd=False) as memory:
                memory.write(_joined(pair))
            context.load_cert_chain(f"/proc/self/fd/{file}")
        finally:
            os.close(file)


def load_from_file(context: ssl.SSLContext, pair: Pair) -> None:
    """Load the pair by a file that only this user may read, and that is deleted at once."""
    with tempfile.TemporaryDirectory(prefix="fairlead-tls-") as folder:
        # mkdtemp makes the folder 0700; the file is 0600 from its first byte on.
        path = Path(folder) / "pair.pem"
        path.touch(mode=0o600)
        path.write_bytes(_joined(pair))
        context.load_cert_chain(path)


def _joined(pair: Pair) -> bytes:
    return pair.private_key.rstrip() + b"\n" + pair.certificate


@dataclass(frozen=True, slots=True)
class ServedCertificate:
    """What the world may know of the certificate that serves. `not_after` is in UTC."""

    serial_number: int
    not_after: datetime


class ServerTls:
    """Holds the certificate that new handshakes get; connections that stand keep theirs.

    The listener gets one outer context for good. It has no certificate: at each handshake it hands
    over to the context of the current pair, which was built and checked before it became that.
    (Loading a pair that does not match into a live context breaks every later handshake.)

    `minimum` is the lowest version of TLS. With `ask_clients` a client has to have a certificate
    by an authority that trust_clients() was given; before that nobody gets in.
    """

    def __init__(
        self,
        *,
        minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
        ask_clients: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._minimum = minimum
        self._ask_clients = ask_clients
        self._clock = clock
        # Files are read, and what they hold swapped in, on threads of their own.
        self._changing = threading.Lock()
        self._clients = ""
        self._pair: Pair | None = None
        self._current: ssl.SSLContext | None = None
        self._served: ServedCertificate | None = None
        # Version and the asking are the outer context's to say, certificates and trust the inner's.
        self._outer = self._new_context()
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
        served = ServedCertificate(certificate.serial_number, certificate.not_valid_after_utc)
        with self._changing:
            context = self._context_of(pair, self._clients)
            self._pair, self._current, self._served = pair, context, served
        return served

    def trust_clients(self, authorities_pem: bytes) -> int:
        """From the next handshake on, let in whom these authorities vouch for; return their count.

        Raises ServingError if not every one of them can be read, or there is none; then those
        before are trusted on.
        """
        found = certificates(authorities_pem)
        if not found:
            raise ServingError(
                "client authorities: no certificate can be read: want PEM, each of them starting "
                "with -----BEGIN CERTIFICATE-----"
            )
        clients = join(found).decode()
        with self._changing:
            if self._pair:
                self._current = self._context_of(self._pair, clients)
            self._clients = clients
        return len(found)

    @property
    def context(self) -> ssl.SSLContext:
        """The outer context: what connections are accepted with."""
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

    def _context_of(self, pair: Pair, clients: str) -> ssl.SSLContext:
        context = self._new_context()
        if clients:
            context.load_verify_locations(cadata=clients)
        try:
            load_pair(context, pair)
        except ssl.SSLError as error:
            # An elliptic curve or a key size that this build of OpenSSL does not serve with.
            raise ServingError(
                f"TLS certificate: OpenSSL refuses the pair ({error.reason}); use ECDSA on P-256"
            ) from error
        return context

    def _new_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._minimum
        context.set_ciphers(_CIPHERS)
        context.set_alpn_protocols(["http/1.1"])
        # A resumed session would go on with the certificate of before the swap. (TLS 1.2 resumes
        # by session ID as well, which Python cannot turn off; Go's clients, the API server, do
        # not.) Nor may a client of TLS 1.2 have the handshake done over and over.
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
        context.num_tickets = 0
        if self._ask_clients:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _refuse_expired(self, certificate: x509.Certificate) -> None:
        if certificate.not_valid_after_utc <= self._clock():
            raise ServingError(
                f"TLS certificate: serial number {certificate.serial_number:x} expired at "
                f"{certificate.not_valid_after_utc.isoformat()}; renew it"
            )
