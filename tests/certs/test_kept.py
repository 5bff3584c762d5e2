"""What is kept of certificates is read back as it was, or not at all."""

from __future__ import annotations

import pytest

from certs.authority import new_authority
from certs.issue import issue_server
from certs.kept import Authority, Serving
from tests.certs.world import BEGIN, TERMS

SIGNING, STAGED, OLD = (new_authority(name, BEGIN) for name in ("one", "two", "three"))
WHOLE = Authority(SIGNING, STAGED, (OLD.check(),), BEGIN)


@pytest.mark.parametrize(
    "authority",
    [Authority(signing=SIGNING), Authority(staged=STAGED), Authority(SIGNING, STAGED), WHOLE],
)
def test_an_authority_is_read_back_as_it_was_kept(authority: Authority) -> None:
    """Whatever it is in the middle of."""
    assert Authority.read(authority.data()) == authority


@pytest.mark.parametrize("key", sorted(WHOLE.data()))
def test_an_authority_of_which_a_part_is_garbled_is_none(key: str) -> None:
    """Half of what is to be trusted would be worse: leaves by the other half may be in use."""
    assert Authority.read({**WHOLE.data(), key: b"garbled"}) is None


def test_an_empty_secret_holds_no_authority_and_no_leaf() -> None:
    """As a manifest may have made it."""
    assert Authority.read({}) is None
    assert Serving.read({}) is None
    assert Serving.read({"tls.crt": b"", "tls.key": b""}) is None


def test_a_leaf_is_read_back_as_it_was_kept() -> None:
    """With the bundle beside it."""
    leaf = issue_server(SIGNING, "leaf", TERMS.names, BEGIN)
    kept = Serving(leaf, WHOLE.bundle)
    assert Serving.read(kept.data()) == kept


def test_a_leaf_with_anothers_key_is_none() -> None:
    """It cannot be served with."""
    leaf = issue_server(SIGNING, "leaf", TERMS.names, BEGIN)
    other = issue_server(SIGNING, "leaf", TERMS.names, BEGIN)
    assert Serving.read({"tls.crt": leaf.certificate, "tls.key": other.private_key}) is None


def test_no_key_shows_where_an_authority_is_printed() -> None:
    """A traceback or a log line must not carry it away."""
    assert b"PRIVATE" in SIGNING.private_key
    assert "PRIVATE" not in repr(WHOLE)
