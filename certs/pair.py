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
    """A certificate (or a chain, the leaf first) with the key of its first certificate.

    Both are PEM, as in a `kubernetes.io/tls` Secret. The key is not in the repr, so that no log
    line or traceback can contain it.
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
    """Return the private key of a PEM file; raise CertificateError if there is none."""
    try:
        return serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # Without the cause, because a parser's message may quote its input.
        raise CertificateError(
            "no private key can be read: want PEM that is not encrypted, such as "
            "-----BEGIN PRIVATE KEY-----"
        ) from None


def public_bytes(key: PrivateKeyTypes) -> bytes:
    """Return the public key of a private key as DER, which identifies the pair."""
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
