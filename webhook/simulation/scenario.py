"""The document Scenario: pools of nodes, what becomes of their nodes, and a program."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from pydantic import Field

from webhook.placement.schema.scheduling import Taint
from webhook.placement.schema.syntax import (
    LabelKey,
    LabelValue,
    ObjectName,
    Quantity,
    ResourceName,
    span,
)
from webhook.policy.document_parser import Forms
from webhook.policy.json_schema import document_schema
from webhook.policy.reader import read_files
from webhook.strict import Problem, Strict

KIND: Final = "Scenario"
_MAX_DURATION: Final = "8760h"
_Span: Any = span("1s", _MAX_DURATION)
_SpanOrZero: Any = span("0s", _MAX_DURATION)


class Batches(Strict):
    """Interruptions that take many nodes at once."""

    every: _Span = Field(description="The mean time between two of them.")
    percent: int = Field(
        ge=1, le=100, description="The probability that one takes a node, in percent."
    )


class SoldOut(Strict):
    """Times in which no node can be made."""

    every: _Span = Field(description="The mean time from the end of one to the next.")
    lasts: _Span = Field(description="How long each is.")


class FixedEvent(Strict):
    """Something that happens at a given time, in each repetition."""

    at: _SpanOrZero = Field(description="The time, from the start.")
    lose: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="The number of nodes that are lost, the oldest first.",
    )
    sold_out: _Span | None = Field(
        default=None, description="How long no node can be made from then on."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Check that one thing happens."""
        if (given.get("lose") is None) == (given.get("soldOut") is None):
            yield Problem((), "needs either lose or soldOut")


class Pool(Strict):
    """Nodes that an autoscaler makes when a pod needs one. Each runs one replica."""

    name: ObjectName = Field(description="The pool's name.")
    labels: dict[LabelKey, LabelValue] | None = Field(
        default=None, description="The labels of its nodes, by which they are of capacity classes."
    )
    taints: list[Taint] | None = Field(default=None, description="The taints of its nodes.")
    allocatable: dict[ResourceName, Quantity] | None = Field(
        default=None,
        description="What a pod can request of a node. Without it requests are not considered.",
    )
    nodes: int = Field(ge=1, le=10_000, description="The most nodes at a time.")
    boot: _SpanOrZero = Field(
        default="2m",
        description="The time until a new node is there. With 0s, they all are from the start.",
    )
    price: float = Field(
        default=1.0,
        ge=0,
        le=100,
        description="What a node costs, relative to one on demand. The autoscaler takes the "
        "cheapest pool that admits a pod, after what the pod prefers.",
    )
    lifetime: _Span | None = Field(
        default=None,
        description="The mean time until a node is lost. Without it no node is lost by itself.",
    )
    batches: Batches | None = Field(default=None, description="Interruptions of many nodes.")
    sold_out: SoldOut | None = Field(
        default=None, description="Times in which no node of the pool can be made."
    )
    events: list[FixedEvent] | None = Field(
        default=None, max_length=1000, description="What happens at given times."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Check that a node has no less than nothing."""
        for name, amount in (given.get("allocatable") or {}).items():
            if str(amount).startswith("-"):
                yield Problem(("allocatable", name), f"{amount} is less than 0")


class Program(Strict):
    """A program that makes progress only while all replicas run."""

    work: _Span = Field(description="The time that it takes without interruptions.")
    checkpoint: _Span | None = Field(
        default=None,
        description="The time between two checkpoints. Without it, it begins again after each "
        "interruption.",
    )
    restart: _SpanOrZero = Field(
        default="0s", description="The time from when all replicas run until it makes progress."
    )


class ScenarioRun(Strict):
    """One of several runs that share the nodes."""

    name: ObjectName = Field(description="The Run's name.")
    at: _SpanOrZero = Field(default="0s", description="When it is created, from the start.")
    work: _Span | None = Field(
        default=None, description="What its program takes, if not as long as the others."
    )


class ScenarioMetadata(Strict):
    """The scenario's name."""

    name: ObjectName = Field(description="The name.")


class ScenarioSpec(Strict):
    """What a simulation assumes."""

    pools: list[Pool] = Field(min_length=1, max_length=50, description="The pools of nodes.")
    program: Program = Field(description="The program of the runs.")
    runs: list[ScenarioRun] | None = Field(
        default=None,
        max_length=100,
        description="Runs that begin later than the others, or work for another time.",
    )
    limit: _Span = Field(
        default="720h", description="A run that takes longer than this is given up."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Check that pools differ in their names, and runs."""
        for field, noun in (("pools", "pool"), ("runs", "run")):
            items = given.get(field)
            names = [item.get("name") if isinstance(item, dict) else None for item in items or ()]
            for at, name in enumerate(names):
                if name is not None and name in names[:at]:
                    yield Problem(
                        (field, at, "name"), f"{name} is also another {noun}; give it another name"
                    )


class Scenario(Strict):
    """The assumptions of `fairlead run simulate`."""

    api_version: Literal["fairlead.dev/v1alpha1"] = Field(
        description="The API version of this document."
    )
    kind: Literal["Scenario"] = Field(description="The kind of this document.")
    metadata: ScenarioMetadata = Field(description="Its name.")
    spec: ScenarioSpec = Field(description="What is assumed.")


_FORMS: Final = Forms({KIND: Scenario}, "scenarios")


def parse(file: str, content: bytes) -> tuple[Scenario, ...]:
    """Return the scenarios of one file. Raises InvalidDocuments with every finding."""
    return tuple(document.model for document in read_files({file: content}, _FORMS).sound())


def schema() -> dict[str, Any]:
    """Return the schema of a Scenario document, draft 2020-12."""
    return document_schema(KIND, Scenario.model_json_schema(by_alias=True))
