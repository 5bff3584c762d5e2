"""A server's certificate holds the names it is asked for, within its authority's life."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.authority import new_authority
from certs.errors import CertificateError
from certs.issue import Names, issue_server
from certs.pair import Pair

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAMES = Names(
    dns=("fairlead", "fairlead.fairlead-system.svc"),
    addresses=("127.0.0.1", "::1"),
)
AUTHORITY = new_authority("Fairlead", NOW)


def _read(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def test_a_leaf_is_signed_by_its_authority_and_names_its_key() -> None:
    """The signature verifies, and the authority key identifier is the authority's own."""
    leaf = _read(issue_server(AUTHORITY, "server", NAMES, NOW).certificate)
    authority = _read(AUTHORITY.certificate)
    leaf.verify_directly_issued_by(authority)
    wanted = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    issuer = leaf.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    own = leaf.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    assert issuer.key_identifier == wanted.digest
    assert own.digest != wanted.digest


def test_a_leaf_serves_tls_and_nothing_else() -> None:
    """It is no authority, its key signs handshakes only, and it is for servers."""
    leaf = _read(issue_server(AUTHORITY, "server", NAMES, NOW).certificate)
    usage = leaf.extensions.get_extension_for_class(x509.KeyUsage).value
    purposes = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert not leaf.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert (usage.digital_signature, usage.key_cert_sign, usage.crl_sign) == (True, False, False)
    assert list(purposes) == [ExtendedKeyUsageOID.SERVER_AUTH]
    key = leaf.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)


def test_a_leaf_holds_every_name_and_address() -> None:
    """DNS names and IP addresses, of either version, are in the alternative names in order."""
    leaf = _read(issue_server(AUTHORITY, "server", NAMES, NOW).certificate)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert tuple(names.get_values_for_type(x509.DNSName)) == NAMES.dns
    wanted = [ip_address(address) for address in NAMES.addresses]
    assert names.get_values_for_type(x509.IPAddress) == wanted


def test_a_leaf_lives_thirty_days_and_is_backdated_an_hour() -> None:
    """Its life starts an hour before now and ends thirty days after."""
    leaf = _read(issue_server(AUTHORITY, "server", NAMES, NOW).certificate)
    assert leaf.not_valid_before_utc == NOW - timedelta(hours=1)
    assert leaf.not_valid_after_utc == NOW + timedelta(days=30)


def test_a_leaf_never_outlives_its_authority() -> None:
    """Issued late, it ends with the authority; issued by a clock behind, it starts with it."""
    authority = _read(AUTHORITY.certificate)
    late = issue_server(AUTHORITY, "server", NAMES, NOW + timedelta(days=360))
    early = issue_server(AUTHORITY, "server", NAMES, NOW - timedelta(minutes=30))
    assert _read(late.certificate).not_valid_after_utc == authority.not_valid_after_utc
    assert _read(early.certificate).not_valid_before_utc == authority.not_valid_before_utc


def test_an_authority_whose_life_is_over_signs_nothing() -> None:
    """Its leaf would be dead at birth, so the error asks for a new authority."""
    with pytest.raises(CertificateError, match="make a new authority"):
        issue_server(AUTHORITY, "server", NAMES, NOW + timedelta(days=365))


def test_a_leaf_signs_nothing() -> None:
    """A pair that is no authority is refused as one."""
    leaf = issue_server(AUTHORITY, "server", NAMES, NOW)
    with pytest.raises(CertificateError, match="not an authority"):
        issue_server(leaf, "server", NAMES, NOW)


def test_an_authority_with_anothers_key_signs_nothing() -> None:
    """Certificate and key must have been made together, or no client would trust the leaf."""
    other = new_authority("Fairlead", NOW)
    with pytest.raises(CertificateError, match="does not belong"):
        issue_server(Pair(AUTHORITY.certificate, other.private_key), "server", NAMES, NOW)


@pytest.mark.parametrize(
    "names",
    [Names(), Names(dns=("",)), Names(dns=("bücher.example",)), Names(addresses=("localhost",))],
    ids=["none", "empty", "not ASCII", "no address"],
)
def test_unfit_names_are_refused(names: Names) -> None:
    """No names at all, an empty one, one beyond ASCII, and an address that is none are errors."""
    with pytest.raises(CertificateError, match="name"):
        issue_server(AUTHORITY, "server", names, NOW)


@pytest.mark.parametrize("host", [*NAMES.dns, *NAMES.addresses])
def test_a_strict_client_that_trusts_the_authority_accepts_the_leaf(
    host: str, tmp_path: Path
) -> None:
    """OpenSSL, told to be strict about RFC 5280, completes a handshake for each name."""
    now = datetime.now(UTC)
    authority = new_authority("Fairlead", now)
    leaf = issue_server(authority, "server", NAMES, now)
    (tmp_path / "leaf.pem").write_bytes(leaf.certificate + leaf.private_key)
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(tmp_path / "leaf.pem")
    client_side = ssl.create_default_context(cadata=authority.certificate.decode())
    client_side.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_side.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    assert client.getpeercert(binary_form=True) == ssl.PEM_cert_to_DER_cert(
        leaf.certificate.decode()
    )
