"""Readiness as named conditions, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Condition:
    """Whether one thing that serving needs is there. `reason` tells a person what is seen."""

    ready: bool
    reason: str


# Asked at every probe, on the event loop: a condition reads what is known, and waits for nothing.
Conditions: TypeAlias = Mapping[str, Callable[[], Condition]]


def evaluate(conditions: Conditions) -> dict[str, Condition]:
    """Ask every condition; one that raises is not ready, with the exception as its reason."""
    return {name: _ask(condition) for name, condition in conditions.items()}


def _ask(condition: Callable[[], Condition]) -> Condition:
    try:
        return condition()
    except Exception as error:  # what cannot be told is not ready, and no reason to die
        return Condition(ready=False, reason=f"{type(error).__name__}: {error}")
