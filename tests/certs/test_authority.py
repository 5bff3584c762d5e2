"""An authority's certificate says what it may do, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from certs.authority import new_authority, new_serial_number
from certs.errors import CertificateError

NOW = datetime(2026, 3, 1, 12, 30, 15, 999_999, tzinfo=UTC)


def _read(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def test_an_authority_may_sign_leaves_but_no_authorities() -> None:
    """Basic constraints and key usage are critical, and allow certificates of length zero only."""
    certificate = _read(new_authority("Fairlead", NOW).certificate)
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    assert constraints.critical
    assert (constraints.value.ca, constraints.value.path_length) == (True, 0)
    assert usage.critical
    assert (usage.value.key_cert_sign, usage.value.digital_signature) == (True, False)


def test_an_authority_is_self_signed_with_p_256() -> None:
    """Its signature verifies under its own key, which lies on P-256."""
    certificate = _read(new_authority("Fairlead", NOW).certificate)
    certificate.verify_directly_issued_by(certificate)
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    assert [name.value for name in names] == ["Fairlead"]


def test_an_authority_names_its_own_key_as_subject_and_issuer() -> None:
    """Subject and authority key identifier are the same, for chains are built by them."""
    extensions = _read(new_authority("Fairlead", NOW).certificate).extensions
    subject = extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    issuer = extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert issuer.key_identifier == subject.digest


def test_an_authority_lives_a_year_and_is_backdated_an_hour() -> None:
    """Its life starts an hour before now, in whole seconds, and ends a year after now."""
    certificate = _read(new_authority("Fairlead", NOW).certificate)
    start = NOW.replace(microsecond=0)
    assert certificate.not_valid_before_utc == start - timedelta(hours=1)
    assert certificate.not_valid_after_utc == start + timedelta(days=365)


def test_serial_numbers_are_random_and_of_128_bits() -> None:
    """A thousand draws are all different, fit 128 bits, and use the upper ones."""
    drawn = {new_serial_number() for _ in range(1000)}
    assert len(drawn) == 1000
    assert all(0 < number < 1 << 128 for number in drawn)
    assert max(number.bit_length() for number in drawn) == 128


def test_a_time_without_a_zone_is_refused() -> None:
    """A naive datetime would be an hour or more off, so it is an error of the caller's."""
    with pytest.raises(ValueError, match="no time zone"):
        new_authority("Fairlead", NOW.replace(tzinfo=None))


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_a_common_name_has_1_to_64_characters(name: str) -> None:
    """X.509 bounds a common name: another length is an error that says so."""
    with pytest.raises(CertificateError, match="give 1 to 64 characters"):
        new_authority(name, NOW)


def test_a_private_key_never_shows_in_a_repr() -> None:
    """Log lines and tracebacks print reprs, so a pair's leaves the key out."""
    assert "PRIVATE" not in repr(new_authority("Fairlead", NOW))
