"""Affinity, topology spread, tolerations and taints."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field

from webhook.placement.schema.selectors import LabelSelector, NodeSelectorTerm
from webhook.placement.schema.syntax import LabelKey, LabelValue, NamespaceName
from webhook.strict import Problem, Strict, optional

Weight: TypeAlias = Annotated[int, Field(ge=1, le=100)]
_WEIGHT = "How much the preference counts, from 1 to 100."
_INT32 = 2**31 - 1
InclusionPolicy: TypeAlias = Literal["Honor", "Ignore"]
Effect: TypeAlias = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


class NodeSelector(Strict):
    """Nodes that match one of the terms."""

    node_selector_terms: list[NodeSelectorTerm] = Field(
        min_length=1,
        description="A node must match one of these terms, and all parts of that term.",
    )


class PreferredSchedulingTerm(Strict):
    """A preference for nodes. Cluster autoscalers ignore preferences."""

    weight: Weight = Field(description=_WEIGHT)
    preference: NodeSelectorTerm = Field(description="The preferred nodes.")


class NodeAffinity(Strict):
    """Rules that attract a pod to nodes."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = optional(
        "The nodes that the pod can run on. A default is added only if the pod has no required "
        "node affinity. An override or a requirement narrows every term of the pod."
    )
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] | None = (
        optional(
            "The nodes that the pod prefers. A default is added only if the pod has no "
            "such list. An override or a requirement appends missing entries."
        )
    )


