"""The models of policies, teams' policies, capacity classes and exceptions.

One module, so that all documents of policies can be read in one place.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, WithJsonSchema

from webhook import names
from webhook.dns_names import MAX_SUBDOMAIN, SUBDOMAIN, is_subdomain
from webhook.placement.placement_setting import PARTS as IN_ORDER
from webhook.placement.placement_setting import Part
from webhook.placement.schema.placement import (
    Defaults,
    PlacementSettings,
    PolicyPlacement,
    Requirements,
    SplitShare,
)
from webhook.placement.schema.scheduling import Taint
from webhook.placement.schema.selectors import LabelSelectorRequirement
from webhook.placement.schema.syntax import (
    MAX_LISTED,
    AnnotationKey,
    LabelKey,
    LabelValue,
    Moment,
    ObjectName,
    crowded,
    span,
)
from webhook.placement.split import Share
from webhook.policy.findings import Path
from webhook.policy.match_model import Match, NamespaceGlob, NamespaceName
from webhook.strict import Problem, Strict, check, distinct, optional, own_error, quoted

PARTS: Final = ("defaults", "overrides", "requirements")
# All policies, including later ones.
ALL: Final = "*"
# Fits into a few lines of an explanation.
_LONGEST_REASON: Final = 500
POLICY_NAME_PATTERN: Final = rf"^(\*|{SUBDOMAIN})$"
REASON_PATTERN: Final = r"[^ \t\r\n]"


ExcludeBlock = Annotated[
    Match,
    check(
        lambda match: not match.is_empty,
        "an empty block would exclude every pod; give a condition, or remove it",
    ),
]


class Metadata(Strict):
    """The name of a document. Fields that the API server adds are accepted, and not read."""

    refused: ClassVar[Mapping[str, str]] = {
        "namespace": "policies and capacity classes hold for the whole cluster; remove it",
        "generateName": "give a name: policies of equal priority are ordered by name",
    }

    name: ObjectName = Field(description="The name, unique among documents of this kind.")
    labels: dict[LabelKey, LabelValue] | None = optional(
        "Labels of the document itself. Fairlead does not read them."
    )
    annotations: dict[AnnotationKey, str] | None = optional(
        "Annotations of the document itself. Fairlead does not read them."
    )
    uid: Any = optional("Set by the API server.")
    resource_version: Any = optional("Set by the API server.")
    generation: Any = optional("Set by the API server.")
    creation_timestamp: Any = optional("Set by the API server.")
    deletion_timestamp: Any = optional("Set by the API server.")
    deletion_grace_period_seconds: Any = optional("Set by the API server.")
    finalizers: Any = optional("For controllers of the API server.")
    owner_references: Any = optional("For controllers of the API server.")
    managed_fields: Any = optional("Set by the API server.")
    self_link: Any = optional("Set by old API servers.")


class PolicyObject(Strict):
    """A document of a policy set."""

    api_version: Literal["fairlead.dev/v1alpha1"] = Field(
        description="The API version of this document."
    )
    kind: str = Field(description="The kind of this document.")
    metadata: Metadata = Field(description="The document's name.")
    spec: Any = Field(description="What the document says.")
    status: Any = Field(default=None, exclude=True, description="Set by Fairlead, and not read.")

    @property
    def name(self) -> str:
        """Its name, unique among documents of its kind."""
        return self.metadata.name


class Rollout(Strict):
    """Where a policy is already enforced. Elsewhere it is under Audit."""

    namespaces: list[NamespaceGlob] = Field(
        min_length=1,
        description="Namespaces in which the policy is enforced. * stands for any text, ? for "
        "one character. In all other namespaces the policy is evaluated and "
        "recorded, and changes nothing.",
    )


class BoundedSpec(Strict):
    """The spec of an object, of which no list is longer than the API server accepts."""

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """No list is longer than the API server accepts."""
        yield from crowded(dict(given), ())


class PolicySpec(BoundedSpec):
    """Which pods a policy matches, and the placement that it gives them."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": [part]} for part in PARTS]},
    )

    description: str | None = optional("The purpose of the policy, in a sentence or two.")
    enforcement: Literal["Enforce", "Audit"] = Field(
        default="Enforce",
        description="Enforce changes and rejects pods. Audit evaluates and records, and changes "
        "nothing.",
    )
    rollout: Rollout | None = optional(
        "Where the policy is enforced during its rollout. Without it, the policy is "
        "enforced wherever it matches."
    )
    priority: int = Field(
        default=0,
        ge=-(2**31),
        le=2**31 - 1,
        description="Policies with a higher priority come first. If two policies set the same "
        "key, the first one wins. Policies of equal priority are ordered by name.",
    )
    match: Match | None = optional(
        "The pods that the policy applies to. Without it, or if it is empty: the pods of every run."
    )
    exclude: list[ExcludeBlock] = Field(
        default_factory=list,
        description="Pods that the policy does not apply to although they match. A pod is "
        "excluded if one of these blocks matches it.",
    )
    defaults: Defaults | None = optional(
        "Values for what the pod leaves unset. The pod's own values win."
    )
    overrides: PlacementSettings | None = optional("Values that replace the pod's own values.")
    requirements: Requirements | None = optional(
        "Values that the pod must have. They are set if the pod says nothing about "
        "them. A pod with other values is rejected, with the reason."
    )

    def parts(self) -> Iterator[tuple[Part, PolicyPlacement]]:
        """Yield the parts that are set, in the order in which they are folded."""
        for part in IN_ORDER:
            placement: PolicyPlacement | None = getattr(self, part)
            if placement is not None:
                yield part, placement

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """At least one part must be set, and none may write what Fairlead itself reads."""
        yield from super().cross_check(given)
        if given.get("rollout") and given.get("enforcement") == "Audit":
            yield Problem(
                ("rollout",),
                "means nothing under enforcement: Audit, which changes no pod anywhere; leave out "
                "one of the two",
            )
        parts = {name: given.get(name) for name in PARTS}
        if not any(parts.values()):
            yield Problem((), "needs at least one of defaults, overrides and requirements")
        split = [
            part for part, value in parts.items() if isinstance(value, dict) and "split" in value
        ]
        for part in split[1:]:
            yield Problem((part, "split"), f"is in {split[0]} too: write a policy for each")
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


