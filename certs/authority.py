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
    key, name, start = new_key(), subject_name(common_name), whole_seconds(now)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return sign(
        *(name, key),
        *(name, key),
        (start - BACKDATED, start + lifetime),
        x509.BasicConstraints(ca=True, path_length=0),
        key_usage(signs_certificates=True),
        x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
    )


def sign(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    signer: ec.EllipticCurvePrivateKey,
    life: tuple[datetime, datetime],
    *extensions: x509.ExtensionType,
) -> Pair:
    """Return the signed certificate of a key, with a random serial number; `life`: begin and end.

    Extensions that say what the key may do are critical (RFC 5280, 4.2.1).
    """
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(new_serial_number())
        .not_valid_before(life[0])
        .not_valid_after(life[1])
    )
    for each in (*extensions, x509.SubjectKeyIdentifier.from_public_key(key.public_key())):
        critical = isinstance(each, x509.BasicConstraints | x509.KeyUsage)
        builder = builder.add_extension(each, critical=critical)
    return encode(builder.sign(signer, hashes.SHA256()), key)


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
