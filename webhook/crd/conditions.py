"""The conditions of a status (metav1.Condition), and its times."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, TypeAlias

from pydantic import Field

from webhook.lenient import Reported, Words, readable
from webhook.strict import quoted
from webhook.times import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable

# The longest is 2026-11-21T20:15:00.123456789+01:00.
_LONGEST_TIME: Final = 40


def _check_time(text: str) -> None:
    """Raise ValueError for anything but an RFC 3339 time."""
    try:
        parse_time(text if len(text) <= _LONGEST_TIME else "")
    except ValueError:
        wanted = "want a time with its zone, such as 2026-11-21T20:15:00Z"
        raise ValueError(f"{wanted}, not {quoted(text)}") from None


# Times are RFC 3339 texts in UTC, as Kubernetes writes them.
Time: TypeAlias = Annotated[str, readable(_check_time)]
Truth: TypeAlias = Literal["True", "False", "Unknown"]


class Condition(Reported):
    """One condition of the object (metav1.Condition)."""

    type: str = Field(description="The type of the condition.")
    status: Annotated[str, Words(("True", "False", "Unknown"))] = Field(
        description="The status of the condition: True, False or Unknown."
    )
    observed_generation: int = Field(
        default=0, description="The generation for which the condition was set."
    )
    last_transition_time: Time = Field(description="The last time that the status changed.")
    reason: str = Field(default="", description="The reason, in one word.")
    message: str = Field(default="", description="A description for people.")


class ConditionUpdate(NamedTuple):
    """The current state of one condition."""

    type: str
    status: Truth
    reason: str
    message: str = ""


def update_conditions(
    before: Iterable[Condition], updates: Iterable[ConditionUpdate], generation: int, now: Time
) -> tuple[Condition, ...]:
    """Return the updated conditions. A type without an update stays as it is.

    lastTransitionTime changes only with the status (metav1.Condition).
    """
    condition_by_type = {condition.type: condition for condition in before}
    for change in updates:
        old = condition_by_type.get(change.type) or _unset(change.type, now)
        update: dict[str, object] = {
            "status": change.status,
            "observed_generation": generation,
            "reason": change.reason,
            "message": change.message,
        }
        # Most of a thousand objects are as they were.
        if any(getattr(old, name) != value for name, value in update.items()):
            if old.status != change.status:
                update["last_transition_time"] = now
            old = old.model_copy(update=update)
        condition_by_type[change.type] = old
    return tuple(condition_by_type.values())


@lru_cache(maxsize=16)
def _unset(kind: str, now: Time) -> Condition:
    return Condition(type=kind, status="", last_transition_time=now)
