"""What was asked about live objects, and everything that was read to answer it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from webhook.admission.arrival import Cluster
    from webhook.cli.decisions import Replicas
    from webhook.cli.live.judged import LivePod
    from webhook.cli.live.unstamped import Why
    from webhook.cli.live.words import Named
    from webhook.cli.where import Where
    from webhook.placement.nodes import Node
    from webhook.policy.policy_set import PolicySet
    from webhook.workloads.object import Object
    from webhook.workloads.template import PodTemplate


@dataclass(frozen=True, slots=True)
class Question:
    """The arguments and options. Without `policies` the cluster's are meant."""

    targets: Sequence[Named]
    namespace: str
    policies: Sequence[Where]
    nodes: Where | None


@dataclass(frozen=True, slots=True)
class LiveWorkload:
    """An object that makes pods: what new pods of it would get, and the pods that it has."""

    source: Object
    templates: Sequence[PodTemplate]
    replicas: Sequence[Replicas]
    pods: Sequence[LivePod]

    @property
    def same(self) -> bool:
        """Whether every pod that it has is as a new one would be."""
        return all(each.decision.allowed for each in self.replicas) and all(
            each.same for each in self.pods
        )


@dataclass(frozen=True, slots=True)
class Answers:
    """What was found. `nodes` is None unless they were asked for; `notes` say what is not known.

    `unstamped` tells of a pod of a run that has no stamp, by namespace and name, why that may be.
    `configuration` sends pods to the webhook; None if it is not known.
    """

    policies: PolicySet
    cluster: Cluster
    namespaces: Mapping[str, Mapping[str, str]]
    now: datetime
    nodes: Sequence[Node] | None
    found: Sequence[LivePod | LiveWorkload]
    unstamped: Mapping[tuple[str, str], Why]
    notes: Sequence[str]
    configuration: Mapping[str, Any] | None = None

    @property
    def same(self) -> bool:
        """Whether every pod is as it would be if it were created now."""
        return all(each.same for each in self.found)
