"""The replicas of one role of a Run, and where single ones differ."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, WithJsonSchema
from pydantic_core import InitErrorDetails

from webhook.placement.schema.syntax import ResourceName
from webhook.run.model.checks import environment_problems, index_problems
from webhook.run.model.environment import Environment
from webhook.strict import (
    UNKNOWN_FIELD,
    Problem,
    Strict,
    distinct,
    own_error,
    shown,
)

RestartPolicy: TypeAlias = Literal["Never", "OnFailure", "ExitCode"]
JsonObject: TypeAlias = dict[str, Any]

MAX_REPLICAS = 10000
MAX_OVERRIDES = 1000

# resource.Quantity, of k8s.io/apimachinery: a number with a suffix.
_NUMBER = r"([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_QUANTITY = rf"^[+-]?{_NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?{_NUMBER}))?$"
_quantity_text = re.compile(_QUANTITY, re.ASCII)


def _quantity(value: object) -> object:
    if isinstance(value, float):
        raise own_error(f"{value} is written in quotes, or in thousandths: {value * 1000:g}m")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise own_error("want a quantity: a whole number, or text such as 500m or 16Gi")
    if isinstance(value, str) and not _quantity_text.fullmatch(value):
        raise own_error(f"{shown(value)} is not a quantity, such as 4, 500m or 16Gi")
    return value


Quantity: TypeAlias = Annotated[
    str | int,
    BeforeValidator(_quantity),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "string", "pattern": _QUANTITY}]}),
]


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
                    "description": "A pod's spec, as any pod has it.",
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
        default=None, description="The one request of the claim that is meant. Default: all."
    )


def _one_entry_a_claim(claims: list[ResourceClaim]) -> list[ResourceClaim]:
    return distinct(claims, [claim.name for claim in claims], ("name",), "the name")


class Resources(Strict):
    """What the main container asks for; as in a container, quantities by resource name."""

    requests: dict[ResourceName, Quantity] | None = Field(
        default=None, description="What is reserved for it."
    )
    limits: dict[ResourceName, Quantity] | None = Field(
        default=None, description="What it may not exceed."
    )
    claims: Annotated[list[ResourceClaim], AfterValidator(_one_entry_a_claim)] | None = Field(
        default=None, description="The pod's resourceClaims that it uses."
    )


class IndexSpec(Strict):
    """Where one replica differs from the others of its role."""

    index: int = Field(ge=0, lt=MAX_REPLICAS, description="Which replica, from 0.")
    resources: Resources | None = Field(
        default=None,
        description="What its main container asks for; replaces the role's whole.",
    )
    environment: Environment | None = Field(
        default=None, description="Its own placement, upon the role's."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Lists have a limit."""
        yield from environment_problems(given)


def _one_entry_an_index(entries: list[IndexSpec]) -> list[IndexSpec]:
    return distinct(entries, [entry.index for entry in entries], ("index",), "the index")


class ReplicaSpec(Strict):
    """The replicas of one role."""

    count: int = Field(default=1, ge=1, le=MAX_REPLICAS, description="How many there are.")
    resources: Resources | None = Field(
        default=None,
        description="What each main container asks for; replaces the template's whole.",
    )
    environment: Environment | None = Field(
        default=None, description="The role's own placement, upon the run's."
    )
    template: PodTemplate | None = Field(
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
        default=None,
        max_length=MAX_OVERRIDES,
        description="Single replicas that differ, at most 1000.",
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """An override is about a replica that there is, and lists have a limit."""
        yield from index_problems(given)
        yield from environment_problems(given)
