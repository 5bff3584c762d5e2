"""Random values for what is done with many of them at once, and so outside of hypothesis."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

T = TypeVar("T")


def drawn(strategy: st.SearchStrategy[T], count: int, seed: int | None = None) -> list[T]:
    """So many values of the strategy; fewer only if it has no more. Nothing is ever shrunk.

    With a seed they are the same ones each time.
    """
    found: list[T] = []

    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(value: T) -> None:
        found.append(value)

    if seed is not None:
        collect = seeded(seed)(collect)
    collect()
    return found
