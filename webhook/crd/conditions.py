"""The base model of every status, and its conditions (metav1.Condition)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from collections.abc import Iterable


# Times are RFC 3339 texts in UTC, as Kubernetes writes them.
Time: TypeAlias = str


class Reported(BaseModel):
    """Camel case outside; what an older or a newer controller wrote beside it is left out."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
    )


class Condition(Reported):
    """One condition of the object (metav1.Condition)."""

    type: str = Field(description="The type of the condition.")
    status: Literal["True", "False", "Unknown"] = Field(description="The status of the condition.")
    observed_generation: int = Field(
        default=0, description="The generation for which the condition was set."
    )
    last_transition_time: Time = Field(description="The last time that the status changed.")
    reason: str = Field(default="", description="The reason, in one word.")
    message: str = Field(default="", description="A description for people.")


class ConditionUpdate(NamedTuple):
    """The current state of one condition."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


def update_conditions(
    before: Iterable[Condition], updates: Iterable[ConditionUpdate], generation: int, now: Time
) -> tuple[Condition, ...]:
    """Return the updated conditions. A type without an update stays as it is.

    lastTransitionTime changes only with the status (metav1.Condition).
    """
    known = {condition.type: condition for condition in before}
    for one in updates:
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
