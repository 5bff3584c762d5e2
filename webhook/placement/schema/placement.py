"""The model of a placement."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias, TypeVar, get_args

from pydantic import AfterValidator, ConfigDict, Field, PrivateAttr, WithJsonSchema

from webhook.dns_names import MAX_SUBDOMAIN, is_subdomain
from webhook.placement.capacity import MODES, Mode
from webhook.placement.fallback import MOST_DISRUPTIONS
from webhook.placement.fields import BY_NAME, is_empty
from webhook.placement.schema.scheduling import (
    Affinity,
    Effect,
    Toleration,
    TopologySpreadConstraint,
    Weight,
)
from webhook.placement.schema.security import PodSecurityContext
from webhook.placement.schema.syntax import (
    KEY_PATTERN,
    MAX_KEY,
    MAX_LISTED,
    AnnotationKey,
    LabelKey,
    LabelValue,
    ObjectName,
    TaintKeys,
    label_value_fault,
    qualified_name_fault,
    span,
)
from webhook.strict import Problem, Strict, check, distinct, enum_field, optional, quoted

_ALL: Final = 100
MAX_PATTERNS: Final = 64
MAX_FROM: Final = 16
_CAPACITY: Final = (
    "The pod's modes of capacity classes. Defaults apply unless the pod requests a mode of the "
    "class itself. Overrides apply, and remove what contradicts them. Requirements reject a "
    "contradiction."
)
_NO_NODE_NAME = "policies may not set nodeName: it bypasses the scheduler and taints"
_NO_PATCH_STRATEGY = (
    "overrides and requirements have no patchStrategy: overrides win, requirements reject; "
    "it belongs to defaults"
)


class CapacitySetting(Strict):
    """One mode of one capacity class."""

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
        description="The name of a CapacityClass in the same policy set.",
    )
    mode: Annotated[Mode, enum_field(Mode)] = Field(
        description="Allow tolerates the class's taints. Prefer tolerates them and prefers the "
        "class's nodes, by weight; cluster autoscalers ignore preferences. "
        "Constrain tolerates them and requires the class's nodes. Prevent excludes "
        "the class's nodes, and removes tolerations that are for its taints alone. "
        "None changes nothing, and policies that come later cannot change that."
    )
    weight: Weight | None = optional(
        "The weight of the preference, from 1 to 100. The default is 50. Valid with "
        "mode Prefer only."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        mode = given.get("mode")
        if given.get("weight") is not None and mode in MODES and not Mode(mode).prefers:
            yield Problem(("weight",), f"is valid with mode {Mode.PREFER} only; the mode is {mode}")


class Fallback(Strict):
    """When replicas give up a class, and when they require it again. Give one trigger or both."""

    after_disruptions: int | None = optional(
        "Give up the class after this many lost nodes within `within`. Two nodes that are lost at "
        "once count once for replicas that restart together.",
        ge=1,
        le=MOST_DISRUPTIONS,
    )
    within: span("1m", "24h") | None = optional(  # type: ignore[valid-type]
        "The period in which losses count. Default: 24h. Range: 1m to 24h."
    )
    after_pending: span("1s", "24h") | None = optional(  # type: ignore[valid-type]
        "Give up the class when a replica has waited this long for a node of it. Range: 1s to 24h."
    )
    then: Literal["Allow", "Prevent"] = Field(
        default="Allow",
        description="The mode of the class meanwhile. Allow permits any node. Prevent excludes the "
        "class's nodes.",
    )
    return_after: span("1s", "24h") | None = optional(  # type: ignore[valid-type]
        "How long the fallback lasts. At the first start after it, the class is required again. "
        "Each further fallback lasts twice as long, up to 24h. Default: 2h. Range: 1s to 24h."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        counted = given.get("afterDisruptions") is not None
        if not counted and given.get("afterPending") is None:
            yield Problem(
                (), "needs afterDisruptions or afterPending: give one of the two, or both"
            )
        if given.get("within") is not None and not counted:
            yield Problem(("within",), "goes with afterDisruptions only: remove it, or give that")


class PolicyCapacity(CapacitySetting):
    """One mode of one capacity class, in a policy."""

    fallback: Fallback | None = optional(
        "When replicas give up the class. Valid with mode Constrain only, and only for pods of "
        "Fairlead's own controller."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().cross_check(given)
        mode = given.get("mode")
        if given.get("fallback") is not None and mode in MODES and not Mode(mode).requires:
            yield Problem(
                ("fallback",), f"is valid with mode {Mode.CONSTRAIN} only; the mode is {mode}"
            )


class SplitShare(PolicyCapacity):
    """The capacity of one share of a role's replicas."""

    mode: Annotated[Mode, enum_field(Mode)] = Field(
        default=Mode.CONSTRAIN,
        description="The mode of the class, as in capacity.",
    )
    count: int | None = optional(
        "The number of replicas in this share. Without count and percent, the share has the rest, "
        "and must be the last one.",
        ge=1,
        le=10_000,
    )
    percent: int | None = optional(
        "A percentage of the replicas that remain after all shares with count. The running total "
        "is rounded, so each share is less than one replica off. A role with one replica is in the "
        "first share whose running total reaches 50. The pods need the label "
        "fairlead.dev/replicas, or one that a RunSource names. Pods without it are in the last "
        "share.",
        ge=1,
        le=100,
    )

    # In the split that was written, of a share that stands alone.
    _position: int = PrivateAttr(default=0)

    @property
    def position(self) -> int:
        return self._position

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        yield from super().cross_check({"mode": Mode.CONSTRAIN.value, **given})
        if given.get("count") is not None and given.get("percent") is not None:
            yield Problem(("percent",), "count is given too: keep one of the two")


