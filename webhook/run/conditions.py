"""Conditions that keep the time of their last change (metav1.Condition)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from webhook.crd.reported import Condition
from webhook.run.times import to_second

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

CREATED: Final = "Created"
SCHEDULED: Final = "Scheduled"
READY: Final = "Ready"
SUSPENDED: Final = "Suspended"
SUCCEEDED: Final = "Succeeded"
FAILED: Final = "Failed"
# What is said of pods that are on their way: of a run at rest, or at its end, it is not said.
_UNDER_WAY: Final = (CREATED, SCHEDULED)


class Said(NamedTuple):
    """One condition as it is now."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


def updated(
    before: Iterable[Condition], said: Iterable[Said], generation: int, now: datetime
) -> tuple[Condition, ...]:
    """What is said now, and what was said of other types; a status that stays keeps its time."""
    known = {condition.type: condition for condition in before}
    for one in said:
        old = known.get(one.type)
        since = old.last_transition_time if old and old.status == one.status else to_second(now)
        known[one.type] = Condition(
            type=one.type,
            status=one.status,
            observed_generation=generation,
            last_transition_time=since,
            reason=one.reason,
            message=one.message,
        )
    return tuple(known.values())


def without_pods(before: Iterable[Condition]) -> tuple[Condition, ...]:
    """The conditions that still mean something where no pods are to come."""
    return tuple(condition for condition in before if condition.type not in _UNDER_WAY)
