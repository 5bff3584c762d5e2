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
from tests.wording import Wording, mentions
from webhook import names
from webhook.cli.certs.report import document
from webhook.times import to_second

SERIAL, NEXT_SERIAL = (f"{each.check().serial_number:x}" for each in (SIGNING, NEXT))


def test_everything_is_told_of_an_installation_in_order(wording: Wording) -> None:
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
    due = to_second(renewal_time(leaf))
    mentions(told["next"], "new leaf", due)
    wording(told["next"], {due: "DUE"})
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
    ("authority", "facts"),
    [
        (STAGED, ["staged authority", "published", "caBundle"]),
        (replace(STAGED, published_since=NOW), ["staged authority", "signs", "API server"]),
        (RETIRING, ["leaves the caBundles", "every replica", "new leaf"]),
    ],
    ids=["staged", "published", "retiring"],
)
def test_what_is_next_follows_from_the_phase(
    authority: Authority, facts: list[str], wording: Wording
) -> None:
    """As the keeper goes on."""
    next_step = document(sight(authority), NOW)["next"]
    mentions(next_step, *facts)
    wording(next_step)


def test_a_request_is_next_unless_a_rotation_is_under_way(wording: Wording) -> None:
    """Of one thing, or of both."""
    asked = {names.ROTATE: "now"}
    authority = secret(STEADY.data(), asked)
    one = document(sight(authority), NOW)
    mentions(one["next"], "new authority", "asked for")
    assert "leaf" not in one["next"]
    assert (one["authority"]["asked"], one["leaf"]["asked"]) == (True, False)
    both = document(sight(authority, serving(annotations=asked)), NOW)
    mentions(both["next"], "new authority", "new leaf", "asked for")
    wording(both["next"])
    assert (both["authority"]["asked"], both["leaf"]["asked"]) == (True, True)
    under_way = document(sight(secret(STAGED.data(), asked)), NOW)
    mentions(under_way["next"], "staged authority", "published")


def test_what_is_missing_is_next(wording: Wording) -> None:
    """Either Secret."""
    missing = document(sight(ABSENT), NOW)["next"]
    mentions(missing, "missing")
    assert document(sight(STEADY, ABSENT), NOW)["next"] == missing
    wording(missing)


def test_what_may_not_be_seen_is_null(wording: Wording) -> None:
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
    mentions(told["next"], "cannot", "without the authority")
    wording(told["next"])


def test_cert_managers_leaf_is_its_own_business(wording: Wording) -> None:
    """Nothing of ours is due."""
    leaf = serving(annotations={"cert-manager.io/certificate-name": "fairlead"})
    next_step = document(sight(ABSENT, leaf), NOW)["next"]
    mentions(next_step, "cert-manager", "leaf")
    wording(next_step)


def test_no_state_shows_a_key() -> None:
    """Whatever is seen."""
    for authority in (STEADY, STAGED, RETIRING, HIDDEN, ABSENT):
        text = json.dumps(document(sight(authority, published=configuration(b"", b"x")), NOW))
        for pair in (SIGNING, NEXT, LEAF):
            for line in pair.private_key.decode().splitlines():
                assert line not in text
