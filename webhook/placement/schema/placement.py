"""The placement schema: what may be said about where a pod runs and how it is treated there."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, ConfigDict, Field

from webhook.placement.capacity import MODES, Mode
from webhook.placement.fields import says_nothing
from webhook.placement.schema.affinity import Affinity, Weight
from webhook.placement.schema.security import PodSecurityContext
from webhook.placement.schema.spread import TopologySpreadConstraint
from webhook.placement.schema.syntax import AnnotationKey, LabelKey, LabelValue, ObjectName
from webhook.placement.schema.taints import Toleration
from webhook.strict import Problem, Strict, distinct, words_of

_NO_NODE_NAME = "policies may not set nodeName: it passes by the scheduler and by taints"
_NO_PATCH_STRATEGY = (
    "overrides and requirements have no patchStrategy: overrides win, requirements reject; "
    "it belongs to defaults"
)


class CapacitySetting(Strict):
    """What a pod has to do with one capacity class."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"required": ["weight"]},
            "then": {"properties": {"mode": {"const": Mode.PREFER.value}}},
        },
    )

    class_name: ObjectName = Field(
        # `alias` alone would make `class` the name in code too, where it cannot be written.
        validation_alias="class",
        serialization_alias="class",
        description="The name of a CapacityClass of the same policy set.",
    )
    mode: Annotated[Mode, words_of(Mode)] = Field(
        description="Allow tolerates the class's taints. Prefer also prefers its nodes, by "
        "weight; cluster autoscalers ignore preferences. Constrain tolerates, and requires its "
        "nodes. Prevent keeps the pod off its nodes, and takes away tolerations of its taints "
        "alone. None leaves the pod alone, whatever later policies say of the class."
    )
    weight: Weight | None = Field(
        default=None,
        description="How much the preference counts, from 1 to 100, 50 if left out. Only with "
        "mode Prefer.",
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """A weight means nothing beside a mode that is not a preference."""
        mode = given.get("mode")
        if given.get("weight") is not None and mode in MODES and not Mode(mode).prefers:
            yield Problem(("weight",), f"goes with mode {Mode.PREFER} only; the mode is {mode}")


def _one_setting_a_class(settings: list[CapacitySetting]) -> list[CapacitySetting]:
    return distinct(settings, [setting.class_name for setting in settings], ("class",), "the class")


def _one_constraint_a_pair(
    constraints: list[TopologySpreadConstraint],
) -> list[TopologySpreadConstraint]:
    pairs = [constraint.pair for constraint in constraints]
    return distinct(constraints, pairs, (), "the pair of topologyKey and whenUnsatisfiable")


class PlacementModel(Strict):
    """The placement fields of a pod, as the environment of a run, a role or a replica has them."""

    patch_strategy: Literal["PostMerge", "PreMerge", "Replace", "IsNull"] | None = Field(
        default=None,
        description="What this layer does to the one before it. PostMerge (the default): this "
        "one wins, key by key. PreMerge: the earlier wins. Replace: field by field. IsNull: only "
        "fields of which the earlier says nothing.",
    )
    node_selector: dict[LabelKey, LabelValue] | None = Field(
        default=None,
        description="Labels that the node must have. Defaults add the keys that are missing, and "
        "stand back where the pod's required affinity names the key; overrides set the key; "
        "requirements fill it where the pod is silent, and reject another value.",
    )
    tolerations: list[Toleration] | None = Field(
        default=None,
        description="Taints that the pod tolerates. Those that the pod's own do not yet cover "
        "are added.",
    )
    affinity: Affinity | None = Field(
        default=None,
        description="What draws the pod to nodes and to other pods, or keeps it from them. "
        "Defaults fill the lists of which the pod has none; overrides and requirements narrow "
        "the required node affinity, and append to the other lists.",
    )
    topology_spread_constraints: (
        Annotated[list[TopologySpreadConstraint], AfterValidator(_one_constraint_a_pair)] | None
    ) = Field(
        default=None,
        description="How pods are spread over places. Defaults apply only if the pod has none; "
        "overrides and requirements replace the constraint of the same topologyKey and "
        "whenUnsatisfiable, or append.",
    )
    node_name: ObjectName | None = Field(
        default=None,
        description="The node itself. It passes by the scheduler and by taints: the "
        "environment's alone.",
    )
    priority_class_name: ObjectName | None = Field(
        default=None,
        description="The PriorityClass. Defaults set it where it is unset, or still the "
        "cluster's default class; overrides set it; requirements reject another.",
    )
    scheduler_name: str | None = Field(
        default=None,
        min_length=1,
        description="The scheduler. Defaults set it where it is unset or default-scheduler; "
        "overrides set it; requirements reject another.",
    )
    runtime_class_name: ObjectName | None = Field(
        default=None,
        description="The RuntimeClass. It is set where it is unset. Overrides and requirements "
        "reject another, since the runtime's overhead is already in the pod.",
    )
    termination_grace_period_seconds: int | None = Field(
        default=None,
        ge=0,
        le=2**63 - 1,
        description="How long the pod may take to end after it is told to, in seconds. Defaults "
        "set it where it is unset or 30; overrides set it; requirements are a maximum: they lower "
        "it where it is unset or 30, and reject more. The API server writes 30 into a pod that "
        "has none before any policy sees it, so an author who writes exactly 30 counts as one "
        "who wrote nothing. Clouds cut it on nodes that they take away, such as spot nodes.",
    )
    security_context: PodSecurityContext | None = Field(
        default=None,
        description="The pod's security context. Merged key by key, as nodeSelector.",
    )
    labels: dict[LabelKey, LabelValue] | None = Field(
        default=None,
        description="Labels of the pod. Missing keys are added; a label that is there is never "
        "changed, or a controller would lose its pods. Requirements reject another value.",
    )
    annotations: dict[AnnotationKey, str] | None = Field(
        default=None,
        description="Annotations of the pod. Defaults add the keys that are missing; overrides "
        "set the key; requirements fill it, and reject another value.",
    )
    capacity: Annotated[list[CapacitySetting], AfterValidator(_one_setting_a_class)] | None = Field(
        default=None,
        description="What the pod has to do with capacity classes. Defaults apply unless the pod "
        "speaks of the class itself; overrides apply, and drop what contradicts them; "
        "requirements reject a contradiction.",
    )

    @property
    def is_empty(self) -> bool:
        """Whether nothing is said but, perhaps, a patch strategy."""
        given = (name for name in type(self).model_fields if name != "patch_strategy")
        return all(says_nothing(getattr(self, name)) for name in given)


class Defaults(PlacementModel):
    """What is filled in: what the pod says itself wins."""

    refused: ClassVar[Mapping[str, str]] = {"nodeName": _NO_NODE_NAME}

    patch_strategy: Literal["PreMerge", "IsNull"] | None = Field(
        default=None,
        description="PreMerge (the default) fills in key by key. IsNull fills a field only where "
        "the pod has nothing at all in it.",
    )


class PlacementSettings(PlacementModel):
    """What an override or a requirement wants: the placement schema without a strategy."""

    refused: ClassVar[Mapping[str, str]] = {
        "nodeName": _NO_NODE_NAME,
        "patchStrategy": _NO_PATCH_STRATEGY,
    }
