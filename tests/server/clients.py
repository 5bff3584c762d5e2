"""Certificates of clients, for servers that ask for one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.authority import encode
from certs.pair import Pair, read_private_key


def client(authority: Pair, common_name: str, dns: Sequence[str] = ()) -> Pair:
    """A client's certificate by the authority, for an hour, with DNS names beside its own."""
    issuer = authority.check()
    signer = read_private_key(authority.private_key)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(
            # Of two authorities of one name it tells which.
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
            critical=False,
        )
    )
    if dns:
        names = x509.SubjectAlternativeName([x509.DNSName(name) for name in dns])
        builder = builder.add_extension(names, critical=False)
    return encode(builder.sign(signer, hashes.SHA256()), key)
