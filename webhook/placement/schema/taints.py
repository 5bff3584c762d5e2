"""Taints of nodes, and the tolerations of pods for them."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from pydantic import ConfigDict, Field

from webhook.placement.schema.syntax import LabelKey, LabelValue
from webhook.strict import Problem, Strict

Effect: TypeAlias = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class Taint(Strict):
    """A taint of a node: it keeps away, or drives out, the pods that do not tolerate it."""

    key: LabelKey = Field(description="The taint's key.")
    value: LabelValue | None = Field(
        default=None, description="The taint's value; left out, the taint has none."
    )
    effect: Effect = Field(
        description="What happens to pods without a toleration: NoSchedule keeps new ones away, "
        "PreferNoSchedule does so where it can, NoExecute also drives out running ones."
    )


class Toleration(Strict):
    """Lets a pod onto nodes that have a taint. It draws the pod to none."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["key"]},
                {"required": ["operator"], "properties": {"operator": {"const": "Exists"}}},
            ],
            "if": {"required": ["tolerationSeconds"]},
            "then": {"required": ["effect"], "properties": {"effect": {"const": "NoExecute"}}},
        },
    )

    key: LabelKey | None = Field(
        default=None,
        description="The taint's key. Left out, with operator Exists, every taint is tolerated.",
    )
    operator: Literal["Exists", "Equal"] | None = Field(
        default=None,
        description="Equal (the default) tolerates the taint with this value; Exists with any.",
    )
    value: LabelValue | None = Field(
        default=None, description="The taint's value, for Equal; Exists takes none."
    )
    effect: Effect | None = Field(
        default=None, description="The taint's effect. Left out, every effect is tolerated."
    )
    toleration_seconds: int | None = Field(
        default=None,
        ge=0,
        le=2**63 - 1,
        description="How long the pod stays on a node that gets the taint, in seconds; left out, "
        "for ever. Only with effect NoExecute. As a default it replaces only what the API "
        "server's DefaultTolerationSeconds plugin put there; as an override or a requirement "
        "this toleration comes before any other that covers the taint.",
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """As the API server's ValidateTolerations has it."""
        operator = given.get("operator")
        if operator == "Exists" and given.get("value"):
            yield Problem(("value",), "Exists takes no value; remove it, or use Equal")
        if operator in (None, "Equal") and given.get("key") is None:
            yield Problem(
                (), "a toleration without a key needs operator Exists, and tolerates every taint"
            )
        if given.get("tolerationSeconds") is not None and (
            given.get("effect") in (None, "NoSchedule", "PreferNoSchedule")
        ):
            yield Problem(
                ("tolerationSeconds",), "goes with effect NoExecute only; set it, or remove this"
            )
