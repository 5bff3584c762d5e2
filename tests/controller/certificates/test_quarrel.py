"""Writes that somebody undoes again and again."""

from __future__ import annotations

from dataclasses import replace

from certs.authority import new_authority
from certs.issue import issue_server
from certs.kept import Authority, Serving
from certs.rotation import KeepAuthority, KeepServing, Observed, Publish
from tests.controller.certificates.memory import START, TERMS
from webhook.controller.certificates.keeper import FORGOTTEN, FREE, Quarrel, cause

ONE = Authority(new_authority("one", START))
TWO = Authority(new_authority("two", START))
STAGED = replace(ONE, staged=TWO.signing)
LEAF = Serving(issue_server(new_authority("a", START), "leaf", TERMS.names, START), b"bundle")
SEEN = Observed(ONE, LEAF)


def test_a_pause_passes() -> None:
    quarrel = Quarrel()
    for _ in range(FREE + 3):
        quarrel.wrote("it", 10.0)
    assert quarrel.pause("it", 11.0) == 7.0
    assert quarrel.pause("it", 18.0) == 0.0
    assert quarrel.pause("another", 11.0) == 0.0


def test_after_a_long_quiet_it_is_forgotten() -> None:
    quarrel = Quarrel()
    for _ in range(FREE + 1):
        quarrel.wrote("it", 10.0)
    quarrel.wrote("another", 10.0 + FORGOTTEN)
    assert quarrel.times("it") == 0


def test_a_write_is_the_same_if_it_brings_the_same_bundle_for_the_same_reason() -> None:
    assert cause(Publish(b"a", "x"), SEEN) == cause(Publish(b"a", "x"), Observed(TWO, None))
    assert cause(Publish(b"a", "x"), SEEN) != cause(Publish(b"b", "x"), SEEN)
    another = LEAF.trusting(b"another")
    assert cause(KeepServing(LEAF, "x"), SEEN) != cause(KeepServing(another, "x"), SEEN)
    assert cause(KeepServing(LEAF, "x"), SEEN) != cause(KeepServing(LEAF, "y"), SEEN)
    assert cause(KeepAuthority(ONE, "x"), SEEN) != cause(KeepAuthority(STAGED, "x"), SEEN)


def test_an_authority_that_is_lost_again_is_the_same_though_it_is_another() -> None:
    lost = Observed(None, None)
    assert cause(KeepAuthority(ONE, "x"), lost) == cause(KeepAuthority(TWO, "x"), lost)


def test_what_was_asked_for_is_never_counted() -> None:
    asked = replace(SEEN, renew_authority=True, renew_leaf=True)
    quarrel = Quarrel()
    for write in (KeepServing(LEAF, "asked"), KeepAuthority(STAGED, "asked")):
        for _ in range(3 * FREE):
            quarrel.wrote(cause(write, asked), 10.0)
        assert quarrel.pause(cause(write, asked), 10.0) == 0.0
    assert cause(KeepAuthority(STAGED, "on its way"), replace(asked, authority=STAGED))
