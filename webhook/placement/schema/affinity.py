"""Affinity: what draws a pod to nodes, and to or from other pods."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from webhook.placement.schema.selectors import LabelSelector, NodeSelectorTerm
from webhook.placement.schema.syntax import LabelKey, NamespaceName
from webhook.strict import Problem, Strict

Weight: TypeAlias = Annotated[int, Field(ge=1, le=100)]
_WEIGHT = "How much the preference counts, from 1 to 100."


class NodeSelector(Strict):
    """The nodes that meet one of the terms."""

    node_selector_terms: list[NodeSelectorTerm] = Field(
        min_length=1, description="A node must meet one of these terms; within a term, all of it."
    )


class PreferredSchedulingTerm(Strict):
    """A preference for nodes. Cluster autoscalers ignore preferences."""

    weight: Weight = Field(description=_WEIGHT)
    preference: NodeSelectorTerm = Field(description="The nodes that are preferred.")


class NodeAffinity(Strict):
    """What draws a pod to nodes."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = Field(
        default=None,
        description="The nodes that the pod may run on. As a default it is added only if the pod "
        "has none; as an override or a requirement it narrows every term of the pod's own.",
    )
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] | None = (
        Field(
            default=None,
            description="The nodes that the pod had better run on. As a default it is added only "
            "if the pod has no such list; as an override or a requirement what is missing is "
            "appended.",
        )
    )


class PodAffinityTerm(Strict):
    """Other pods, and how near counts as near."""

    topology_key: LabelKey = Field(
        description="The node label that tells what is near: nodes with one value are one place."
    )
    label_selector: LabelSelector | None = Field(
        default=None, description="The other pods, by their labels. Left out, no pod is meant."
    )
    namespaces: list[NamespaceName] | None = Field(
        default=None,
        description="The other pods' namespaces. Left out, without a namespaceSelector too, the "
        "pod's own.",
    )
    namespace_selector: LabelSelector | None = Field(
        default=None, description="The other pods' namespaces, by label; {} means all."
    )
    match_label_keys: list[LabelKey] | None = Field(
        default=None,
        description="Labels whose values the other pods must share with this one. Needs "
        "labelSelector.",
    )
    mismatch_label_keys: list[LabelKey] | None = Field(
        default=None,
        description="Labels whose values the other pods must not share with this one. Needs "
        "labelSelector.",
    )

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """As the API server's ValidateMatchLabelKeysAndMismatchLabelKeys has it."""
        yield from label_keys_problems(given, "matchLabelKeys")
        yield from label_keys_problems(given, "mismatchLabelKeys")
        matched, mismatched = given.get("matchLabelKeys"), given.get("mismatchLabelKeys")
        if isinstance(matched, list) and isinstance(mismatched, list):
            for index, key in enumerate(mismatched):
                if key in matched:
                    yield Problem(
                        ("mismatchLabelKeys", index), f"{key!r} is among matchLabelKeys too"
                    )


class WeightedPodAffinityTerm(Strict):
    """A preference to be near, or far from, other pods."""

    weight: Weight = Field(description=_WEIGHT)
    pod_affinity_term: PodAffinityTerm = Field(description="The other pods.")


class PodAffinity(Strict):
    """What draws a pod to other pods (podAffinity), or keeps it from them (podAntiAffinity)."""

    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = Field(
        default=None,
        description="Must hold when the pod is scheduled. As a default it is added only if the "
        "pod has no such list; as an override or a requirement what is missing is appended.",
    )
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] | None = (
        Field(
            default=None,
            description="Had better hold when the pod is scheduled. Merged as the required list.",
        )
    )


class Affinity(Strict):
    """What draws a pod to nodes and to other pods, or keeps it from them."""

    node_affinity: NodeAffinity | None = Field(
        default=None, description="What draws the pod to nodes."
    )
    pod_affinity: PodAffinity | None = Field(
        default=None, description="What draws the pod to other pods."
    )
    pod_anti_affinity: PodAffinity | None = Field(
        default=None, description="What keeps the pod away from other pods."
    )


def label_keys_problems(given: Mapping[str, Any], field: str) -> Iterator[Problem]:
    """Whether a list of label keys stands beside the selector that it adds to."""
    if given.get(field) and given.get("labelSelector") is None:
        yield Problem((field,), "needs a labelSelector beside it")
