"""Readiness conditions, each with a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Condition:
    """The state of one condition of readiness. `reason` is for people."""

    ready: bool
    reason: str


# Evaluated for every probe, on the event loop: a condition must not wait.
Conditions: TypeAlias = Mapping[str, Callable[[], Condition]]


def evaluate(conditions: Conditions) -> dict[str, Condition]:
    """Evaluate every condition; one that raises is not ready, with the exception as reason."""
    return {name: _evaluate(condition) for name, condition in conditions.items()}


def _evaluate(condition: Callable[[], Condition]) -> Condition:
    try:
        return condition()
    except Exception as error:  # a condition that fails must not stop the process
        return Condition(ready=False, reason=f"{type(error).__name__}: {error}")
