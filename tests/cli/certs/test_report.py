"""The state of certificates as a document, its problems, and its text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import timedelta

import click
import pytest

from certs.authority import new_authority
from certs.kept import Authority
from certs.life import renewal_time
from tests.cli.certs.certificate_states import (
    ABSENT,
    CONFIGURATION,
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
    state,
)
from tests.wording import Wording, line_with, mentions
from webhook import names
from webhook.cli.certs.report import (
    OVERDUE,
    CertificateState,
    ReadObject,
    by_cert_manager,
    document,
    lines,
    problems,
)
from webhook.times import to_second

SERIAL, NEXT_SERIAL = (f"{each.check().serial_number:x}" for each in (SIGNING, NEXT))


def test_the_report_lists_everything_in_order(wording: Wording) -> None:
    """Serial numbers in hexadecimal, times as Kubernetes writes them."""
    told = document(state(), NOW)
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


def test_each_certificate_of_a_rotation_is_reported() -> None:
    """Which signs, which will, and which go."""
    staged = document(state(replace(STAGED, published_since=NOW)), NOW)["authority"]
    assert (staged["phase"], staged["publishedSince"]) == ("published", to_second(NOW))
    assert (staged["signing"]["serial"], staged["staged"]["serial"]) == (SERIAL, NEXT_SERIAL)
    retiring = document(state(RETIRING), NOW)["authority"]
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
    next_step = document(state(authority), NOW)["next"]
    mentions(next_step, *facts)
    wording(next_step)


def test_a_request_is_next_unless_a_rotation_is_under_way(wording: Wording) -> None:
    """Of one thing, or of both."""
    asked = {names.ROTATE: "now"}
    authority = secret(STEADY.data(), asked)
    one = document(state(authority), NOW)
    mentions(one["next"], "new authority", "on request")
    assert "leaf" not in one["next"]
    assert (one["authority"]["asked"], one["leaf"]["asked"]) == (True, False)
    both = document(state(authority, serving(annotations=asked)), NOW)
    mentions(both["next"], "new authority", "new leaf", "on request")
    wording(both["next"])
    assert (both["authority"]["asked"], both["leaf"]["asked"]) == (True, True)
    under_way = document(state(secret(STAGED.data(), asked)), NOW)
    mentions(under_way["next"], "staged authority", "published")


def test_what_is_missing_is_next(wording: Wording) -> None:
    """Either Secret."""
    missing = document(state(ABSENT), NOW)["next"]
    mentions(missing, "missing")
    assert document(state(STEADY, ABSENT), NOW)["next"] == missing
    wording(missing)


def test_forbidden_objects_are_null(wording: Wording) -> None:
    """Not false, and not empty."""
    told = document(state(HIDDEN, HIDDEN), NOW)
    assert told["authority"] == {
        "secret": "fairlead-authority",
        "visible": False,
        "phase": None,
        "asked": False,
    }
    assert told["leaf"]["visible"] is False
    assert {each["vouches"] for each in told["webhooks"]} == {None}
    assert {each["asKept"] for each in told["webhooks"]} == {None}
    mentions(told["next"], "cannot", "the authority cannot be read")
    wording(told["next"])


def test_cert_managers_leaf_is_its_own_business(wording: Wording) -> None:
    """Nothing of ours is due."""
    leaf = serving(annotations={"cert-manager.io/certificate-name": "fairlead"})
    next_step = document(state(ABSENT, leaf), NOW)["next"]
    mentions(next_step, "cert-manager", "leaf")
    wording(next_step)


def test_no_state_shows_a_key() -> None:
    """Whatever is seen."""
    for authority in (STEADY, STAGED, RETIRING, HIDDEN, ABSENT):
        text = json.dumps(document(state(authority, published=configuration(b"", b"x")), NOW))
        for pair in (SIGNING, NEXT, LEAF):
            for line in pair.private_key.decode().splitlines():
                assert line not in text


OTHER = Authority(new_authority("fairlead", NOW)).bundle
FIRST, SECOND = ENTRIES


def dateless(text: str) -> str:
    """The text, with words in the place of dates: times of renewal are drawn."""
    return re.sub(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?", "DATE", text)


# As it is after the authority was lost.
ANEW = Authority(staged=NEXT, retiring=(SIGNING.check(),))


@pytest.mark.parametrize("authority", [STEADY, STAGED, RETIRING, ANEW])
def test_nothing_is_wrong_while_a_rotation_is_under_way(authority: Authority) -> None:
    """In no phase of it."""
    assert problems(state(authority, serving(STAGED.bundle)), NOW) == []


CASES: dict[str, tuple[CertificateState, list[str]]] = {
    "no authority": (state(ABSENT), ["fairlead-authority", "not there"]),
    "a garbled one": (state(secret({"tls.crt": b"garbage"})), ["fairlead-authority", "read"]),
    "no leaf": (state(STEADY, ABSENT), ["fairlead-webhook-tls", "not there"]),
    "a garbled leaf": (
        state(STEADY, secret({"tls.crt": b"x"})),
        ["fairlead-webhook-tls", "no leaf", "key"],
    ),
    "a leaf by nobody": (state(STEADY, serving(OTHER)), ["leaf", "none of the authorities"]),
    "no configuration": (state(published=ABSENT), ["no ", CONFIGURATION]),
    "no webhook of ours": (
        state(published=ReadObject({"webhooks": []})),
        ["no webhook", "Service"],
    ),
    "no bundle": (
        state(published=configuration(STEADY.bundle, b"")),
        [SECOND, "no caBundle"],
    ),
    "a bundle of others": (
        state(published=configuration(OTHER, STEADY.bundle)),
        ["caBundle", FIRST, "verify", "leaf"],
    ),
    "an old bundle": (
        state(STAGED, published=configuration(STEADY.bundle, STAGED.bundle)),
        ["caBundle", FIRST, "stored"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_fault_is_found_and_nothing_else(case: str, wording: Wording) -> None:
    """With what it means, or what to look at."""
    seen, facts = CASES[case]
    (found,) = problems(seen, NOW)
    mentions(found, *facts)
    wording(found)


def test_forbidden_objects_are_not_judged() -> None:
    """The rest is: what is published is compared with the bundle beside the leaf."""
    assert problems(state(HIDDEN), NOW) == []
    assert problems(state(HIDDEN, HIDDEN, HIDDEN), NOW) == []
    (found,) = problems(state(HIDDEN, published=configuration(b"", STEADY.bundle)), NOW)
    mentions(found, FIRST, "no caBundle")
    outdated = problems(state(HIDDEN, serving(STAGED.bundle)), NOW)
    for entry, each in zip(ENTRIES, outdated, strict=True):
        mentions(each, "caBundle", entry, "stored")


def test_times_are_judged_of_the_authority_and_of_the_leaf(wording: Wording) -> None:
    """Not valid yet, overdue, over."""
    early = problems(state(), NOW - timedelta(days=20))
    for subject, each in zip(("the authority", "the leaf"), early, strict=True):
        assert each.startswith(f"{subject} ")
        mentions(each, "not valid before")
    wording(dateless("\n".join(early)))
    due = renewal_time(LEAF.check()) + OVERDUE
    assert problems(state(), due) == []
    (late,) = problems(state(), due + timedelta(seconds=1))
    assert late.startswith("the leaf ")
    mentions(late, "renewed", f"{renewal_time(LEAF.check()):%Y-%m-%d}")
    wording(dateless(late))
    over = problems(state(), NOW + timedelta(days=800))
    for subject, each in zip(("the authority", "the leaf"), over, strict=True):
        assert each.startswith(f"{subject} ")
        mentions(each, "expired")
    wording(dateless("\n".join(over)))


def test_a_leaf_of_cert_manager_has_no_authority_of_ours() -> None:
    """Its leaf says by an annotation whose it is."""
    leaf = serving(annotations={"cert-manager.io/certificate-name": "fairlead"})
    seen = state(ABSENT, leaf)
    assert by_cert_manager(seen)
    assert problems(seen, NOW) == []
    assert not by_cert_manager(state())


def test_a_new_authority_that_does_not_sign_yet_is_not_a_fault() -> None:
    """Before the first leaf."""
    only = Authority(staged=NEXT)
    found = problems(state(only, ABSENT), NOW)
    assert [each for each in found if "authority" in each.partition(" is not there")[0]] == []


OLD, NEW, SERVED = (f"{each.check().serial_number:x}"[:12] for each in (SIGNING, NEXT, LEAF))


def lasting(text: str) -> str:
    """The text, with words in the place of what is drawn: serial numbers, times of renewal."""
    for serial, word in ((OLD, "AUTHORITY-01"), (NEW, "AUTHORITY-02"), (SERVED, "SERVING-LEAF")):
        text = text.replace(serial, word)
    # Those of a bundle are in the order of their certificates' bytes, which are drawn.
    text = text.replace("AUTHORITY-02, AUTHORITY-01", "AUTHORITY-01, AUTHORITY-02")
    return re.sub(r"(renewed in|from) \S+\b", r"\1 TIME", text)


def printed(seen: CertificateState) -> list[str]:
    """What a person reads."""
    return [click.unstyle(line) for line in lines(document(seen, NOW), NOW)]


def test_in_order_it_is_few_lines(wording: Wording) -> None:
    """Authority, leaf, caBundles, and what is next."""
    text = "\n".join(printed(state()))
    authority, leaf, bundles, next_step = text.split("\n\n")
    mentions(authority, "authority: steady (Secret fairlead-authority)", f"signing {OLD}")
    mentions(authority, "expires in 355d", "renewed in 2")
    mentions(leaf, "(Secret fairlead-webhook-tls)", f"serving {SERVED}", "expires in 27d")
    mentions(leaf, "renewed in 1", OLD, "fairlead-webhook,")
    assert [line.split() for line in bundles.splitlines()] == [
        ["caBundles"],
        ["pods-0.fairlead.dev", "fine", "trusts", OLD],
        ["namespaces.fairlead.dev", "fine", "trusts", OLD],
    ]
    assert next_step.startswith("next: ")
    mentions(next_step, "new leaf")
    wording(lasting(text))


def test_a_rotation_shows_both_authorities(wording: Wording) -> None:
    """And what each caBundle is worth meanwhile."""
    published = replace(STAGED, published_since=NOW)
    text = "\n".join(
        printed(state(published, published=configuration(STEADY.bundle, STAGED.bundle)))
    )
    assert "authority: published" in text
    assert f"  signing  {OLD}" in text
    assert f"  staged   {NEW}" in text
    line_with(text, "pods-0.fairlead.dev", "outdated", OLD)
    line_with(text, "namespaces.fairlead.dev", "fine", OLD, NEW)
    line_with(text, "wrong: ", "caBundle", "pods-0.fairlead.dev")
    line_with(printed(state(RETIRING)), "retiring", OLD, "expires in")
    wording(lasting(text))


def test_a_caBundle_that_refuses_the_leaf_says_so(wording: Wording) -> None:  # noqa: N802 (the field's name)
    """Empty, or another's."""
    text = printed(state(published=configuration(b"", NEXT.certificate)))
    empty = line_with(text, "pods-0.fairlead.dev", "refuses the leaf", "trusts")
    assert line_with(text, "namespaces.fairlead.dev", "refuses the leaf", "trusts").endswith(NEW)
    wording(empty)
    assert sum(line.startswith("wrong: ") for line in text) == 2


def test_forbidden_objects_are_reported(wording: Wording) -> None:
    """Instead of an empty place."""
    text = "\n".join(printed(state(HIDDEN, HIDDEN, ABSENT)))
    authority, leaf, bundles, *_ = text.split("\n\n")
    mentions(authority, "authority: unknown", "Secret fairlead-authority", "may not read")
    mentions(leaf, "leaf: unknown", "may not read", "Secret fairlead-webhook-tls")
    mentions(bundles, "caBundles none")
    line_with(printed(state(HIDDEN, HIDDEN)), "pods-0.fairlead.dev", "unknown")
    wording(text)


def test_a_leaf_without_a_known_authority_is_reported(wording: Wording) -> None:
    """No authority beside it has signed it."""
    text = "\n".join(printed(state(STEADY, serving(NEXT.certificate))))
    leaf = text.split("\n\n")[1]
    mentions(leaf, "by no authority in its bundle", "fairlead-webhook")
    assert OLD not in leaf
    wording(lasting(leaf))