class PlacementPolicy(PolicyObject):
    """A policy: which pods it matches, and the placement that it gives them."""

    kind: Literal["PlacementPolicy"] = Field(description="The kind of this document.")
    metadata: Metadata = Field(description="The policy's name.")
    spec: PolicySpec = Field(
        description="The pods that the policy matches, and the placement that it gives them."
    )

    def class_names(self) -> Iterator[tuple[Path, str]]:
        """Yield the classes of its capacity settings, requirements first, each with its path."""
        for part, placement in self.spec.parts():
            for field, listed in (("capacity", placement.capacity), ("split", placement.split)):
                for at, setting in enumerate(listed or ()):
                    yield ("spec", part, field, at, "class"), setting.class_name

    @property
    def split(self) -> Sequence[SplitShare]:
        """The shares of its only split; none without a split."""
        return next((part.split for _, part in self.spec.parts() if part.split), ())

    @property
    def shares(self) -> tuple[Share, ...]:
        """The sizes of these shares."""
        return tuple(Share(share.count, share.percent) for share in self.split)

    def variants(self) -> Sequence[Self]:
        """Return it as it is for each share of its split; it alone without a split."""
        variants = []
        for at in range(len(self.split)):
            parts: dict[str, object] = {
                part: placement.of_share(at) for part, placement in self.spec.parts()
            }
            variants.append(self.model_copy(update={"spec": self.spec.model_copy(update=parts)}))
        return variants or [self]


# The fields of a team's defaults.
TEAM_FIELDS: Final = (
    "nodeSelector",
    "tolerations",
    "affinity",
    "topologySpreadConstraints",
    "capacity",
)


class TeamMetadata(Metadata):
    """The name and the namespace of a team's policy. Fields that the API server adds are accepted,
    and not read."""

    refused: ClassVar[Mapping[str, str]] = {
        "generateName": "give a name: policies of a namespace are ordered by name"
    }

    namespace: NamespaceName = Field(description="The namespace whose pods the policy is for.")


class TeamMatch(Match):
    """Conditions on a pod of the policy's namespace. All must hold; without conditions, the pods
    of its every run match."""

    refused: ClassVar[Mapping[str, str]] = {
        "namespaces": "the policy matches in its own namespace only; remove it"
    }


class TeamDefaults(Defaults):
    """Values for what the pod leaves unset. The pod's own values win."""

    refused: ClassVar[Mapping[str, str]] = {
        name: f"a team's defaults have no such field, only {', '.join(TEAM_FIELDS)}; remove it"
        for name in ("patchStrategy", "nodeName", *Defaults.outer_names())
        if name not in TEAM_FIELDS
    }