def _split_problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    split, capacity = (
        [entry if isinstance(entry, dict) else {} for entry in given.get(name) or ()]
        if isinstance(given.get(name), list)
        else []
        for name in ("split", "capacity")
    )
    percents = 0
    for at, share in enumerate(split):
        counted, percent = share.get("count") is not None, share.get("percent")
        sized = counted or percent is not None
        before, percents = percents, percents + (percent if isinstance(percent, int) else 0)
        message = ""
        if at == len(split) - 1:
            message = "the last share has the rest: leave out count and percent" if sized else ""
        elif not sized:
            message = "only the last share has the rest: give count or percent"
        elif counted and before:
            message = "shares with count come before those with percent: move it up"
        elif percents > _ALL:
            message = f"the percentages are {percents} together: at most {_ALL} are"
        if message:
            yield Problem(("split", at), message)
        if share.get("class") in [entry.get("class") for entry in capacity]:
            yield Problem(("split", at, "class"), "is in capacity too: keep one of the two")


_Setting = TypeVar("_Setting", bound=CapacitySetting)


def _one_setting_a_class(settings: list[_Setting]) -> list[_Setting]:
    return distinct(settings, [setting.class_name for setting in settings], ("class",), "the class")


def _one_constraint_a_pair(
    constraints: list[TopologySpreadConstraint],
) -> list[TopologySpreadConstraint]:
    pairs = [constraint.pair for constraint in constraints]
    return distinct(constraints, pairs, (), "the pair of topologyKey and whenUnsatisfiable")


class PlacementModel(Strict):
    """The placement fields of a pod, as the environment of a Run, a role or a replica has them."""

    patch_strategy: Literal["PostMerge", "PreMerge", "Replace", "IsNull"] | None = optional(
        "How this environment merges with the one before it. PostMerge (the "
        "default): this one wins, key by key. PreMerge: the earlier one wins, key "
        "by key. Replace: each field that this one has replaces the earlier one's. "
        "IsNull: this one sets only fields that the earlier one leaves unset."
    )
    node_selector: dict[LabelKey, LabelValue] | None = optional(
        "Labels that the node must have. Defaults add missing keys, except keys that the pod's "
        "required node affinity names. Overrides set the keys. Requirements add a key if the pod "
        "says nothing about it, and reject another value."
    )
    tolerations: list[Toleration] | None = optional(
        "Taints that the pod tolerates. A toleration is added unless the pod's own "
        "tolerations cover it."
    )
    affinity: Affinity | None = optional(
        "Rules that attract the pod to nodes and other pods, or keep it away from them. Defaults "
        "set the lists that the pod does not have. Overrides and requirements narrow the required "
        "node affinity, and append to the other lists."
    )
    topology_spread_constraints: (
        Annotated[list[TopologySpreadConstraint], AfterValidator(_one_constraint_a_pair)] | None
    ) = optional(
        "How pods are spread across domains, such as zones. Defaults apply only if "
        "the pod has no constraint. Overrides and requirements replace the "
        "constraint with the same topologyKey and whenUnsatisfiable, or append one."
    )
    node_name: ObjectName | None = optional(
        "The name of the node. It bypasses the scheduler and taints. Policies cannot set it."
    )
    priority_class_name: ObjectName | None = optional(
        "The PriorityClass. Defaults set it if it is unset, or is the cluster's "
        "default class. Overrides set it. Requirements reject another class."
    )
    scheduler_name: str | None = optional(
        "The scheduler. Defaults set it if it is unset, or is default-scheduler. "
        "Overrides set it. Requirements reject another scheduler.",
        min_length=1,
    )
    runtime_class_name: ObjectName | None = optional(
        "The RuntimeClass. It is set if it is unset. Overrides and requirements "
        "reject another one, because its overhead is already in the pod."
    )
    termination_grace_period_seconds: int | None = optional(
        "The time in seconds that the pod has to shut down. Defaults set it if it is unset or 30. "
        "Overrides set it. Requirements are a maximum: they lower it if it is unset or 30, and "
        "reject a higher value. A 30 that the author writes counts as unset: the API server writes "
        "30 into a pod without a value before any policy sees it. Clouds shorten this time on "
        "nodes that they take away, such as spot nodes.",
        ge=0,
        le=2**63 - 1,
    )
    security_context: PodSecurityContext | None = optional(
        "The pod's security context. It is merged key by key, like nodeSelector."
    )
    labels: dict[LabelKey, LabelValue] | None = optional(
        "Labels of the pod. Missing keys are added. A label that the pod has is never changed, "
        "because a controller could lose the pod. A label that takes the pod out of its owner's "
        "selector rejects the pod. Requirements reject another value."
    )
    annotations: dict[AnnotationKey, str] | None = optional(
        "Annotations of the pod. Defaults add missing keys. Overrides set the keys. "
        "Requirements add missing keys, and reject another value."
    )
    capacity: Annotated[list[CapacitySetting], AfterValidator(_one_setting_a_class)] | None = (
        optional(_CAPACITY)
    )

    @property
    def is_empty(self) -> bool:
        """Whether no field is set, except perhaps patchStrategy."""
        given = (name for name in type(self).model_fields if name != "patch_strategy")
        return all(is_empty(getattr(self, name)) for name in given)


