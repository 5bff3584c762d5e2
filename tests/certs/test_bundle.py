"""A bundle is a set of certificates, whatever its text looks like."""

from __future__ import annotations

from datetime import timedelta

from certs.authority import new_authority
from certs.bundle import alive, certificates, join, same, signer
from certs.issue import Names, issue_server
from certs.life import AUTHORITY_LIFETIME
from tests.certs.world import BEGIN

ONE, TWO = (new_authority(name, BEGIN).check() for name in ("one", "two"))


def test_a_bundle_is_the_same_in_any_order_and_with_doubles() -> None:
    """Two writers of one set write one text, so that neither undoes the other."""
    assert join([ONE, TWO]) == join([TWO, ONE, TWO])
    assert set(certificates(join([ONE, TWO]))) == {ONE, TWO}


def test_bundles_are_compared_by_what_is_in_them() -> None:
    """Blank lines and order do not count; what is missing does."""
    assert same(join([ONE, TWO]), join([TWO]) + b"\n\n" + join([ONE]))
    assert not same(join([ONE, TWO]), join([ONE]))
    assert not same(join([ONE]), b"")
    assert not same(b"garbled", b"")
    assert same(b"", b"")


def test_a_garbled_bundle_holds_nothing() -> None:
    """It is written again, not mended."""
    assert certificates(b"garbled") == ()
    assert certificates(join([ONE])[:-40]) == ()


def test_certificates_whose_life_is_over_are_left_out() -> None:
    """At the very second."""
    assert alive([ONE], BEGIN + AUTHORITY_LIFETIME - timedelta(seconds=1)) == (ONE,)
    assert alive([ONE], BEGIN + AUTHORITY_LIFETIME) == ()


def test_who_signed_a_leaf_is_found_in_a_bundle() -> None:
    """By the signature, for the names of all authorities are the same."""
    pair = new_authority("one", BEGIN)
    leaf = issue_server(pair, "leaf", Names(dns=("leaf",)), BEGIN).check()
    assert signer(leaf, [ONE, TWO, pair.check()]) == pair.check()
    assert signer(leaf, [ONE, TWO]) is None
    assert signer(leaf, []) is None
