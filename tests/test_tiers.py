"""Every test is in exactly one tier of the suite."""

from __future__ import annotations

from tests.tiers import LONG, TESTS, TIERS, tiers_of

MODULES = sorted(TESTS.rglob("test_*.py"))


def test_every_module_is_in_exactly_one_tier() -> None:
    """None is left out of every command, and none runs in two of them by accident."""
    assert {module: tiers_of(module) for module in MODULES if len(tiers_of(module)) != 1} == {}


def test_a_path_of_the_table_exists_and_is_named_once() -> None:
    """A folder that was renamed is not forgotten in the table."""
    claims = [claim for claimed in TIERS.values() for claim in claimed]
    assert len(claims) == len(set(claims))
    assert [claim for claim in (*claims, *LONG) if not (TESTS / claim).exists()] == []


def test_the_unit_tier_needs_no_control_plane() -> None:
    """None of its modules asks for the control plane's fixtures."""
    names = ("control_plane", "binaries", "module_room", "start_control_plane")
    for module in MODULES:
        if tiers_of(module) == ["unit"]:
            text = module.read_text()
            assert not [name for name in names if f" {name}:" in text], module