class TeamPolicySpec(BoundedSpec):
    """Which pods of its namespace a team's policy matches, and what it sets by default."""

    description: str | None = optional("The purpose of the policy, in a sentence or two.")
    match: TeamMatch | None = optional(
        "The pods that the policy applies to. Without it, or if it is empty: the pods of every run "
        "in the namespace."
    )
    defaults: TeamDefaults = Field(
        description="Values for what the pod leaves unset. The pod's own values win, and so do "
        "requirements and overrides of PlacementPolicies. They win over defaults of "
        "PlacementPolicies."
    )


class NamespacedPlacementPolicy(PolicyObject):
    """A team's policy: defaults for the pods of its own namespace."""

    kind: Literal["NamespacedPlacementPolicy"] = Field(description="The kind of this document.")
    metadata: TeamMetadata = Field(description="The policy's name and namespace.")
    spec: TeamPolicySpec = Field(
        description="The pods that the policy matches, and what it sets by default."
    )

    @property
    def name(self) -> str:
        """Its namespace and name: team-a/gpu-pool. No PlacementPolicy can have such a name."""
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @cached_property
    def policy(self) -> PlacementPolicy:
        """The same as a PlacementPolicy, for the pods of this namespace."""
        namespaces = [self.metadata.namespace]
        return PlacementPolicy.model_construct(
            kind=names.POLICY_KIND,
            metadata=Metadata.model_construct(name=self.name),
            spec=PolicySpec.model_construct(
                description=self.spec.description,
                match=(self.spec.match or Match()).model_copy(update={"namespaces": namespaces}),
                defaults=self.spec.defaults,
            ),
        )

    @cached_property
    def inert(self) -> PlacementPolicy:
        """The same policy without effect."""
        spec = self.policy.spec.model_copy(update={"defaults": None})
        return self.policy.model_copy(update={"spec": spec})


class Shape(Strict):
    """One description of the class's nodes. All of its labels and expressions must match."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["labels"]}, {"required": ["matchExpressions"]}]},
    )

    labels: dict[LabelKey, LabelValue] | None = optional("Labels of the node.")
    match_expressions: list[LabelSelectorRequirement] | None = optional(
        "Expressions on the node's labels, for example that a label is absent."
    )
    taints: list[Taint] | None = optional(
        "Taints of the node. The modes Allow, Prefer and Constrain tolerate them."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Check that a shape has a label or an expression, which can be required or negated."""
        if not given.get("labels") and not given.get("matchExpressions"):
            yield Problem(
                (),
                "needs a label or an expression: taints alone do not identify a node of the class",
            )


# Conditions of a kubelet and a cloud's route controller (NodeConditionType, k8s.io/api/core/v1).
_OF_WELL_NODES: Final = {
    "Ready": "True",
    **dict.fromkeys(
        ("MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"), "False"
    ),
}


