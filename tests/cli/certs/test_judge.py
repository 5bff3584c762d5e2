"""What is wrong with certificates."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from certs.authority import new_authority
from certs.kept import Authority
from certs.life import renewal_time
from tests.cli.certs.sights import (
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
    sight,
)
from tests.wording import Wording, mentions
from webhook.cli.certs.report import OVERDUE, by_cert_manager, problems
from webhook.cli.certs.sight import Seen, Sight

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
    assert problems(sight(authority, serving(STAGED.bundle)), NOW) == []


CASES: dict[str, tuple[Sight, list[str]]] = {
    "no authority": (sight(ABSENT), ["fairlead-authority", "not there"]),
    "a garbled one": (sight(secret({"tls.crt": b"garbage"})), ["fairlead-authority", "read"]),
    "no leaf": (sight(STEADY, ABSENT), ["fairlead-webhook-tls", "not there"]),
    "a garbled leaf": (
        sight(STEADY, secret({"tls.crt": b"x"})),
        ["fairlead-webhook-tls", "no leaf", "key"],
    ),
    "a leaf by nobody": (sight(STEADY, serving(OTHER)), ["leaf", "none of the authorities"]),
    "no configuration": (sight(published=ABSENT), ["no ", CONFIGURATION]),
    "no webhook of ours": (sight(published=Seen({"webhooks": []})), ["no webhook", "Service"]),
    "no bundle": (
        sight(published=configuration(STEADY.bundle, b"")),
        [SECOND, "no caBundle"],
    ),
    "a bundle of others": (
        sight(published=configuration(OTHER, STEADY.bundle)),
        ["caBundle", FIRST, "vouch", "leaf"],
    ),
    "an old bundle": (
        sight(STAGED, published=configuration(STEADY.bundle, STAGED.bundle)),
        ["caBundle", FIRST, "kept"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_fault_is_found_and_nothing_else(case: str, wording: Wording) -> None:
    """With what it means, or what to look at."""
    seen, facts = CASES[case]
    (found,) = problems(seen, NOW)
    mentions(found, *facts)
    wording(found)


def test_what_may_not_be_seen_is_not_judged() -> None:
    """The rest is: what is published is compared with the bundle beside the leaf."""
    assert problems(sight(HIDDEN), NOW) == []
    assert problems(sight(HIDDEN, HIDDEN, HIDDEN), NOW) == []
    (found,) = problems(sight(HIDDEN, published=configuration(b"", STEADY.bundle)), NOW)
    mentions(found, FIRST, "no caBundle")
    outdated = problems(sight(HIDDEN, serving(STAGED.bundle)), NOW)
    for entry, each in zip(ENTRIES, outdated, strict=True):
        mentions(each, "caBundle", entry, "kept")


def test_times_are_judged_of_the_authority_and_of_the_leaf(wording: Wording) -> None:
    """Not valid yet, overdue, over."""
    early = problems(sight(), NOW - timedelta(days=20))
    for subject, each in zip(("the authority", "the leaf"), early, strict=True):
        assert each.startswith(f"{subject} ")
        mentions(each, "not valid before")
    wording(dateless("\n".join(early)))
    due = renewal_time(LEAF.check()) + OVERDUE
    assert problems(sight(), due) == []
    (late,) = problems(sight(), due + timedelta(seconds=1))
    assert late.startswith("the leaf ")
    mentions(late, "renewed", f"{renewal_time(LEAF.check()):%Y-%m-%d}")
    wording(dateless(late))
    over = problems(sight(), NOW + timedelta(days=800))
    for subject, each in zip(("the authority", "the leaf"), over, strict=True):
        assert each.startswith(f"{subject} ")
        mentions(each, "expired")
    wording(dateless("\n".join(over)))


def test_beside_cert_manager_there_is_no_authority_of_ours() -> None:
    """Its leaf says by an annotation whose it is."""
    leaf = serving(annotations={"cert-manager.io/certificate-name": "fairlead"})
    seen = sight(ABSENT, leaf)
    assert by_cert_manager(seen)
    assert problems(seen, NOW) == []
    assert not by_cert_manager(sight())


def test_a_new_authority_that_does_not_sign_yet_is_no_fault() -> None:
    """Before the first leaf."""
    only = Authority(staged=NEXT)
    found = problems(sight(only, ABSENT), NOW)
    assert [each for each in found if "authority" in each.partition(" is not there")[0]] == []
