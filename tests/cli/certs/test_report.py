"""The state of certificates as a document."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from certs.kept import Authority
from certs.life import renewal_time
from tests.cli.certs.sights import (
    ABSENT,
    ENTRIES,
    HIDDEN,
    LEAF,
    NEXT,
    NOW,
    RETIRING,
    SIGNING,
    STAGED,
    STEADY,
    configuration,
    secret,
    serving,
    sight,
)
from webhook import names
from webhook.cli.certs.report import document
from webhook.times import to_second

SERIAL, NEXT_SERIAL = (f"{each.check().serial_number:x}" for each in (SIGNING, NEXT))


def test_everything_is_told_of_an_installation_in_order() -> None:
    """Serial numbers in hexadecimal, times as Kubernetes writes them."""
    told = document(sight(), NOW)
    signing = SIGNING.check()
    certificate = {
        "serial": SERIAL,
        "expires": to_second(signing.not_valid_after_utc),
        "renewal": to_second(renewal_time(signing)),
    }
    assert told["authority"] == {
        "secret": "fairlead-authority",
        "visible": True,
        "phase": "steady",
        "asked": False,
        "signing": certificate,
        "staged": None,
        "publishedSince": None,
        "retiring": [],
    }
    leaf = LEAF.check()
    assert told["leaf"]["serial"] == f"{leaf.serial_number:x}"
    assert told["leaf"]["signedBy"] == SERIAL
    assert told["leaf"]["bundle"] == [certificate]
    assert told["webhooks"] == [
        {"name": name, "bundle": [certificate], "vouches": True, "asKept": True} for name in ENTRIES
    ]
    assert told["next"] == f"a new leaf, from {to_second(renewal_time(leaf))} on"
    assert told["problems"] == []


def test_each_certificate_of_a_rotation_is_told() -> None:
    """Which signs, which will, and which go."""
    staged = document(sight(replace(STAGED, published_since=NOW)), NOW)["authority"]
    assert (staged["phase"], staged["publishedSince"]) == ("published", to_second(NOW))
    assert (staged["signing"]["serial"], staged["staged"]["serial"]) == (SERIAL, NEXT_SERIAL)
    retiring = document(sight(RETIRING), NOW)["authority"]
    assert retiring["phase"] == "retiring"
    assert [each["serial"] for each in retiring["retiring"]] == [SERIAL]


@pytest.mark.parametrize(
    ("authority", "next_step"),
    [
        (STAGED, "the staged authority is published in every caBundle"),
        (
            replace(STAGED, published_since=NOW),
            "the staged authority signs, once every API server has had time to see it",
        ),
        (
            RETIRING,
            "what retires leaves the caBundles, once every replica serves the new leaf",
        ),
    ],
)
def test_what_is_next_follows_from_the_phase(authority: Authority, next_step: str) -> None:
    """As the keeper goes on."""
    assert document(sight(authority), NOW)["next"] == next_step


def test_a_request_is_next_unless_a_rotation_is_under_way() -> None:
    """Of one thing, or of both."""
    asked = {names.ROTATE: "now"}
    authority = secret(STEADY.data(), asked)
    assert document(sight(authority), NOW)["next"] == "a new authority, which somebody asked for"
    both = document(sight(authority, serving(annotations=asked)), NOW)
    assert both["next"] == "a new authority and a new leaf, which somebody asked for"
    assert (both["authority"]["asked"], both["leaf"]["asked"]) == (True, True)
    under_way = document(sight(secret(STAGED.data(), asked)), NOW)
    assert under_way["next"].startswith("the staged authority")


def test_what_is_missing_is_next() -> None:
    """Either Secret."""
    assert document(sight(ABSENT), NOW)["next"] == "what is missing is made"
    assert document(sight(STEADY, ABSENT), NOW)["next"] == "what is missing is made"


def test_what_may_not_be_seen_is_null() -> None:
    """Not false, and not empty."""
    told = document(sight(HIDDEN, HIDDEN), NOW)
    assert told["authority"] == {
        "secret": "fairlead-authority",
        "visible": False,
        "phase": None,
        "asked": False,
    }
    assert told["leaf"]["visible"] is False
    assert {each["vouches"] for each in told["webhooks"]} == {None}
    assert {each["asKept"] for each in told["webhooks"]} == {None}
    assert told["next"] == "cannot be told without the authority"


def test_cert_managers_leaf_is_its_own_business() -> None:
    """Nothing of ours is due."""
    leaf = serving(annotations={"cert-manager.io/certificate-name": "fairlead"})
    assert document(sight(ABSENT, leaf), NOW)["next"] == "cert-manager renews the leaf"


def test_no_state_shows_a_key() -> None:
    """Whatever is seen."""
    for authority in (STEADY, STAGED, RETIRING, HIDDEN, ABSENT):
        text = json.dumps(document(sight(authority, published=configuration(b"", b"x")), NOW))
        for pair in (SIGNING, NEXT, LEAF):
            for line in pair.private_key.decode().splitlines():
                assert line not in text
