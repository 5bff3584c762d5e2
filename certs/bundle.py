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
    """Return every certificate in the text, in order; none if it cannot be read as a whole.

    A bundle that somebody garbled counts as empty: it will be written anew, not mended.
    """
    try:
        return tuple(x509.load_pem_x509_certificates(pem))
    except ValueError:
        return ()


def join(members: Iterable[x509.Certificate]) -> bytes:
    """Return the text of a bundle, each certificate once, in one order: equal sets, equal bytes."""
    texts = {member.public_bytes(Encoding.DER) for member in members}
    return b"".join(ssl.DER_cert_to_PEM_cert(der).encode() for der in sorted(texts))


def alive(members: Iterable[x509.Certificate], now: datetime) -> tuple[x509.Certificate, ...]:
    """Return those whose life is not over."""
    return tuple(member for member in members if member.not_valid_after_utc > now)


def same(one: bytes, other: bytes) -> bool:
    """Tell whether two texts hold the same certificates, in whatever order and spacing."""
    return join(certificates(one)) == join(certificates(other)) and bool(one) == bool(other)


def signer(leaf: x509.Certificate, members: Iterable[x509.Certificate]) -> x509.Certificate | None:
    """Return the one that signed the leaf; None if none of them did."""
    for member in members:
        try:
            leaf.verify_directly_issued_by(member)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return member
    return None
