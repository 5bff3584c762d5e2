"""A bundle: the authorities that are trusted at one time, as one PEM text."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime


def certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    """Return every certificate in the text, in order; none if any part of it is invalid.

    An invalid bundle counts as empty, because it is rewritten, not repaired.
    """
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except ValueError:
        return ()


def join(members: Iterable[x509.Certificate]) -> bytes:
    """Return the text of a bundle, without duplicates and sorted: equal sets, equal bytes."""
    texts = {member.public_bytes(Encoding.DER) for member in members}
    return b"".join(ssl.DER_cert_to_PEM_cert(der).encode() for der in sorted(texts))


def alive(members: Iterable[x509.Certificate], now: datetime) -> tuple[x509.Certificate, ...]:
    """Return the certificates that have not expired."""
    return tuple(member for member in members if member.not_valid_after_utc > now)


def same(one: bytes, other: bytes) -> bool:
    """Return True if both texts hold the same certificates, in any order and spacing."""
    return join(certificates(one)) == join(certificates(other)) and bool(one) == bool(other)


def verifies(pem: bytes, leaf: x509.Certificate) -> bool:
    """Return True if a certificate of the bundle signed the leaf."""
    return signer(leaf, certificates(pem)) is not None


def signer(leaf: x509.Certificate, members: Iterable[x509.Certificate]) -> x509.Certificate | None:
    """Return the certificate that signed the leaf; None if none of them did."""
    for member in members:
        try:
            leaf.verify_directly_issued_by(member)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return member
    return None
