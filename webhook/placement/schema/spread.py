"""Topology spread constraints: how pods are spread over places."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from pydantic import Field

from webhook.placement.schema.affinity import label_keys_problems
from webhook.placement.schema.selectors import LabelSelector
from webhook.placement.schema.syntax import LabelKey
from webhook.strict import Problem, Strict

_INT32 = 2**31 - 1
InclusionPolicy: TypeAlias = Literal["Honor", "Ignore"]


class TopologySpreadConstraint(Strict):
    """Spreads matching pods evenly over the values of a node label."""

    max_skew: int = Field(
        ge=1,
        le=_INT32,
        description="How many more matching pods one place may have than the emptiest, 1 or more.",
    )
    topology_key: LabelKey = Field(
        description="The node label that tells places apart: nodes with one value are one place."
    )
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = Field(
        description="What happens to a pod that would break the rule."
    )
    label_selector: LabelSelector | None = Field(
        default=None, description="The pods that are counted. Left out, none are."
    )
    min_domains: int | None = Field(
        default=None,
        ge=1,
        le=_INT32,
        description="The least number of places, 1 or more. Only with DoNotSchedule.",
    )
    node_affinity_policy: InclusionPolicy | None = Field(
        default=None,
        description="Whether only nodes that the pod's own selector and affinity admit count "
        "(Honor, the default).",
    )
    node_taints_policy: InclusionPolicy | None = Field(
        default=None,
        description="Whether nodes with taints that the pod does not tolerate are left out "
        "(Honor; the default is Ignore).",
    )
    match_label_keys: list[LabelKey] | None = Field(
        default=None,
        description="Labels whose values the counted pods must share with this one. Needs "
        "labelSelector, and must not repeat its keys.",
    )

    @property
    def pair(self) -> tuple[str, str]:
        """Topology key and `whenUnsatisfiable`: a pod may have one constraint for each pair."""
        return self.topology_key, self.when_unsatisfiable

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> Iterator[Problem]:
        """As the API server's validateTopologySpreadConstraints has it."""
        if given.get("minDomains") is not None and given.get("whenUnsatisfiable") == (
            "ScheduleAnyway"
        ):
            yield Problem(("minDomains",), "goes with whenUnsatisfiable: DoNotSchedule only")
        yield from label_keys_problems(given, "matchLabelKeys")
        keys = given.get("matchLabelKeys")
        for index, key in enumerate(keys if isinstance(keys, list) else []):
            if isinstance(key, str) and key in _selector_keys(given.get("labelSelector")):
                yield Problem(("matchLabelKeys", index), f"{key!r} is in labelSelector too")


def _selector_keys(selector: object) -> set[str]:
    """The keys that a selector reads, raw or parsed; none of one that is wrong."""
    raw = selector.model_dump(by_alias=True) if isinstance(selector, LabelSelector) else selector
    if not isinstance(raw, dict):
        return set()
    labels, expressions = raw.get("matchLabels"), raw.get("matchExpressions")
    keys = [*labels] if isinstance(labels, dict) else []
    if isinstance(expressions, list):
        keys += [item.get("key") for item in expressions if isinstance(item, dict)]
    return {key for key in keys if isinstance(key, str)}
