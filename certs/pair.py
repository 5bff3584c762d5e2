"""A certificate together with its private key, as PEM."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from certs.errors import CertificateError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


@dataclass(frozen=True, slots=True)
class Pair:
    """One certificate (or a chain, the leaf first) with the key of its first certificate.

    Both are PEM, as the data of a `kubernetes.io/tls` Secret holds them. The key never shows
    in a repr, so that a log line or a traceback cannot carry it away.
    """

    certificate: bytes
    private_key: bytes = field(repr=False)

    def check(self) -> x509.Certificate:
        """Return the first certificate; raise CertificateError unless the key belongs to it."""
        certificate = read_certificate(self.certificate)
        if public_bytes(
            read_private_key(self.private_key)
        ) != certificate.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        ):
            raise CertificateError(
                f"the private key does not belong to the certificate of serial number "
                f"{certificate.serial_number:x}: give the certificate and the key that were made "
                f"together"
            )
        return certificate


def read_certificate(pem: bytes) -> x509.Certificate:
    """Return the first certificate of a PEM file; raise CertificateError if there is none."""
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError(
            "no certificate can be read: want PEM that starts with -----BEGIN CERTIFICATE-----"
        ) from error


def read_private_key(pem: bytes) -> PrivateKeyTypes:
    """Return the private key of a PEM file; raise CertificateError if there is none to read."""
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Without its cause: a parser's message may quote what it read.
        raise CertificateError(
            "no private key can be read: want PEM that is not encrypted, such as "
            "-----BEGIN PRIVATE KEY-----"
        ) from None


def public_bytes(key: PrivateKeyTypes) -> bytes:
    """Return a private key's public half as DER, which identifies the pair."""
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
