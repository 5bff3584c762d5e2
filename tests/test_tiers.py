"""Every test is in exactly one tier of the suite."""

from __future__ import annotations

import pytest

from tests.tiers import LONG, TESTS, TIERS, tier_of

MODULES = sorted(TESTS.rglob("test_*.py"))


def test_every_module_is_in_exactly_one_tier() -> None:
    """None is left out of every command, and none runs in two of them by accident."""
    for module in MODULES:
        tier_of(module)


def test_a_folder_in_no_tier_is_refused_with_the_cure() -> None:
    """It would be left out of `make test` without a word."""
    refused = r"tests/new/test_a\.py is in no tier.*tiers\.py"
    with pytest.raises(pytest.Collector.CollectError, match=refused):
        tier_of(TESTS / "new" / "test_a.py")


def test_a_path_of_the_table_exists_and_is_named_once() -> None:
    """A folder that was renamed is not forgotten in the table."""
    claims = [claim for claimed in TIERS.values() for claim in claimed]
    assert len(claims) == len(set(claims))
    assert [claim for claim in (*claims, *LONG) if not (TESTS / claim).exists()] == []


def test_the_unit_tier_needs_no_control_plane(request: pytest.FixtureRequest) -> None:
    """None of its tests asks for one, or its binaries, directly or through another fixture."""
    needy = {"control_plane", "binaries"}
    items = [item for item in request.session.items if tier_of(item.path) == "unit"]
    assert [item.nodeid for item in items if needy & {*getattr(item, "fixturenames", ())}] == []
