"""What of node affinity is said in CEL, as far as it can be looked at without an API server."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from webhook.exported.node_conditions import int64_pattern
from webhook.placement.label_values import MAX_INT64, int64

NUMBER = re.compile(int64_pattern(), re.ASCII)
NEAR = st.integers(-3, 3).map(lambda off: MAX_INT64 + off)


@given(
    sign=st.sampled_from(["", "+", "-"]),
    zeros=st.integers(0, 20).map(lambda count: "0" * count),
    number=st.one_of(NEAR, st.integers(0, 2 * 10**19), st.integers(0, 99)),
)
def test_numbers_are_those_that_the_scheduler_reads(sign: str, zeros: str, number: int) -> None:
    """To the last of the nineteen digits, whatever zeros stand before them."""
    said = f"{sign}{zeros}{number}"
    if int64(said) != -MAX_INT64 - 1:
        assert (NUMBER.search(said) is not None) == (int64(said) is not None)


@given(st.text(alphabet="0123456789+-_. a", max_size=8))
def test_an_invalid_number_is_none(said: str) -> None:
    """A sign alone, blanks, letters."""
    assert (NUMBER.search(said) is not None) == (int64(said) is not None)