class _FromNamespace(Strict):
    """A value that a label of the pod's namespace gives."""

    namespace_label: LabelKey = Field(
        description="The label of the pod's namespace whose value is used."
    )
    default: Annotated[LabelValue, Field(min_length=1)] | None = optional(
        "The value if the namespace does not have the label, or has it without a value. Without "
        "this, defaults leave the entry out; overrides and requirements reject the pod."
    )


class NodeSelectorFrom(_FromNamespace):
    """A nodeSelector key whose value is a label of the pod's namespace."""

    key: LabelKey = Field(description="The label of the node.")


class TolerationFrom(_FromNamespace):
    """A toleration whose value is a label of the pod's namespace."""

    key: LabelKey = Field(description="The taint's key.")
    effect: Effect = Field(description="The taint's effect.")


def _one_entry_a_key(entries: list[NodeSelectorFrom]) -> list[NodeSelectorFrom]:
    return distinct(entries, [entry.key for entry in entries], ("key",), "the key")


def _one_entry_a_taint(entries: list[TolerationFrom]) -> list[TolerationFrom]:
    taints = [(entry.key, entry.effect) for entry in entries]
    return distinct(entries, taints, (), "the pair of key and effect")


def _keys_given_twice(given: Mapping[str, Any]) -> Iterator[Problem]:
    entries, fixed = given.get("nodeSelectorFrom"), given.get("nodeSelector")
    for at, entry in enumerate(entries if isinstance(entries, list) else ()):
        key = entry.get("key") if isinstance(entry, dict) else None
        if isinstance(fixed, dict) and key in fixed:
            yield Problem(
                ("nodeSelectorFrom", at, "key"), "is in nodeSelector too: keep one of the two"
            )


_Capacities: TypeAlias = Annotated[list[PolicyCapacity], AfterValidator(_one_setting_a_class)]


class PolicyPlacement(PlacementModel):
    """The placement fields of one part of a policy."""

    # Narrower than in the base, which mypy rejects of a list: models are never changed.
    capacity: _Capacities | None = optional(  # type: ignore[assignment]
        _CAPACITY
    )

    node_selector_from: (
        Annotated[
            list[NodeSelectorFrom], Field(max_length=MAX_FROM), AfterValidator(_one_entry_a_key)
        ]
        | None
    ) = optional("nodeSelector keys with a label of the pod's namespace as their value.")
    tolerations_from: (
        Annotated[
            list[TolerationFrom], Field(max_length=MAX_FROM), AfterValidator(_one_entry_a_taint)
        ]
        | None
    ) = optional("Tolerations (operator Equal) with a label of the pod's namespace as their value.")
    split: Annotated[list[SplitShare], Field(min_length=1, max_length=16)] | None = optional(
        "Capacity by share of each role's replicas, in the order of their indexes: "
        "first the shares with count, then those with percent, then one with the rest. A pod "
        "without an index is in the last share."
    )

    def of_share(self, at: int) -> Self:
        if not self.split:
            return self
        share = self.split[at].model_copy()
        share._position = at  # noqa: SLF001  of this module
        return self.model_copy(update={"split": [share]})

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        yield from _split_problems(given)
        yield from _keys_given_twice(given)


