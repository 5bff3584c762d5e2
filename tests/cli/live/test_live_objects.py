"""Objects are named as kubectl takes them."""

from __future__ import annotations

import click
import pytest

from tests.wording import Wording, mentions
from webhook.cli.live.live_objects import ObjectReference, parse_references


def test_a_kind_goes_before_names_or_before_each_slash() -> None:
    """As kubectl has it; what is named twice is meant once."""
    assert parse_references(("pod", "a", "b")) == [
        ObjectReference("pod", "a"),
        ObjectReference("pod", "b"),
    ]
    assert parse_references(("job/a", "deploy/b", "job/a")) == [
        ObjectReference("job", "a"),
        ObjectReference("deploy", "b"),
    ]
    assert parse_references(("jobs.batch/a",)) == [ObjectReference("jobs.batch", "a")]


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("train-0",), ["train-0: ", "`pod train-0`"]),
        (("pod",), ["pod: ", "`pod train-0`"]),
        (("pod/a", "b"), ["not both"]),
        (("pod", "A"), ["pod/A: ", "kind", "name"]),
        (("pod", "../secrets"), ["not both"]),
        (("pod/a/b",), ["pod/a/b: ", "kind", "name"]),
        (("pod?x/a",), ["pod?x/a: ", "kind", "name"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_invalid_name_is_rejected_with_the_valid_form(
    words: tuple[str, ...], facts: list[str], wording: Wording
) -> None:
    """Nothing else may become part of a path."""
    with pytest.raises(click.UsageError) as refused:
        parse_references(words)
    mentions(refused.value.message, *facts)
    wording(refused.value.message)
