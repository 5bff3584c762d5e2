"""Certificates as stored: the authority's Secret and the serving Secret, as values.

Both are mappings of names to bytes, the data of a Kubernetes Secret; the caller stores them. An
invalid value is read as None, and then created again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Self

from certs.bundle import certificates, join
from certs.errors import CertificateError
from certs.pair import Pair

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cryptography import x509

CERTIFICATE: Final = "tls.crt"
PRIVATE_KEY: Final = "tls.key"
BUNDLE: Final = "ca.crt"
STAGED_CERTIFICATE: Final = "staged.crt"
STAGED_KEY: Final = "staged.key"
RETIRING: Final = "retiring.crt"
PUBLISHED_SINCE: Final = "published-since"


@dataclass(frozen=True, slots=True)
class Authority:
    """The authorities. Only the signer needs their keys.

    signing: signs leaves; None before the first authority has been published.
    staged: will sign, once every client trusts it.
    retiring: sign no more, but leaves by them may still be in use; certificates only.
    published_since: when the staged one was first observed in every place that clients read.
    """

    signing: Pair | None = None
    staged: Pair | None = None
    retiring: tuple[x509.Certificate, ...] = ()
    published_since: datetime | None = None

    @property
    def bundle(self) -> bytes:
        """The certificates that clients must trust: all of them."""
        pairs = [pair for pair in (self.signing, self.staged) if pair]
        return join([*(pair.check() for pair in pairs), *self.retiring])

    def data(self) -> dict[str, bytes]:
        """Return the data of the Secret."""
        kept: dict[str, bytes] = {}
        if self.signing:
            kept |= {
                CERTIFICATE: self.signing.certificate,
                PRIVATE_KEY: self.signing.private_key,
            }
        if self.staged:
            kept |= {
                STAGED_CERTIFICATE: self.staged.certificate,
                STAGED_KEY: self.staged.private_key,
            }
        if self.retiring:
            kept[RETIRING] = join(self.retiring)
        if self.published_since:
            kept[PUBLISHED_SINCE] = self.published_since.isoformat().encode()
        return kept

    @classmethod
    def read(cls, data: Mapping[str, bytes]) -> Self | None:
        """Parse the data of the Secret; None if a part of it is invalid, or there is none."""
        try:
            read = cls(
                _pair(data, CERTIFICATE, PRIVATE_KEY),
                _pair(data, STAGED_CERTIFICATE, STAGED_KEY),
                _retiring(data.get(RETIRING, b"")),
                _time(data.get(PUBLISHED_SINCE)),
            )
        except (CertificateError, ValueError):
            return None
        return read if read.signing or read.staged else None


@dataclass(frozen=True, slots=True)
class Serving:
    """The serving certificate: a leaf, its key, and the bundle for clients."""

    leaf: Pair
    bundle: bytes

    def data(self) -> dict[str, bytes]:
        """Return the data of a kubernetes.io/tls Secret."""
        return {
            CERTIFICATE: self.leaf.certificate,
            PRIVATE_KEY: self.leaf.private_key,
            BUNDLE: self.bundle,
        }

    @classmethod
    def read(cls, data: Mapping[str, bytes]) -> Self | None:
        """Parse the data; None if the leaf is missing or invalid, or does not match its key."""
        try:
            leaf = _pair(data, CERTIFICATE, PRIVATE_KEY)
        except CertificateError:
            return None
        return cls(leaf, data.get(BUNDLE, b"")) if leaf else None

    def trusting(self, bundle: bytes) -> Self:
        """Return the same leaf with another bundle."""
        return replace(self, bundle=bundle)


def _pair(data: Mapping[str, bytes], certificate: str, key: str) -> Pair | None:
    if not data.get(certificate) and not data.get(key):
        return None
    pair = Pair(data.get(certificate, b""), data.get(key, b""))
    pair.check()
    return pair


def _retiring(pem: bytes) -> tuple[x509.Certificate, ...]:
    found = certificates(pem)
    if pem and not found:
        # An invalid list is not the same as none: leaves by these authorities may be in use.
        raise CertificateError("no certificate can be read of those that retire")
    return found


def _time(text: bytes | None) -> datetime | None:
    if not text:
        return None
    time = datetime.fromisoformat(text.decode())
    if time.tzinfo is None:
        raise ValueError("no time zone")
    return time
