"""Long lists, a page at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    T = TypeVar("T")


def paged(items: Sequence[T], page: int, size: int) -> tuple[Sequence[T], int, int]:
    """Return the items of a page, its number, and how many there are, from 1.

    A page that does not exist is the first or the last.
    """
    pages = max(1, -(-len(items) // size))
    at = min(max(page, 1), pages)
    return items[(at - 1) * size : at * size], at, pages
