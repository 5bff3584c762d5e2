"""Shares of a split are contiguous, and are all of a role's replicas."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.placement.split import Replica, Share, ends, share_of

COUNTS = st.lists(st.integers(1, 30).map(lambda count: Share(count)), max_size=4)


@st.composite
def splits(draw: st.DrawFn) -> list[Share]:
    """Shares with a count, then some with a percentage of at most 100 together, then the rest."""
    left, percents = 100, []
    while left and draw(st.booleans()):
        percents.append(Share(percent=draw(st.integers(1, left))))
        left -= percents[-1].percent or 0
    return [*draw(COUNTS), *percents, Share()]


@given(splits(), st.integers(0, 200))
def test_shares_are_contiguous_and_are_all_replicas(shares: list[Share], replicas: int) -> None:
    """Each replica is in one share, in the order of the shares, and each share has its size."""
    found = [share_of(shares, Replica(at, replicas)) for at in range(replicas)]
    assert found == sorted(found)
    sizes = [found.count(at) for at in range(len(shares))]
    counted = sum(share.number or 0 for share in shares)
    left = max(replicas - counted, 0)
    for share, size in zip(shares, sizes, strict=True):
        if share.number is not None:
            assert size <= share.number
            assert size == share.number or replicas <= counted
        elif share.percent is not None:
            assert abs(size - left * share.percent / 100) < 1
    assert sum(sizes) == replicas


@given(splits(), st.integers(0, 50), st.integers(0, 50))
def test_a_count_does_not_depend_on_the_number_of_replicas(
    shares: list[Share], index: int, replicas: int
) -> None:
    """So it works for pods that do not say how many there are."""
    unknown = share_of(shares, Replica(index))
    known = share_of(shares, Replica(index, index + 1 + replicas))
    if shares[unknown].number is not None:
        assert known == unknown
    else:
        assert unknown == len(shares) - 1


@given(splits())
def test_the_ends_of_shares_rise(shares: list[Share]) -> None:
    """Of all but the last share."""
    found = ends(shares, 97)
    assert len(found) == len(shares) - 1
    assert all(one <= two for one, two in pairwise(found))


@pytest.mark.parametrize(
    ("percents", "replicas", "sizes"),
    [
        ((70,), 10, [7, 3]),
        ((70,), 1, [1, 0]),
        ((49,), 1, [0, 1]),
        ((50, 50), 3, [2, 1, 0]),
        ((33, 33), 4, [1, 2, 1]),
        ((100,), 5, [5, 0]),
    ],
)
def test_percentages_are_rounded_together(
    percents: tuple[int, ...], replicas: int, sizes: list[int]
) -> None:
    """A role of one replica is in the share that has half of it or more."""
    shares = [*(Share(percent=each) for each in percents), Share()]
    found = [share_of(shares, Replica(at, replicas)) for at in range(replicas)]
    assert [found.count(at) for at in range(len(shares))] == sizes


def test_a_pod_without_an_index_is_in_the_last_share() -> None:
    """Also if the number of replicas is known."""
    assert share_of([Share(2), Share()], Replica(None, 5)) == 1
