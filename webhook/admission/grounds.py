"""What decisions go by beside the pod: the set that serves, and what is known of the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from webhook.admission.arrival import DEFAULT_TOLERATION_SECONDS, Cluster
from webhook.errors import NotSynced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.admission.decision import Decision
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet


class NamespaceLabels(Protocol):
    """Where the labels of namespaces come from."""

    def peek(self, name: str) -> Mapping[str, str] | None:
        """The labels, as far as they are known without waiting; None if the namespace is not."""

    async def labels(self, name: str) -> Mapping[str, str]:
        """The labels, asked for if need be. Raises NotSynced if they cannot be known."""

    async def live(self, name: str, *, anew: bool = False) -> Mapping[str, str]:
        """The labels, asked for again whatever is known. Raises NotSynced as well.

        `anew`: no answer serves that others asked for earlier.
        """


@dataclass(frozen=True, slots=True)
class Grounds:
    """The same for pods and for the workloads that will make some.

    policies: gives the set that serves, None before there is one
    default_priority_class: gives the cluster's, None if it has none, and raises NotSynced while
        that is not known
    unplaceable: of a pod as it came and what was decided, why no node could admit it, in one line;
        empty if one could
    now: exceptions end
    node: gives what gives a node by name, None while the nodes are not known
    nodes: gives all of them, None while they are not known
    """

    policies: Callable[[], PolicySet | None]
    namespaces: NamespaceLabels
    default_priority_class: Callable[[], str | None]
    default_toleration_seconds: Mapping[str, int] = field(
        default_factory=lambda: DEFAULT_TOLERATION_SECONDS
    )
    unplaceable: Callable[[JsonObject, Decision, PolicySet], str] = lambda *_: ""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    node: Callable[[], Callable[[str], Node | None] | None] = lambda: None
    nodes: Callable[[], Sequence[Node] | None] = lambda: None

    def serving(self) -> PolicySet:
        """The set that serves. Raises NotSynced."""
        policies = self.policies()
        if policies is None:
            raise NotSynced("no policies are loaded yet; /readyz of the health port says why")
        return policies

    async def labels(self, namespace: str) -> Mapping[str, str]:
        """The namespace's labels. Raises NotSynced."""
        labels = self.namespaces.peek(namespace)
        return await self.namespaces.labels(namespace) if labels is None else labels

    def cluster(self) -> Cluster:
        """Its defaults, and its nodes. Raises NotSynced."""
        return Cluster(
            self.default_priority_class() or "", self.default_toleration_seconds, self.node()
        )