class Illness(Strict):
    """A condition by which a node is unhealthy, as node-problem-detector and others set it."""

    condition: str = Field(
        min_length=1, max_length=316, description="The type of the node's condition."
    )
    status: Literal["True", "False"] = Field(description="The status of an unhealthy node.")
    lasts: span("0s", "24h") = Field(  # type: ignore[valid-type]
        description="How long the condition lasts until the node is unhealthy. Range: 0s to 24h."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Check that nodes which work are not ill."""
        condition, status = given.get("condition"), given.get("status")
        if isinstance(condition, str) and _OF_WELL_NODES.get(condition) == status:
            what = f"every node that works has {condition}={status}; name another one"
            yield Problem(("condition",), what)


class CapacityClassSpec(BoundedSpec):
    """The nodes of a class: those that match a description, or all outside another class."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["nodes"]}, {"required": ["complementOf"]}]},
    )

    nodes: list[Shape] | None = optional(
        "Descriptions of the class's nodes. A node is in the class if it matches one of them.",
        min_length=1,
    )
    complement_of: ObjectName | None = optional(
        "The name of another class. All nodes outside that class are in this one."
    )
    autoscaled: bool | None = optional(
        "An autoscaler creates the class's nodes on demand. Fairlead then reports no problem while "
        "the class has no node."
    )
    interruptible: bool | None = optional(
        "The class's nodes can be taken away at any time, like spot instances. A node is "
        "interruptible if no class of it sets this."
    )
    max_termination_grace_period_seconds: int | None = optional(
        "The longest terminationGracePeriodSeconds of pods that can run only on the class's "
        "nodes, as spot instances stop them sooner. A longer one is lowered, and none is raised. "
        "It holds for pods that a policy matches.",
        ge=1,
        le=2**31 - 1,
    )
    lost_after: span("1m", "24h") | None = optional(  # type: ignore[valid-type]
        "Replace the pods of Runs on a node that is silent for this long, although their programs "
        "may still run. Default: never. Range: 1m to 24h."
    )
    unhealthy: list[Illness] | None = Field(
        default=None,
        min_length=1,
        max_length=16,
        description="The conditions of an unhealthy node. Pods of Runs on it are deleted with "
        "their grace period, and replaced on other nodes.",
    )
    relative_price: float | None = Field(
        default=None,
        ge=0.01,
        le=100,
        description="The price of a node of the class, relative to the same node on demand, such "
        "as 0.3. `fairlead run cost` uses it for its estimate.",
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Check that a class has nodes or complementOf, not both."""
        yield from super().cross_check(given)
        shapes, other = given.get("nodes"), given.get("complementOf")
        if shapes is None and other is None:
            yield Problem((), "needs either nodes or complementOf")
        elif shapes is not None and other is not None:
            yield Problem((), "has both nodes and complementOf; keep one of the two")


class CapacityClass(PolicyObject):
    """A named group of nodes, such as spot, identified by node labels and taints."""

    kind: Literal["CapacityClass"] = Field(description="The kind of this document.")
    metadata: Metadata = Field(description="The class's name.")
    spec: CapacityClassSpec = Field(description="How the class's nodes are identified.")

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """Check that a class is not its own complement."""
        metadata, spec = given.get("metadata"), given.get("spec")
        if isinstance(metadata, dict) and isinstance(spec, dict):
            other = spec.get("complementOf")
            if isinstance(other, str) and other == metadata.get("name"):
                yield Problem(("spec", "complementOf"), "a class cannot be its own complement")


def _policies(listed: list[str]) -> list[str]:
    if ALL in listed and len(listed) > 1:
        raise own_error(f"{ALL} means all policies: leave out the others, or leave out {ALL}")
    return distinct(listed, listed, (), "the name")


PolicyName = Annotated[
    str,
    check(
        lambda text: text == ALL or is_subdomain(text),
        lambda text: (
            f"{quoted(text)} is not a policy's name: lower-case letters, digits, '-' or '.', or "
            f"{ALL} alone for all policies"
        ),
    ),
    WithJsonSchema({"type": "string", "pattern": POLICY_NAME_PATTERN, "maxLength": MAX_SUBDOMAIN}),
]
Reason = Annotated[
    str,
    Field(min_length=1, max_length=_LONGEST_REASON),
    check(lambda text: text.strip(" \t\r\n"), "is blank; give the reason why these pods may pass"),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": _LONGEST_REASON,
            "pattern": REASON_PATTERN,
        }
    ),
]


class ExceptionMetadata(Metadata):
    """The name of an exception. Fields that the API server adds are accepted, and not read."""

    refused: ClassVar[Mapping[str, str]] = {
        "namespace": "exceptions hold for the whole cluster; remove it, and name the pod's "
        "namespace in spec.match",
        "generateName": "give a name: stamps and the audit log use the exception's name",
    }


class ExceptionSpec(BoundedSpec):
    """Which policies do not apply to which pods, until when, and why."""

    policies: Annotated[list[PolicyName], AfterValidator(_policies)] = Field(
        min_length=1,
        max_length=MAX_LISTED,
        description="The names of the policies that do not apply, enforced or under Audit. A "
        "single * means all policies.",
    )
    match: Annotated[
        Match,
        check(
            lambda match: not match.is_empty,
            "an empty block would let every pod pass; give a condition, or for every pod "
            'write namespaces: ["*"]',
        ),
    ] = Field(
        description="The pods that the exception is for, by the conditions of a policy's match. "
        "At least one condition is required; namespaces: ['*'] means the pods of "
        "every run."
    )
    until: Moment = Field(
        description="When the exception ends, in RFC 3339: 2026-12-01T18:00:00Z. From then on "
        "the policies apply to new pods again. Pods that were admitted before stay "
        "as they are."
    )
    reason: Reason = Field(
        description="Why the exception is needed, for people who read it later: what is done, "
        "and by whom."
    )


class PlacementException(PolicyObject):
    """An exception: policies that do not apply to some pods, until a time, for a reason."""

    kind: Literal["PlacementException"] = Field(description="The kind of this document.")
    metadata: ExceptionMetadata = Field(description="The exception's name.")
    spec: ExceptionSpec = Field(
        description="The policies, the pods, the end and the reason of the exception."
    )
