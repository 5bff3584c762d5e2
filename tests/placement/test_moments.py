"""A moment is one form of RFC 3339, with a day that there is."""

from __future__ import annotations

import re
from datetime import date
from itertools import product

import pytest

from webhook.placement.schema.moments import IS_NO_MOMENT, MOMENT_PATTERN


def test_every_day_of_the_century_is_taken_and_no_other() -> None:
    """As the calendar has it: the API server judges by the pattern alone."""
    form = re.compile(MOMENT_PATTERN)
    for year, month, day in product(range(2000, 2100), range(14), range(33)):
        try:
            there = bool(date(year, month, day))
        except ValueError:
            there = False
        text = f"{year}-{month:02}-{day:02}T18:00:00Z"
        assert bool(form.fullmatch(text)) == there, text


@pytest.mark.parametrize("text", re.findall(r"20\S+", IS_NO_MOMENT))
def test_what_is_given_as_an_example_is_one(text: str) -> None:
    """Both zones."""
    assert re.fullmatch(MOMENT_PATTERN, text)
