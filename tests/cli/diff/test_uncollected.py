"""While a comparison is made, nobody looks for cycles."""

from __future__ import annotations

import gc

import pytest

from webhook.cli.diff.uncollected import uncollected


def test_the_collector_rests_within_and_works_after() -> None:
    """Also if what is within fails."""
    assert gc.isenabled()
    with pytest.raises(KeyError), uncollected():
        _fail(gc.isenabled())
    assert gc.isenabled()


def _fail(collecting: bool) -> None:
    assert not collecting
    raise KeyError


def test_who_found_it_off_leaves_it_off() -> None:
    """One within another does not end the other's rest."""
    with uncollected():
        with uncollected():
            pass
        assert not gc.isenabled()
