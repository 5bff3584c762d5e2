"""The kinds of document that policies are written in: PlacementPolicy, CapacityClass, and all."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field

from webhook import names
from webhook.placement.schema.limits import crowded
from webhook.placement.schema.placement import (
    CapacitySetting,
    Defaults,
    PlacementModel,
    PlacementSettings,
)
from webhook.placement.schema.selectors import LabelSelectorRequirement
from webhook.placement.schema.syntax import LabelKey, LabelValue, ObjectName
from webhook.placement.schema.taints import Taint
from webhook.placement.settings import PARTS as IN_ORDER
from webhook.placement.settings import Part
from webhook.policy.exception_model import PlacementException
from webhook.policy.findings import Path
from webhook.policy.match_model import Match, NamespaceGlob
from webhook.policy.metadata_model import Metadata
from webhook.strict import Problem, Strict, own_error

PARTS: Final = ("defaults", "overrides", "requirements")


def _not_empty(match: Match) -> Match:
    if match.is_empty:
        raise own_error("an empty block would exclude every pod; give a condition, or remove it")
    return match


ExcludeBlock = Annotated[Match, AfterValidator(_not_empty)]


class Rollout(Strict):
    """Where a policy is enforced already; elsewhere it is under Audit."""

    namespaces: list[NamespaceGlob] = Field(
        min_length=1,
        description="Namespaces in which it is enforced; * stands for any text and ? for one "
        "character. In all others it decides and records, and changes nothing.",
    )


class PolicySpec(Strict):
    """Which pods a policy matches, and the placement that it gives them."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [part]} for part in PARTS]},
    )

    description: str | None = Field(
        default=None, description="What the policy is for, in a sentence or two."
    )
    enforcement: Literal["Enforce", "Audit"] = Field(
        default="Enforce",
        description="Enforce changes and rejects pods. Audit decides and records, and changes "
        "nothing.",
    )
    rollout: Rollout | None = Field(
        default=None,
        description="Where the policy is enforced already, while it is rolled out. Left out: "
        "wherever it matches.",
    )
    priority: int = Field(
        default=0,
        ge=-(2**31),
        le=2**31 - 1,
        description="Higher goes first, and the first wins a key that two policies want. Equal "
        "priorities go by name.",
    )
    match: Match | None = Field(
        default=None,
        description="The pods that the policy is for. Left out or empty, the pods of every run.",
    )
    exclude: list[ExcludeBlock] = Field(
        default_factory=list,
        description="Pods that the policy is not for, though they match: one block that holds "
        "excludes.",
    )
    defaults: Defaults | None = Field(
        default=None, description="What is filled in: what the pod says itself wins."
    )
    overrides: PlacementSettings | None = Field(
        default=None, description="What is changed: what the policy says wins."
    )
    requirements: PlacementSettings | None = Field(
        default=None,
        description="What must be: filled in where the pod is silent; a pod that says otherwise "
        "is rejected, with the reason.",
    )

    def parts(self) -> Iterator[tuple[Part, PlacementModel]]:
        """Those that say something, in the order in which they are folded."""
        for part in IN_ORDER:
            placement: PlacementModel | None = getattr(self, part)
            if placement is not None:
                yield part, placement

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Some part must say something, and none may write what Fairlead itself reads."""
        yield from crowded(dict(given), ())
        if given.get("rollout") and given.get("enforcement") == "Audit":
            yield Problem(
                ("rollout",),
                "means nothing under enforcement: Audit, which changes no pod anywhere; leave out "
                "one of the two",
            )
        parts = {name: given.get(name) for name in PARTS}
        if not any(parts.values()):
            yield Problem((), "needs at least one of defaults, overrides and requirements")
        for part, settings in parts.items():
            for field in ("labels", "annotations"):
                written = settings.get(field) if isinstance(settings, dict) else None
                for key in written if isinstance(written, dict) else ():
                    if isinstance(key, str) and key.startswith(names.PREFIX):
                        yield Problem(
                            (part, field, key),
                            f"policies may not write {field} under {names.PREFIX}: "
                            "Fairlead reads them itself",
                        )


class PlacementPolicy(Strict):
    """A policy: which pods it matches, and the placement that it gives them."""

    api_version: Literal["fairlead.dev/v1alpha1"] = Field(description="The version of this form.")
    kind: Literal["PlacementPolicy"] = Field(description="The kind of this document.")
    metadata: Metadata = Field(description="The policy's name.")
    spec: PolicySpec = Field(description="What the policy says.")
    status: Any = Field(default=None, exclude=True, description="Set by Fairlead; not read.")

    @property
    def name(self) -> str:
        """The policy's name, unique among policies."""
        return self.metadata.name

    def capacity_settings(self) -> Iterator[tuple[Path, CapacitySetting]]:
        """What it wants of classes, requirements first, each with where it names the class."""
        for part, placement in self.spec.parts():
            for at, setting in enumerate(placement.capacity or ()):
                yield ("spec", part, "capacity", at, "class"), setting


