"""Objects are named as kubectl takes them."""

from __future__ import annotations

import click
import pytest

from tests.wording import Wording
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
    "words",
    [
        ("train-0",),
        ("pod",),
        ("pod/a", "b"),
        ("pod", "A"),
        ("pod", "../secrets"),
        ("pod/a/b",),
        ("pod?x/a",),
    ],
    ids=" ".join,
)
def test_an_invalid_name_is_rejected_with_the_valid_form(
    words: tuple[str, ...], wording: Wording
) -> None:
    """Nothing else may become part of a path."""
    with pytest.raises(click.UsageError) as refused:
        parse_references(words)
    wording(refused.value.message)
