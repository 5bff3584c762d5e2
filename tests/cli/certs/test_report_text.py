"""The state of certificates, for people."""

from __future__ import annotations

import re
from dataclasses import replace

import click

from tests.cli.certs.sights import (
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
    serving,
    sight,
)
from tests.wording import Wording, line_with, mentions
from webhook.cli.certs.report import document
from webhook.cli.certs.report_text import lines
from webhook.cli.certs.sight import Sight

OLD, NEW, SERVED = (f"{each.check().serial_number:x}"[:12] for each in (SIGNING, NEXT, LEAF))


def lasting(text: str) -> str:
    """The text, with words in the place of what is drawn: serial numbers, times of renewal."""
    for serial, word in ((OLD, "AUTHORITY-01"), (NEW, "AUTHORITY-02"), (SERVED, "SERVING-LEAF")):
        text = text.replace(serial, word)
    # Those of a bundle are in the order of their certificates' bytes, which are drawn.
    text = text.replace("AUTHORITY-02, AUTHORITY-01", "AUTHORITY-01, AUTHORITY-02")
    return re.sub(r"(renewed in|from) \S+\b", r"\1 TIME", text)


def printed(seen: Sight) -> list[str]:
    """What a person reads."""
    return [click.unstyle(line) for line in lines(document(seen, NOW), NOW)]


def test_in_order_it_is_few_lines(wording: Wording) -> None:
    """Authority, leaf, caBundles, and what is next."""
    text = "\n".join(printed(sight()))
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
        printed(sight(published, published=configuration(STEADY.bundle, STAGED.bundle)))
    )
    assert "authority: published" in text
    assert f"  signing  {OLD}" in text
    assert f"  staged   {NEW}" in text
    line_with(text, "pods-0.fairlead.dev", "outdated", OLD)
    line_with(text, "namespaces.fairlead.dev", "fine", OLD, NEW)
    line_with(text, "wrong: ", "caBundle", "pods-0.fairlead.dev")
    line_with(printed(sight(RETIRING)), "retiring", OLD, "expires in")
    wording(lasting(text))


def test_a_caBundle_that_refuses_the_leaf_says_so(wording: Wording) -> None:  # noqa: N802 (the field's name)
    """Empty, or another's."""
    text = printed(sight(published=configuration(b"", NEXT.certificate)))
    empty = line_with(text, "pods-0.fairlead.dev", "refuses the leaf", "trusts")
    assert line_with(text, "namespaces.fairlead.dev", "refuses the leaf", "trusts").endswith(NEW)
    wording(empty)
    assert sum(line.startswith("wrong: ") for line in text) == 2


def test_what_may_not_be_seen_is_said(wording: Wording) -> None:
    """Instead of an empty place."""
    text = "\n".join(printed(sight(HIDDEN, HIDDEN, ABSENT)))
    authority, leaf, bundles, *_ = text.split("\n\n")
    mentions(authority, "authority: cannot be told", "Secret fairlead-authority", "may not read")
    mentions(leaf, "leaf: cannot be told", "may not read", "Secret fairlead-webhook-tls")
    mentions(bundles, "caBundles none")
    line_with(printed(sight(HIDDEN, HIDDEN)), "pods-0.fairlead.dev", "cannot be told")
    wording(text)


def test_a_leaf_by_nobody_says_so(wording: Wording) -> None:
    """No authority beside it has signed it."""
    text = "\n".join(printed(sight(STEADY, serving(NEXT.certificate))))
    leaf = text.split("\n\n")[1]
    mentions(leaf, "by nobody in its bundle", "fairlead-webhook")
    assert OLD not in leaf
    wording(lasting(leaf))
