"""A pair is read from PEM, and belongs together."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives import serialization

from certs.authority import new_authority, new_key
from certs.errors import CertificateError
from certs.issue import Names, issue_server
from certs.pair import Pair, read_certificate, read_private_key
from tests.wording import Wording, mentions

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
AUTHORITY = new_authority("Fairlead", NOW)


def test_a_pair_that_belongs_together_gives_its_certificate() -> None:
    """The check returns the parsed certificate, for there is no need to read it twice."""
    assert AUTHORITY.check() == read_certificate(AUTHORITY.certificate)


def test_of_a_chain_the_first_certificate_counts() -> None:
    """A chain has the leaf first, and the key is the leaf's."""
    leaf = issue_server(AUTHORITY, "server", Names(dns=("server",)), NOW)
    chain = Pair(leaf.certificate + AUTHORITY.certificate, leaf.private_key)
    assert chain.check() == read_certificate(leaf.certificate)


@pytest.mark.parametrize(
    "pem",
    [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA\n"],
    ids=["empty", "garbled", "cut"],
)
def test_an_invalid_certificate_is_rejected(pem: bytes, wording: Wording) -> None:
    """Empty, garbled and cut PEM give one clear error."""
    with pytest.raises(CertificateError) as refused:
        read_certificate(pem)
    mentions(str(refused.value), "no certificate", "-----BEGIN CERTIFICATE-----")
    wording(str(refused.value))


def test_a_key_that_cannot_be_read_is_refused_without_showing_it(wording: Wording) -> None:
    """The error neither quotes the key nor chains a parser's error that might."""
    secret = b"-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"
    with pytest.raises(CertificateError, match="no private key") as caught:
        read_private_key(secret)
    wording(str(caught.value))
    assert caught.value.__suppress_context__
    assert "c2VjcmV0" not in str(caught.value)


def test_an_encrypted_key_is_refused() -> None:
    """There is nobody to ask for a password when a server reads its files."""
    encrypted = new_key().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    with pytest.raises(CertificateError, match="not encrypted"):
        read_private_key(encrypted)
