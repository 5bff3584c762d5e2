"""The report of certificates in every state that they can be in: a table, and golden texts."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime, timedelta

import click
import pytest

from certs.authority import new_authority
from certs.kept import Authority
from certs.life import renewal_time
from tests.questions.certificates.certificate_states import (
    ABSENT,
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
from tests.wording import Wording
from webhook import names
from webhook.installation.doctor.program_checks import OVERDUE
from webhook.questions.certificates.report import (
    CertificateState,
    ReadObject,
    document,
    findings,
    lines,
)
from webhook.times import to_second

OTHER = Authority(new_authority("fairlead", NOW)).bundle
ASKED = {names.ROTATE: "now"}
BY_CERT_MANAGER = {"cert-manager.io/certificate-name": "fairlead"}
PUBLISHED = replace(STAGED, published_since=NOW)
# As it is after the authority was lost.
ANEW = Authority(staged=NEXT, retiring=(SIGNING.check(),))
STATES: dict[str, CertificateState] = {
    "in order": state(),
    "an authority is staged": state(STAGED, serving(STAGED.bundle)),
    "a staged authority is published": state(PUBLISHED, serving(STAGED.bundle)),
    "an authority retires": state(RETIRING),
    "the authority is made anew": state(ANEW, serving(STAGED.bundle)),
    "the authority is requested": state(secret(STEADY.data(), ASKED)),
    "both are requested": state(secret(STEADY.data(), ASKED), serving(annotations=ASKED)),
    "a request during a rotation": state(secret(STAGED.data(), ASKED), serving(STAGED.bundle)),
    "no authority": state(ABSENT),
    "a garbled authority": state(secret({"tls.crt": b"garbage"})),
    "no leaf": state(STEADY, ABSENT),
    "no leaf of a new authority": state(Authority(staged=NEXT), ABSENT),
    "a leaf with another's key": state(
        STEADY, secret({"tls.crt": LEAF.certificate, "tls.key": NEXT.private_key})
    ),
    "a garbled leaf": state(STEADY, secret({"tls.crt": b"x"})),
    "a leaf of an unknown authority": state(STEADY, serving(OTHER)),
    "a leaf of cert-manager": state(ABSENT, serving(annotations=BY_CERT_MANAGER)),
    "no configuration": state(published=ABSENT),
    "no webhook of ours": state(published=ReadObject({"webhooks": []})),
    "an empty caBundle": state(published=configuration(STEADY.bundle, b"")),
    "a caBundle of others": state(published=configuration(OTHER, STEADY.bundle)),
    "an old caBundle": state(STAGED, published=configuration(STEADY.bundle, STAGED.bundle)),
    "the authority may not be read": state(HIDDEN),
    "an old caBundle beside the leaf": state(HIDDEN, serving(STAGED.bundle)),
    "nothing may be read": state(HIDDEN, HIDDEN, HIDDEN),
    "no Secret may be read": state(HIDDEN, HIDDEN),
}
SERIALS = {
    f"{certificate.check().serial_number:x}": word
    for certificate, word in (
        (SIGNING, "AUTHORITY-01"),
        (NEXT, "AUTHORITY-02"),
        (LEAF, "SERVING-LEAF"),
    )
}


def lasting(text: str) -> str:
    """The text, with words in the place of what is drawn: serial numbers, times of renewal."""
    for serial, word in SERIALS.items():
        text = text.replace(serial, word).replace(serial[:12], word)
    # Those of a bundle are in the order of their certificates' bytes, which are drawn.
    text = text.replace("AUTHORITY-02, AUTHORITY-01", "AUTHORITY-01, AUTHORITY-02")
    text = re.sub(r"  [0-9a-f]{12}\b", "  ANOTHER-ONE!", text)
    text = re.sub(r"in \w+$", "in TIME", text, flags=re.MULTILINE)
    return re.sub(r"(from(?= \d)|renewed by) [\w:-]+", r"\1 TIME", text)


@pytest.mark.parametrize("name", STATES)
def test_a_report_is_the_golden_one(name: str, wording: Wording) -> None:
    """With everything that is wrong, and what is next."""
    shown = lines(document(STATES[name], NOW), NOW)
    wording(lasting(click.unstyle("\n".join(shown))))


def test_a_wide_report_has_the_names_of_the_leaf_and_who_signed_it() -> None:
    """An authority signs itself, and has no names."""
    shown = [line.split() for line in lines(document(state(), NOW), NOW, wide=True)]
    by = f"{SIGNING.check().serial_number:x}"[:12]
    (authority,) = [row for row in shown if row[:1] == ["authority/signing"]]
    (leaf,) = [row for row in shown if row[:1] == ["leaf"] and "in" in row]
    assert authority[4:6] == [by, "<none>"]
    assert leaf[4:6] == [by, "fairlead-webhook,"]


@pytest.mark.parametrize(
    "name", ["a staged authority is published", "an authority retires", "nothing may be read"]
)
def test_a_document_is_the_golden_one(name: str, wording: Wording) -> None:
    """What may not be read is null: not false, and not empty."""
    shown = document(STATES[name], NOW)
    for part in (shown["leaf"], *shown["webhooks"]):
        # In the order of the certificates' bytes, which are drawn.
        part["bundle"] = sorted({each["expires"] for each in part.get("bundle") or ()})
    text = json.dumps(shown, indent=1)
    wording(lasting(re.sub(r'"renewal": "[^"]*"', '"renewal": "TIME"', text)))


def test_certificates_have_whole_serial_numbers_and_their_times() -> None:
    """In hexadecimal, and as Kubernetes writes times."""
    signing = SIGNING.check()
    assert document(state(), NOW)["leaf"]["bundle"] == [
        {
            "serial": f"{signing.serial_number:x}",
            "expires": to_second(signing.not_valid_after_utc),
            "renewal": to_second(renewal_time(signing)),
        }
    ]


def test_no_state_shows_a_key() -> None:
    """Whatever is seen."""
    text = json.dumps([document(each, NOW) for each in STATES.values()])
    for pair in (SIGNING, NEXT, LEAF):
        for line in pair.private_key.decode().splitlines():
            assert line not in text


@pytest.mark.parametrize(
    ("now", "wrong"),
    [
        (NOW - timedelta(days=20), 2),
        (renewal_time(LEAF.check()) + OVERDUE, 0),
        (renewal_time(LEAF.check()) + OVERDUE + timedelta(seconds=1), 1),
        (NOW + timedelta(days=800), 2),
    ],
    ids=["too early", "due", "overdue", "over"],
)
def test_times_are_judged_of_the_authority_and_of_the_leaf(
    now: datetime, wrong: int, wording: Wording
) -> None:
    """Not valid yet, overdue, over."""
    found = [f"{each.what}. Cure: {each.cure}" for each in findings(state(), now)]
    assert len(found) == wrong
    wording(re.sub(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?", "DATE", "\n".join(found) or "nothing"))
