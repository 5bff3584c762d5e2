"""The replicas of one role of a Run, and the environment of each level."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, ValidationError, WithJsonSchema
from pydantic_core import InitErrorDetails

from webhook.frameworks.native_default import native_default
from webhook.placement.schema.placement import PlacementModel
from webhook.placement.schema.syntax import Quantity, ResourceName
from webhook.run.model.run_checks import environment_problems, index_problems
from webhook.strict import (
    UNKNOWN_FIELD,
    Problem,
    Strict,
    distinct,
    own_error,
)

RestartPolicy: TypeAlias = Literal["Never", "OnFailure", "ExitCode"]
JsonObject: TypeAlias = dict[str, Any]

MAX_REPLICAS = 10000
MAX_OVERRIDES = 1000


class Environment(PlacementModel):
    """The placement that a run, a role or a single replica requests."""


def _pod_template(template: JsonObject) -> JsonObject:
    errors = []
    for name, part in template.items():
        if name not in ("metadata", "spec"):
            wrong = own_error("a pod template has metadata and spec; remove this", UNKNOWN_FIELD)
        elif not isinstance(part, dict):
            wrong = own_error("want a mapping")
        else:
            continue
        errors.append(InitErrorDetails(type=wrong, loc=(name,), input=part))
    if errors:
        raise ValidationError.from_exception_data("a pod template", errors)
    return template


PodTemplate: TypeAlias = Annotated[
    JsonObject,
    AfterValidator(_pod_template),
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "metadata": {
                    "type": "object",
                    "description": "Labels and annotations of the pods.",
                    "additionalProperties": True,
                },
                "spec": {
                    "type": "object",
                    "description": "The spec of a pod (v1.PodSpec).",
                    "additionalProperties": True,
                },
            },
        }
    ),
]


class ResourceClaim(Strict):
    """One of the pod's resourceClaims that the container uses."""

    name: str = Field(min_length=1, description="Its name in the pod's resourceClaims.")
    request: str | None = Field(
        default=None, description="The request within the claim. Default: all requests."
    )


def _one_entry_a_claim(claims: list[ResourceClaim]) -> list[ResourceClaim]:
    return distinct(claims, [claim.name for claim in claims], ("name",), "the name")


class Resources(Strict):
    """The resources of the main container: quantities by resource name."""

    requests: dict[ResourceName, Quantity] | None = Field(
        default=None, description="The resources that are reserved for the container."
    )
    limits: dict[ResourceName, Quantity] | None = Field(
        default=None, description="The maximum resources of the container."
    )
    claims: Annotated[list[ResourceClaim], AfterValidator(_one_entry_a_claim)] | None = Field(
        default=None, description="The pod's resourceClaims that the container uses."
    )


class IndexSpec(Strict):
    """Settings for one replica of a role."""

    index: int = Field(ge=0, lt=MAX_REPLICAS, description="The index of the replica, from 0.")
    resources: Resources | None = Field(
        default=None,
        description="The resources of its main container; they replace all of the role's.",
    )
    environment: Environment | None = Field(
        default=None, description="The replica's placement, merged over the role's."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Check the lengths of lists."""
        yield from environment_problems(given)


def _one_entry_an_index(entries: list[IndexSpec]) -> list[IndexSpec]:
    return distinct(entries, [entry.index for entry in entries], ("index",), "the index")


class ReplicaSpec(Strict):
    """The replicas of one role."""

    count: int = Field(default=1, ge=1, le=MAX_REPLICAS, description="The number of replicas.")
    resources: Resources | None = Field(
        default=None,
        description="The resources of each main container; they replace all of the template's.",
    )
    environment: Environment | None = Field(
        default=None, description="The role's placement, merged over the run's."
    )
    template: PodTemplate | None = Field(
        default=None,
        description="A pod template that is merged over the run's template, as kubectl apply "
        "does: containers, volumes and variables by name.",
    )
    restart_policy: RestartPolicy = native_default(
        "OnFailure",
        "What happens after a failure of the program. Never: the run fails. OnFailure: "
        "the replica restarts. ExitCode: the replica restarts after an exit code of 128 or above; "
        "the run fails after 1 to 127, or out of memory. After a disruption the replica restarts "
        "under each policy.",
    )
    by_index: Annotated[list[IndexSpec], AfterValidator(_one_entry_an_index)] | None = Field(
        default=None,
        max_length=MAX_OVERRIDES,
        description="Settings for single replicas that replace the role's, at most 1000.",
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Check that overrides refer to existing replicas, and the lengths of lists."""
        yield from index_problems(given)
        yield from environment_problems(given)
