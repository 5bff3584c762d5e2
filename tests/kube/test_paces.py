"""How often each of many may do something."""

from __future__ import annotations

from webhook.kube.paces import Paces


def test_each_has_a_burst_and_then_a_pace_of_its_own() -> None:
    """Whoever asks too often takes nothing from others."""
    paces = Paces(burst=2, every=10.0, most=5)
    assert [paces.passes("a", now) for now in (0.0, 0.0, 0.0, 9.0, 10.0, 10.0)] == [
        True,
        True,
        False,
        False,
        True,
        False,
    ]
    assert paces.passes("b", 10.0)


def test_who_has_not_asked_for_longest_is_forgotten() -> None:
    """It begins with a burst again."""
    paces = Paces(burst=1, every=10.0, most=2)
    assert paces.passes("a", 0.0)
    assert paces.passes("b", 0.0)
    assert not paces.passes("a", 0.0)
    assert paces.passes("c", 0.0)
    assert not paces.passes("a", 0.0)
    assert paces.passes("b", 0.0)
