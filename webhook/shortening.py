"""Shorten long texts and lists for messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def cut(text: str, most: int) -> str:
    """The text, or its first `most` characters and an ellipsis.

    >>> cut("abc", 3), cut("abcd", 3)
    ('abc', 'abc…')
    """
    return text if len(text) <= most else f"{text[:most]}…"


def fit(text: str, limit: int) -> str:
    """The text, or its beginning and an ellipsis, `limit` characters in all.

    >>> fit("abc", 3), fit("abcd", 3)
    ('abc', 'ab…')
    """
    return text if len(text) <= limit else cut(text, limit - 1)


def apart(one: str, other: str, most: int) -> tuple[str, str]:
    """Two texts, each cut to `most` characters around the first place where they differ."""
    pairs = enumerate(zip(one, other, strict=False))
    alike = next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))
    start = alike - most // 4 if alike >= most - 1 else 0
    return _window(one, start, most), _window(other, start, most)


def _window(text: str, start: int, most: int) -> str:
    before, after = "…" if start else "", "…" if start + most < len(text) else ""
    return f"{before}{text[start : start + most]}{after}"


def first_few(names: Sequence[str], most: int) -> str:
    """The first few names, and how many more there are.

    >>> first_few(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