class Defaults(PolicyPlacement):
    """Values for what the pod leaves unset. The pod's own values win."""

    refused: ClassVar[Mapping[str, str]] = {"nodeName": _NO_NODE_NAME}

    patch_strategy: Literal["PreMerge", "IsNull"] | None = optional(
        "PreMerge (the default) adds missing keys. IsNull sets a field only if the pod has nothing "
        "in it. If two policies set one key, the first decides on it, also where IsNull then "
        "leaves the pod as it is."
    )


class PlacementSettings(PolicyPlacement):
    """The placement fields of overrides and of requirements."""

    refused: ClassVar[Mapping[str, str]] = {
        "nodeName": _NO_NODE_NAME,
        "patchStrategy": _NO_PATCH_STRATEGY,
    }


class TolerationPattern(Strict):
    """Tolerations that pods may have: those that are about no other taints than these."""

    key: TaintKeys = Field(
        description="The taint's key. With a * at the end: every key that begins so. * alone: "
        "every key, also a toleration without one.",
    )
    value: LabelValue | None = optional(
        "The taint's value, for operator Equal. Without it: every value, and Exists."
    )
    effect: Effect | None = optional(
        "The taint's effect. Without it: every effect, and tolerations without one."
    )


class AllowedTolerations(Strict):
    """The tolerations that pods may have of their own."""

    patterns: list[TolerationPattern] = Field(
        max_length=MAX_PATTERNS,
        description="A toleration is allowed if one of them covers it. Those that the API server "
        "adds, and those that policies add, are always allowed. An empty list allows no other.",
    )
    remove: bool = Field(
        default=False,
        description="Take other tolerations from the pod, with a warning, and do not reject it. A "
        "pod with nodeName is rejected in any case.",
    )


JudgedField: TypeAlias = Literal[
    "nodeSelector", "priorityClassName", "schedulerName", "runtimeClassName"
]
_KEYED: Final = "nodeSelector"


_Value = Annotated[
    str,
    check(
        lambda text: not label_value_fault(text) or is_subdomain(text),
        lambda text: f"{quoted(text)} is neither a label value nor the name of an object",
    ),
    WithJsonSchema({"type": "string", "pattern": "^[-A-Za-z0-9_.]*$", "maxLength": MAX_SUBDOMAIN}),
]


# Empty in a stored object: the keys of a list that server-side apply merges have a default.
_KeyOrNone = Annotated[
    str,
    check(
        lambda text: not text or not qualified_name_fault(text),
        lambda text: f"{quoted(text)} is not a label key: {qualified_name_fault(text)}",
    ),
    WithJsonSchema(
        {"type": "string", "pattern": f"^({KEY_PATTERN.strip('^$')})?$", "maxLength": MAX_KEY}
    ),
]


class AllowedValues(Strict):
    """The values that a pod's author may give a field."""

    field: JudgedField = Field(description="The field of the pod's spec.")
    key: _KeyOrNone = Field(
        default="", description="The key in nodeSelector; no other field has one."
    )
    one_of: list[_Value] = Field(
        min_length=1, max_length=MAX_LISTED, description="The allowed values."
    )
    stated: bool = Field(
        default=False,
        description="Reject a pod whose author says nothing about the field. By default, such a "
        "pod passes.",
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Require a key where the field has keys, and nowhere else."""
        field, key = given.get("field"), given.get("key")
        if field == _KEYED and not key:
            yield Problem(("key",), f"is required: the key in {_KEYED}")
        elif field in get_args(JudgedField) and field != _KEYED and key:
            yield Problem(("key",), f"{field} has no keys; remove it")


def _one_list_a_field(listed: list[AllowedValues]) -> list[AllowedValues]:
    keys = [(item.field, item.key) for item in listed]
    return distinct(listed, keys, (), "the field")


class Requirements(PlacementSettings):
    """The placement fields of requirements."""

    values: Annotated[list[AllowedValues], AfterValidator(_one_list_a_field)] | None = optional(
        "The values that authors may choose among. A pod with another value is rejected. Values "
        "that policies set are always allowed.",
        min_length=1,
        max_length=MAX_LISTED,
    )

    allowed_tolerations: AllowedTolerations | None = optional(
        "The tolerations that pods may have of their own. A pod with another one is rejected. If "
        "several policies match, all of them must allow it. A capacity class that the pod asks for "
        "by annotation must be allowed too."
    )


# The fields of policies that a pod has, or asks for by annotation; a split is none.
SETTABLE: Final = tuple(name for name in PlacementSettings.outer_names() if name in BY_NAME)
