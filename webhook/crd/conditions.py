"""Conditions that keep the time of their last change (metav1.Condition)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from webhook.crd.reported import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webhook.crd.reported import Time


class Said(NamedTuple):
    """One condition as it is now."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


def updated(
    before: Iterable[Condition], said: Iterable[Said], generation: int, now: Time
) -> tuple[Condition, ...]:
    """What is said now, and what was said of other types; a status that stays keeps its time."""
    known = {condition.type: condition for condition in before}
    for one in said:
        old = known.get(one.type)
        since = old.last_transition_time if old and old.status == one.status else now
        known[one.type] = Condition(
            type=one.type,
            status=one.status,
            observed_generation=generation,
            last_transition_time=since,
            reason=one.reason,
            message=one.message,
        )
    return tuple(known.values())
