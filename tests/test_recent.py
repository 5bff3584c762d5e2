"""What was used last is remembered, and no more than that."""

from __future__ import annotations

import pytest

from webhook.recent import Recent


def test_the_one_that_was_not_used_for_longest_is_forgotten() -> None:
    """Looking at a value is using it, and so is putting it again."""
    recent: Recent[str, int] = Recent(3)
    for number, key in enumerate("abc"):
        recent.put(key, number)
    assert recent.get("a") == 0
    recent.put("b", 7)
    recent.put("d", 3)
    assert recent.get("c") is None
    assert [recent.get(key) for key in "abd"] == [0, 7, 3]


def test_what_is_there_is_not_made_again() -> None:
    """A falsy value is one, too."""
    recent: Recent[str, bool] = Recent(1)
    made: list[str] = []

    def make() -> bool:
        made.append("once")
        return False

    assert [recent.get_or_make("a", make), recent.get_or_make("a", make)] == [False, False]
    assert made == ["once"]


def test_what_cannot_be_made_is_not_remembered() -> None:
    """The next one who asks makes it."""
    recent: Recent[str, int] = Recent(1)
    with pytest.raises(ZeroDivisionError):
        recent.get_or_make("a", lambda: 1 // 0)
    assert recent.get_or_make("a", lambda: 1) == 1


def test_what_is_forgotten_is_gone() -> None:
    """One, or all; one that was never there is no trouble."""
    recent: Recent[str, int] = Recent(5)
    for key in "ab":
        recent.put(key, 1)
    recent.forget("a")
    recent.forget("never there")
    assert (recent.get("a"), recent.get("b")) == (None, 1)
    recent.clear()
    assert recent.get("b") is None


def test_heavy_values_are_fewer() -> None:
    """Those used longest ago go first; the last one stays, whatever its weight."""
    recent: Recent[str, int] = Recent(9, 10)
    for number, key in enumerate("abc"):
        recent.put(key, number, 4)
    assert [recent.get(key) for key in "abc"] == [None, 1, 2]
    recent.put("b", 7, 1)
    recent.put("d", 3, 5)
    assert [recent.get(key) for key in "bcd"] == [7, 2, 3]
    recent.put("e", 4, 99)
    assert [recent.get(key) for key in "bcde"] == [None, None, None, 4]
    recent.clear()
    recent.put("f", 5, 10)
    assert recent.get("f") == 5
