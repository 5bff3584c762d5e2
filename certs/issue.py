"""Leaf certificates for servers, signed by an authority."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.authority import encode, key_usage, new_key, new_serial_number, subject_name
from certs.errors import CertificateError
from certs.life import BACKDATED, LEAF_LIFETIME, whole_seconds
from certs.pair import read_private_key

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from certs.pair import Pair


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a server: DNS names (also wildcards), and IP addresses as text."""

    dns: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


def service_names(service: str, namespace: str, extra: Names | None = None) -> Names:
    """Return the names of a Kubernetes Service within its cluster, and `extra` names.

    The API server verifies only `<service>.<namespace>.svc` (client-go's webhook resolver).
    """
    own = (
        service,
        f"{service}.{namespace}",
        f"{service}.{namespace}.svc",
        f"{service}.{namespace}.svc.cluster.local",
    )
    more = extra or Names()
    return Names((*own, *(name for name in more.dns if name not in own)), more.addresses)


def issue_server(
    authority: Pair,
    common_name: str,
    names: Names,
    now: datetime,
    *,
    lifetime: timedelta = LEAF_LIFETIME,
) -> Pair:
    """Create a server's certificate: ECDSA on P-256, signed by the authority.

    It is valid from an hour ago until now + lifetime, but within the authority's own validity.
    Clients verify only `names`; `common_name` (1 to 64 characters) is informative. Raises
    CertificateError if the authority is not a CA, does not match its key or has expired, or if
    a name is invalid.
    """
    issuer = authority.check()
    signer = _signer(authority, issuer)
    start = whole_seconds(now)
    if issuer.not_valid_after_utc <= start:
        raise CertificateError(
            f"the authority's life ended at {issuer.not_valid_after_utc.isoformat()}: "
            f"make a new authority"
        )
    key = new_key()
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject_name(common_name))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(new_serial_number())
        .not_valid_before(max(start - BACKDATED, issuer.not_valid_before_utc))
        .not_valid_after(min(start + lifetime, issuer.not_valid_after_utc))
        .add_extension(_alternative_names(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(
                issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
            ),
            critical=False,
        )
        .sign(signer, hashes.SHA256())
    )
    return encode(certificate, key)


def _signer(authority: Pair, issuer: x509.Certificate) -> ec.EllipticCurvePrivateKey:
    try:
        constraints = issuer.extensions.get_extension_for_class(x509.BasicConstraints).value
        issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    except x509.ExtensionNotFound as error:
        raise CertificateError(f"the certificate is not an authority: {error}") from error
    if not constraints.ca:
        raise CertificateError("the certificate is not an authority: see its basic constraints")
    key = read_private_key(authority.private_key)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError(
            f"the authority's key is {type(key).__name__}: want an elliptic curve key"
        )
    return key


def names_of(certificate: x509.Certificate) -> list[str]:
    """Return the DNS names that a certificate is for, then the IP addresses."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    addresses = map(str, found.get_values_for_type(x509.IPAddress))
    return [*found.get_values_for_type(x509.DNSName), *addresses]


def _alternative_names(names: Names) -> x509.SubjectAlternativeName:
    if not names.dns and not names.addresses:
        raise CertificateError("no name to issue for: give a DNS name or an IP address")
    if "" in names.dns:
        raise CertificateError("a name is not valid in a certificate: a DNS name is empty")
    general: list[x509.GeneralName] = []
    try:
        general.extend(x509.DNSName(name) for name in names.dns)
        general.extend(x509.IPAddress(ip_address(address)) for address in names.addresses)
    except ValueError as error:
        raise CertificateError(f"a name is not valid in a certificate: {error}") from error
    return x509.SubjectAlternativeName(general)
