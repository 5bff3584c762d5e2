"""The replicas of one role of a Run, and where single ones differ."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field

from webhook.placement.schema.base import Strict, distinct
from webhook.placement.schema.placement import PlacementModel

RestartPolicy: TypeAlias = Literal["Never", "OnFailure", "ExitCode"]
JsonObject: TypeAlias = dict[str, Any]

MAX_REPLICAS = 10000


class Resources(Strict):
    """What the main container asks for; as in a container, quantities by resource name."""

    requests: Mapping[str, str | int | float] | None = Field(
        default=None, description="What is reserved for it."
    )
    limits: Mapping[str, str | int | float] | None = Field(
        default=None, description="What it may not exceed."
    )
    claims: list[JsonObject] | None = Field(
        default=None, description="Names of the pod's resourceClaims that it uses."
    )


class IndexSpec(Strict):
    """Where one replica differs from the others of its role."""

    index: int = Field(ge=0, lt=MAX_REPLICAS, description="Which replica, from 0.")
    resources: Resources | None = Field(
        default=None,
        description="What its main container asks for; replaces the role's whole.",
    )
    environment: PlacementModel | None = Field(
        default=None, description="Its own placement, upon the role's."
    )


def _one_entry_an_index(entries: list[IndexSpec]) -> list[IndexSpec]:
    return distinct(entries, [entry.index for entry in entries], ("index",), "the index")


class ReplicaSpec(Strict):
    """The replicas of one role."""

    count: int = Field(default=1, ge=1, le=MAX_REPLICAS, description="How many there are.")
    resources: Resources | None = Field(
        default=None,
        description="What each main container asks for; replaces the template's whole.",
    )
    environment: PlacementModel | None = Field(
        default=None, description="The role's own placement, upon the run's."
    )
    template: JsonObject | None = Field(
        default=None,
        description="Where the role's pods differ from the run's template: a pod template, "
        "merged as kubectl apply would: containers, volumes and variables by name.",
    )
    restart_policy: RestartPolicy = Field(
        default="OnFailure",
        description="After a failure of the program: Never gives up; OnFailure starts the "
        "replica again; ExitCode does so after 128 and above, and gives up after 1 to 127 or out "
        "of memory. A replica whose node went away is started again under each of them.",
    )
    by_index: Annotated[list[IndexSpec], AfterValidator(_one_entry_an_index)] | None = Field(
        default=None, description="Single replicas that differ."
    )
