"""A self-signed certificate authority, which signs leaves but no intermediate authorities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from certs.errors import CertificateError
from certs.life import AUTHORITY_LIFETIME, BACKDATED, whole_seconds
from certs.pair import Pair

if TYPE_CHECKING:
    from datetime import datetime, timedelta


def new_authority(
    common_name: str, now: datetime, *, lifetime: timedelta = AUTHORITY_LIFETIME
) -> Pair:
    """Make a self-signed authority, ECDSA on P-256, valid from an hour ago until now + lifetime.

    `common_name` has 1 to 64 characters (RFC 5280, ub-common-name), `now` a time zone. Raises
    CertificateError if the name does not fit.
    """
    key = new_key()
    start = whole_seconds(now)
    name = subject_name(common_name)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(new_serial_number())
        .not_valid_before(start - BACKDATED)
        .not_valid_after(start + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(key_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    return encode(certificate, key)


def new_key() -> ec.EllipticCurvePrivateKey:
    """Generate a private key on P-256, the curve that every TLS client supports."""
    return ec.generate_private_key(ec.SECP256R1())


def new_serial_number() -> int:
    """Return a serial number of 128 random bits, never zero (RFC 5280, 4.1.2.2)."""
    # cryptography generates 159 bits.
    return (x509.random_serial_number() >> 31) or 1


def subject_name(common_name: str) -> x509.Name:
    """Return a name with only this common name; raise CertificateError if it is not valid."""
    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    except ValueError as error:
        raise CertificateError(
            f"{common_name!r} is not a valid common name: give 1 to 64 characters"
        ) from error


def key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    """Return the key usage for signing certificates, or for signing handshakes."""
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def encode(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    """Return both as PEM, the key as unencrypted PKCS #8."""
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
