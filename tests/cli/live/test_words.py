"""Objects are named as kubectl takes them."""

from __future__ import annotations

import click
import pytest

from webhook.cli.live.words import Named, named


def test_a_kind_goes_before_names_or_before_each_slash() -> None:
    """As kubectl has it; what is named twice is meant once."""
    assert named(("pod", "a", "b")) == [Named("pod", "a"), Named("pod", "b")]
    assert named(("job/a", "deploy/b", "job/a")) == [Named("job", "a"), Named("deploy", "b")]
    assert named(("jobs.batch/a",)) == [Named("jobs.batch", "a")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train-0",), "train-0: want a kind and a name, as in `pod train-0`"),
        (("pod",), "pod: want a kind and a name, as in `pod train-0`"),
        (("pod/a", "b"), "not both"),
        (("pod", "A"), "pod/A: want a kind"),
        (("pod", "../secrets"), "not both"),
        (("pod/a/b",), "pod/a/b: want a kind"),
        (("pod?x/a",), "want a kind"),
    ],
)
def test_what_is_no_name_is_refused_with_what_is(words: tuple[str, ...], said: str) -> None:
    """Nothing else may become part of a path."""
    with pytest.raises(click.UsageError, match=said.replace("?", r"\?").replace(".", r"\.")):
        named(words)
