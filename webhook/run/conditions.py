"""The conditions of a Run: their types, and how they are updated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.crd import conditions
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from webhook.crd.conditions import Said
    from webhook.crd.reported import Condition

CREATED: Final = "Created"
SCHEDULED: Final = "Scheduled"
READY: Final = "Ready"
SUSPENDED: Final = "Suspended"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
# What is said of pods that are on their way: of a run at rest, or at its end, it is not said.
_UNDER_WAY: Final = (CREATED, SCHEDULED)


def updated(
    before: Iterable[Condition], said: Iterable[Said], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """What is said now, and what was said of other types; a status that stays keeps its time."""
    return conditions.updated(before, said, generation, to_second(now))


def without_pods(before: Iterable[Condition]) -> tuple[Condition, ...]:
    """The conditions that still mean something where no pods are to come."""
    return tuple(condition for condition in before if condition.type not in _UNDER_WAY)