class Shape(Strict):
    """One way in which a node of the class looks: all of its labels and expressions hold."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["labels"]}, {"required": ["matchExpressions"]}]},
    )

    labels: dict[LabelKey, LabelValue] | None = Field(
        default=None, description="Labels that the node has."
    )
    match_expressions: list[LabelSelectorRequirement] | None = Field(
        default=None,
        description="Expressions on the node's labels, where a label's absence tells.",
    )
    taints: list[Taint] | None = Field(
        default=None, description="Taints that the node has; the modes tolerate them."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Without a label or an expression nothing could be required, or negated."""
        if not given.get("labels") and not given.get("matchExpressions"):
            yield Problem(
                (), "needs a label or an expression: taints alone do not tell a node of the class"
            )


class CapacityClassSpec(Strict):
    """The nodes of a class: those of one of the shapes, or all but those of another class."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["nodes"]}, {"required": ["complementOf"]}]},
    )

    nodes: list[Shape] | None = Field(
        default=None,
        min_length=1,
        description="The shapes of the class's nodes; any one of them describes a node of it.",
    )
    complement_of: ObjectName | None = Field(
        default=None, description="Another class: whatever is not of that one is of this one."
    )
    autoscaled: bool | None = Field(
        default=None,
        description="Whether its nodes are made on demand: that there is none at the moment is "
        "then no alarm.",
    )
    interruptible: bool | None = Field(
        default=None,
        description="Whether its nodes may be taken away at any time, as spot instances are. "
        "Where no class says so, any node may.",
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """A class is described, or is the rest of one that is described; not both."""
        yield from crowded(dict(given), ())
        shapes, other = given.get("nodes"), given.get("complementOf")
        if shapes is None and other is None:
            yield Problem((), "needs either nodes or complementOf")
        elif shapes is not None and other is not None:
            yield Problem((), "has both nodes and complementOf; keep one of the two")


class CapacityClass(Strict):
    """A named kind of node, such as spot, told by node labels and taints."""

    api_version: Literal["fairlead.dev/v1alpha1"] = Field(description="The version of this form.")
    kind: Literal["CapacityClass"] = Field(description="The kind of this document.")
    metadata: Metadata = Field(description="The class's name.")
    spec: CapacityClassSpec = Field(description="How the class's nodes are told from others.")
    status: Any = Field(default=None, exclude=True, description="Set by Fairlead; not read.")

    @property
    def name(self) -> str:
        """The class's name, unique among classes."""
        return self.metadata.name

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """No class is what it is not."""
        metadata, spec = given.get("metadata"), given.get("spec")
        if isinstance(metadata, dict) and isinstance(spec, dict):
            other = spec.get("complementOf")
            if isinstance(other, str) and other == metadata.get("name"):
                yield Problem(("spec", "complementOf"), "a class cannot be its own complement")


PolicyDocument: TypeAlias = PlacementPolicy | CapacityClass | PlacementException
KNOWN: Final[Mapping[str, type[PolicyDocument]]] = {
    "PlacementPolicy": PlacementPolicy,
    "CapacityClass": CapacityClass,
    "PlacementException": PlacementException,
}
