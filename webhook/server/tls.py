"""TLS contexts, replacing the certificate while serving, and which clients may call."""

from __future__ import annotations

import os
import ssl
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from certs.bundle import certificates, join
from certs.errors import CertificateError
from certs.pair import Pair
from webhook.errors import ServingError
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cryptography import x509

# Forward secrecy and authenticated encryption for TLS 1.2; all ciphers of TLS 1.3 have both.
_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"


def load_pair(context: ssl.SSLContext, pair: Pair) -> None:
    """Load the pair through an in-memory file, which works with a read-only root.

    Raises ssl.SSLError if OpenSSL rejects it.
    """
    file = os.memfd_create("fairlead-tls", os.MFD_CLOEXEC)
    try:
        with open(file, "wb", closefd=False) as memory:
            memory.write(pair.private_key.rstrip() + b"\n" + pair.certificate)
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)


@dataclass(frozen=True, slots=True)
class ServedCertificate:
    """Public facts about the certificate in use. `not_after` is in UTC."""

    serial_number: int
    not_after: datetime


class ServerTls:
    """Holds the certificate for new handshakes; established connections keep theirs.

    The listener gets one outer `context`, which never changes and has no certificate. Each
    handshake is passed to the context of the current pair, which is built and checked before it is
    used.
    (Loading a pair that does not match into a live context breaks every later handshake.)

    `minimum` is the lowest version of TLS. With `ask_clients` a client needs a certificate of an
    authority from trust_clients(); before that call no client is accepted. `served` is the
    certificate for new handshakes; None before the first swap.
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
        # Different threads read files and swap in their content.
        self._changing = threading.Lock()
        self._clients = ""
        self._pair: Pair | None = None
        self._current: ssl.SSLContext | None = None
        self.served: ServedCertificate | None = None
        # The outer context sets version and client authentication, the inner certificates and
        # trust.
        self.context = self._new_context()
        self.context.sni_callback = self._choose

    def swap(self, certificate_pem: bytes, key_pem: bytes) -> ServedCertificate:
        """Use this pair from the next handshake on, and return its public facts.

        `certificate_pem` may be a chain, the leaf first; `key_pem` is not encrypted. Raises
        ServingError if one of them is invalid, they do not match, or the certificate has expired;
        the previous pair then stays in use.
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
            self._pair, self._current, self.served = pair, context, served
        return served

    def trust_clients(self, authorities_pem: bytes) -> int:
        """Accept clients of these authorities from the next handshake on; return their number.

        Raises ServingError if there is none or one of them is invalid; the previous ones then stay
        trusted.
        """
        authorities = certificates(authorities_pem)
        if not authorities:
            raise ServingError(
                "client authorities: no certificate can be read: want PEM, each of them starting "
                "with -----BEGIN CERTIFICATE-----"
            )
        clients = join(authorities).decode()
        with self._changing:
            if self._pair:
                self._current = self._context_of(self._pair, clients)
            self._clients = clients
        return len(authorities)

    def condition(self) -> Condition:
        """Return whether handshakes have a certificate that clients can accept."""
        served = self.served
        if served is None:
            return Condition(ready=False, reason="no certificate yet")
        until = served.not_after.isoformat(timespec="seconds")
        if served.not_after <= self._clock():
            return Condition(ready=False, reason=f"the certificate expired at {until}")
        return Condition(ready=True, reason=f"serial {served.serial_number:x}, until {until}")

    def _choose(
        self, connection: ssl.SSLObject, _name: str | None, _outer: ssl.SSLContext
    ) -> int | None:
        # OpenSSL calls this for every client hello, with or without a server name.
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
            # An elliptic curve or a key size that this build of OpenSSL does not support.
            raise ServingError(
                f"TLS certificate: OpenSSL refuses the pair ({error.reason}); use ECDSA on P-256"
            ) from error
        return context

    def _new_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = self._minimum
        context.set_ciphers(_CIPHERS)
        context.set_alpn_protocols(["http/1.1"])
        # A resumed session would keep the certificate from before the swap. (TLS 1.2 also resumes
        # by session ID, which Python cannot disable; Go's clients, such as the API server, do not
        # use it.) Renegotiation would let a client of TLS 1.2 repeat expensive handshakes.
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


def refuse_caller(permitted: frozenset[str], certificate: Mapping[str, Any]) -> str:
    """Return why a client is refused; "" if one of its names is permitted, or none is named.

    `certificate` is the result of ssl's getpeercert(). A client's names are the common name of its
    subject and the DNS names of its subjectAltName.
    """
    presented = _names(certificate)
    if not permitted or permitted.intersection(presented):
        return ""
    return (
        f"the client's certificate is for {', '.join(presented) or 'no name'}; may call: "
        f"{', '.join(sorted(permitted))} (fairlead serve --client-name)"
    )


def _names(certificate: Mapping[str, Any]) -> list[str]:
    common = [
        value
        for part in certificate.get("subject", ())
        for key, value in part
        if key == "commonName"
    ]
    return [
        *common,
        *(name for kind, name in certificate.get("subjectAltName", ()) if kind == "DNS"),
    ]