class PodAffinityTerm(Strict):
    """Other pods, and the topology in which they count as near."""

    topology_key: LabelKey = Field(
        description="The node label that defines domains: nodes with the same value are in one "
        "domain."
    )
    label_selector: LabelSelector | None = optional(
        "Selects the other pods by their labels. Without it, no pod is selected."
    )
    namespaces: list[NamespaceName] | None = optional(
        "The namespaces of the other pods. Without it and without "
        "namespaceSelector: the pod's own namespace."
    )
    namespace_selector: LabelSelector | None = optional(
        "Selects the namespaces of the other pods by label; {} selects all."
    )
    match_label_keys: list[LabelKey] | None = optional(
        "Labels for which the other pods must have the same values as this pod. "
        "Requires labelSelector, and must not repeat its keys."
    )
    mismatch_label_keys: list[LabelKey] | None = optional(
        "Labels for which the other pods must not have the same values as this pod. "
        "Requires labelSelector."
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """As the API server's ValidateMatchLabelKeysAndMismatchLabelKeys has it."""
        yield from _matched_keys_problems(given)
        yield from _selector_problems(given, "mismatchLabelKeys")
        matched, mismatched = given.get("matchLabelKeys"), given.get("mismatchLabelKeys")
        if isinstance(matched, list) and isinstance(mismatched, list):
            for index, key in enumerate(mismatched):
                if key in matched:
                    yield Problem(
                        ("mismatchLabelKeys", index), f"{key!r} is also in matchLabelKeys"
                    )


class WeightedPodAffinityTerm(Strict):
    """A preference to be near other pods, or away from them."""

    weight: Weight = Field(description=_WEIGHT)
    pod_affinity_term: PodAffinityTerm = Field(description="The other pods.")


class PodAffinity(Strict):
    """Rules that attract a pod to other pods, or keep it away from them."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = optional(
        "Rules that must hold when the pod is scheduled. A default is added only if the pod has "
        "no such list. An override or a requirement appends missing entries."
    )
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = (
        optional(
            "Rules that should hold when the pod is scheduled. The list is merged like "
            "the required list."
        )
    )


class Affinity(Strict):
    """Rules that attract a pod to nodes and other pods, or keep it away from them."""

    node_affinity: NodeAffinity | None = optional("Rules that attract the pod to nodes.")
    pod_affinity: PodAffinity | None = optional("Rules that attract the pod to other pods.")
    pod_anti_affinity: PodAffinity | None = optional(
        "Rules that keep the pod away from other pods."
    )


def _selector_problems(given: Mapping[str, Any], field: str) -> Iterator[Problem]:
    """Require the selector that a list of label keys adds to."""
    if given.get(field) and given.get("labelSelector") is None:
        yield Problem((field,), "needs a labelSelector")


def _matched_keys_problems(given: Mapping[str, Any]) -> Iterator[Problem]:
    """Require each key once: the API server adds it to the selector, for pods with the label."""
    yield from _selector_problems(given, "matchLabelKeys")
    written, selected = given.get("matchLabelKeys"), selector_keys(given.get("labelSelector"))
    keys = written if isinstance(written, list) else []
    for index, key in enumerate(keys):
        if not isinstance(key, str):
            continue
        if key in selected:
            yield Problem(("matchLabelKeys", index), f"{key!r} is in labelSelector too")
        elif key in keys[:index]:
            yield Problem(("matchLabelKeys", index), f"{key!r} is here twice")


class TopologySpreadConstraint(Strict):
    """Spreads matching pods evenly over the values of a node label."""

    max_skew: int = Field(
        ge=1,
        le=_INT32,
        description="How many more matching pods a domain can have than the domain with the "
        "fewest, 1 or more.",
    )
    topology_key: LabelKey = Field(
        description="The node label that defines domains: nodes with the same value are in one "
        "domain."
    )
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = Field(
        description="What happens to a pod that would exceed maxSkew."
    )
    label_selector: LabelSelector | None = optional(
        "Selects the pods that are counted. Without it, no pod is counted."
    )
    min_domains: int | None = optional(
        "The minimum number of domains, 1 or more. Valid with DoNotSchedule only.", ge=1, le=_INT32
    )
    node_affinity_policy: InclusionPolicy | None = optional(
        "Honor (the default) counts only nodes that match the pod's nodeSelector and node "
        "affinity. Ignore counts all."
    )
    node_taints_policy: InclusionPolicy | None = optional(
        "Honor excludes nodes with taints that the pod does not tolerate. Ignore (the default) "
        "counts them."
    )
    match_label_keys: list[LabelKey] | None = optional(
        "Labels for which the counted pods must have the same values as this pod. "
        "Requires labelSelector, and must not repeat its keys."
    )

    @property
    def pair(self) -> tuple[str, str]:
        """Topology key and `whenUnsatisfiable`: a pod may have one constraint for each pair."""
        return self.topology_key, self.when_unsatisfiable

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """As the API server's validateTopologySpreadConstraints has it."""
        when = given.get("whenUnsatisfiable")
        if given.get("minDomains") is not None and when == "ScheduleAnyway":
            yield Problem(("minDomains",), "goes with whenUnsatisfiable: DoNotSchedule only")
        yield from _matched_keys_problems(given)


def selector_keys(selector: object) -> set[str]:
    """Return the keys that a selector reads, raw or parsed; none of one that is wrong."""
    raw = selector.model_dump(by_alias=True) if isinstance(selector, LabelSelector) else selector
    if not isinstance(raw, dict):
        return set()
    labels, expressions = raw.get("matchLabels"), raw.get("matchExpressions")
    keys = [*labels] if isinstance(labels, dict) else []
    if isinstance(expressions, list):
        keys += [item.get("key") for item in expressions if isinstance(item, dict)]
    return {key for key in keys if isinstance(key, str)}


class Taint(Strict):
    """A taint of a node: it excludes or evicts pods that do not tolerate it."""

    key: LabelKey = Field(description="The taint's key.")
    value: LabelValue | None = optional("The taint's value; left out, the taint has none.")
    effect: Effect = Field(
        description="What happens to pods without a toleration: NoSchedule keeps new ones away, "
        "PreferNoSchedule does so where it can, NoExecute also drives out running ones."
    )


class Toleration(Strict):
    """Allows a pod on nodes with a taint. It does not attract the pod to them."""

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

    key: LabelKey | None = optional(
        "The taint's key. Without it, and with operator Exists, every taint is tolerated."
    )
    operator: Literal["Exists", "Equal"] | None = optional(
        "Equal (the default) tolerates the taint with this value. Exists tolerates "
        "it with any value."
    )
    value: LabelValue | None = optional(
        "The taint's value, for operator Equal. Exists takes no value."
    )
    effect: Effect | None = optional("The taint's effect. Without it, every effect is tolerated.")
    toleration_seconds: int | None = optional(
        "How long the pod stays on a node that gets the taint, in seconds. Without it, the pod "
        "stays. Valid with effect NoExecute only. A default replaces only what the API server's "
        "DefaultTolerationSeconds plugin added. An override or a requirement is put before any "
        "other toleration that covers the taint.",
        ge=0,
        le=2**63 - 1,
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
                ("tolerationSeconds",),
                "is valid with effect NoExecute only; set it, or remove this",
            )
