"""Leaf certificates for servers and clients, signed by an authority."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.authority import key_usage, new_key, sign, subject_name
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
    purpose = ExtendedKeyUsageOID.SERVER_AUTH
    names_extension = _alternative_names(names)
    return _issue(authority, subject_name(common_name), purpose, now, lifetime, names_extension)


def issue_client(
    authority: Pair,
    user: str,
    now: datetime,
    *,
    group: str = "",
    names: Names | None = None,
    lifetime: timedelta = LEAF_LIFETIME,
) -> Pair:
    """Create a client's certificate, with the user as CN and the group as O, as Kubernetes reads
    them.

    Validity and errors are those of `issue_server`.
    """
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    extensions = [_alternative_names(names)] if names else []
    purpose = ExtendedKeyUsageOID.CLIENT_AUTH
    return _issue(authority, x509.Name(attributes), purpose, now, lifetime, *extensions)


def _issue(
    authority: Pair,
    subject: x509.Name,
    purpose: x509.ObjectIdentifier,
    now: datetime,
    lifetime: timedelta,
    *extensions: x509.ExtensionType,
) -> Pair:
    issuer = authority.check()
    signer = _signer(authority, issuer)
    start = whole_seconds(now)
    if issuer.not_valid_after_utc <= start:
        raise CertificateError(
            f"the authority's life ended at {issuer.not_valid_after_utc.isoformat()}: "
            f"make a new authority"
        )
    begin = max(start - BACKDATED, issuer.not_valid_before_utc)
    end = min(start + lifetime, issuer.not_valid_after_utc)
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return sign(
        *(subject, new_key()),
        *(issuer.subject, signer),
        (begin, end),
        *extensions,
        x509.BasicConstraints(ca=False, path_length=None),
        key_usage(signs_certificates=False),
        x509.ExtendedKeyUsage([purpose]),
        x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
    )


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
