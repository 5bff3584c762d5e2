"""What is compared, put together: two sets, the pods, and what a decision needs of a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.nodes import Node
    from webhook.policy.policy_set import PolicySet
    from webhook.run.plan import Plan
    from webhook.workloads.template import PodTemplate


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a cluster: labels by namespace.

    `nodes`, and the `configuration` that sends pods to the webhook, are None if they are not known.
    """

    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    default_priority_class: str = ""
    nodes: Sequence[Node] | None = None
    configuration: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """Pods that some object makes, or is; `live`: it is there already."""

    template: PodTemplate
    namespace: str
    live: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """The pods of a Run; `place` is where it was read."""

    place: str
    plan: Plan

    @property
    def namespace(self) -> str:
        """The Run's."""
        return self.plan.run.namespace


@dataclass(frozen=True, slots=True)
class Pods:
    """Everything that makes pods; `notes` are about what was left out, and why."""

    makers: Sequence[Template | Planned]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ComparisonInput:
    """All of it."""

    old: PolicySet
    new: PolicySet
    facts: Facts
    pods: Pods
