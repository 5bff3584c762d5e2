"""Quantities as the scheduler counts them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.placement.quantity import InvalidQuantity, amount, counted, format_quantity, nanos

SUFFIXES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "Ki": Fraction(1024),
    "Gi": Fraction(2**30),
    "e3": Fraction(1000),
    "E-2": Fraction(1, 100),
}


@given(
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 10**6),
    st.none() | st.integers(0, 10**12),
    st.sampled_from(sorted(SUFFIXES)),
)
def test_a_quantity_is_its_number_times_its_suffix(
    sign: str, whole: int, fraction: int | None, suffix: str
) -> None:
    """Exactly, to a thousandth of a millionth, away from zero."""
    number = f"{whole}" if fraction is None else f"{whole}.{fraction}"
    exact = Fraction(number) * SUFFIXES[suffix] * 10**9
    assert abs(nanos(f"{sign}{number}{suffix}")) == -(-exact.numerator // exact.denominator)
    assert (nanos(f"{sign}{number}{suffix}") < 0) == (sign == "-" and exact > 0)


@pytest.mark.parametrize(
    ("resource", "text", "count"),
    [
        ("cpu", "4", 4000),
        ("cpu", "1500m", 1500),
        ("cpu", "0.0001", 1),
        ("memory", "16Gi", 16 * 2**30),
        ("memory", "100m", 1),
        ("nvidia.com/gpu", 8, 8),
        ("memory", "0", 0),
        ("memory", ".5Ki", 512),
        ("memory", "5.", 5),
        ("memory", "1e4000", 2**63 - 1),
        ("memory", "1e-4000", 1),
        ("cpu", "9E", 2**63 - 1),
    ],
)
def test_cpu_counts_in_thousandths_and_all_else_in_units(
    resource: str, text: str | int, count: int
) -> None:
    """Rounded up; what no machine has is capped, and costs nothing to read."""
    assert amount(resource, text) == count


@pytest.mark.parametrize(
    "text", ["", "Gi", "1e", "1ki", "x", "1 ", "--1", ".", "1" * 65, "0x1", "0" * 10**6]
)
def test_an_invalid_quantity_is_rejected(text: str) -> None:
    """It is quoted, with what would be right."""
    with pytest.raises(InvalidQuantity, match="is not a quantity"):
        nanos(text)


def test_sums_are_rounded_once() -> None:
    """Two halves of a thousandth are one thousandth, not two."""
    assert counted("cpu", 2 * nanos("500u")) == 1


@pytest.mark.parametrize(
    ("resource", "count", "text"),
    [
        ("cpu", 4000, "4"),
        ("cpu", 500, "500m"),
        ("memory", 16 * 2**30, "16Gi"),
        ("memory", 3 * 2**29, "1.5Gi"),
        ("memory", 65500 * 2**20, "65500Mi"),
        ("memory", 65813812 * 2**10, "65813812Ki"),
        ("memory", 1000, "1000"),
        ("nvidia.com/gpu", 8, "8"),
        ("example.com/bytes", 4096, "4096"),
        ("pods", 2048, "2048"),
    ],
)
def test_amounts_are_shown_as_people_write_them(resource: str, count: int, text: str) -> None:
    """Memory by powers of two, extended resources by their number."""
    assert format_quantity(resource, count) == text
