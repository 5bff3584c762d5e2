"""The state of certificates, for people."""

from __future__ import annotations

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
from webhook.cli.certs.report import document
from webhook.cli.certs.report_text import lines
from webhook.cli.certs.sight import Sight

OLD, NEW, SERVED = (f"{each.check().serial_number:x}"[:12] for each in (SIGNING, NEXT, LEAF))


def printed(seen: Sight) -> list[str]:
    """What a person reads."""
    return [click.unstyle(line) for line in lines(document(seen, NOW), NOW)]


def test_in_order_it_is_few_lines() -> None:
    """Authority, leaf, caBundles, and what is next."""
    text = printed(sight())
    assert text[0] == "authority: steady (Secret fairlead-authority)"
    assert text[1].startswith(f"  signing  {OLD}  expires in 355d  renewed in 2")
    assert text[3] == "leaf (Secret fairlead-webhook-tls)"
    assert text[4].startswith(f"  serving  {SERVED}  expires in 27d  renewed in 1")
    assert text[5].startswith(f"  by {OLD}, for fairlead-webhook, ")
    assert text[-5:-1] == [
        "caBundles",
        f"  pods-0.fairlead.dev      fine  trusts {OLD}",
        f"  namespaces.fairlead.dev  fine  trusts {OLD}",
        "",
    ]
    assert text[-1].startswith("next: a new leaf, from ")


def test_a_rotation_shows_both_authorities() -> None:
    """And what each caBundle is worth meanwhile."""
    published = replace(STAGED, published_since=NOW)
    text = "\n".join(
        printed(sight(published, published=configuration(STEADY.bundle, STAGED.bundle)))
    )
    assert "authority: published" in text
    assert f"  signing  {OLD}" in text
    assert f"  staged   {NEW}" in text
    assert f"pods-0.fairlead.dev      outdated  trusts {OLD}" in text
    assert "wrong: the caBundle of pods-0.fairlead.dev is another one" in text
    assert f"  retiring  {OLD}  expires in" in "\n".join(printed(sight(RETIRING)))


def test_a_caBundle_that_refuses_the_leaf_says_so() -> None:  # noqa: N802 (the field's name)
    """Empty, or another's."""
    text = printed(sight(published=configuration(b"", NEXT.certificate)))
    assert "  pods-0.fairlead.dev      refuses the leaf  trusts nobody" in text
    assert f"  namespaces.fairlead.dev  refuses the leaf  trusts {NEW}" in text
    assert sum(line.startswith("wrong: ") for line in text) == 2


def test_what_may_not_be_seen_is_said() -> None:
    """Instead of an empty place."""
    text = "\n".join(printed(sight(HIDDEN, HIDDEN, ABSENT)))
    assert "authority: cannot be told (Secret fairlead-authority)" in text
    assert "You may not read this Secret" in text
    assert "leaf: cannot be told, for you may not read the Secret fairlead-webhook-tls" in text
    assert "none that can be seen" in text
    assert "  pods-0.fairlead.dev      cannot be told" in "\n".join(printed(sight(HIDDEN, HIDDEN)))


def test_a_leaf_by_nobody_says_so() -> None:
    """No authority beside it has signed it."""
    text = "\n".join(printed(sight(STEADY, serving(NEXT.certificate))))
    assert "  by nobody in its bundle, for fairlead-webhook" in text
