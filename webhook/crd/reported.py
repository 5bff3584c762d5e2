"""What is under every status: the model of what the controller reports of an object."""

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

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
    """One thing that is true of the object, false, or not known (metav1.Condition)."""

    type: str = Field(description="What it is about.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it is so.")
    observed_generation: int = Field(default=0, description="The generation that it is true of.")
    last_transition_time: Time = Field(description="Since when it is so.")
    reason: str = Field(default="", description="Why, in one word.")
    message: str = Field(default="", description="Why, for a person.")
