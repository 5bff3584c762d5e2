"""Everything that an evaluation depends on, and the evaluation of a pod in it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from webhook import names
from webhook.decision.arrival import Arrival, history_of, may_have_history
from webhook.decision.decision import Decision
from webhook.decision.engine import decide
from webhook.evaluation.evaluation import Evaluation
from webhook.evaluation.plugins import admit, made_by_daemon_set
from webhook.evaluation.pod_faults import PodFaults
from webhook.evaluation.sending import unsent
from webhook.run.controller_reference import owner

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from webhook.decision.arrival import Cluster
    from webhook.evaluation.dry_run import Server
    from webhook.evaluation.plugins import PluginInputs
    from webhook.evaluation.room import DaemonPods
    from webhook.evaluation.surveys import Surveys
    from webhook.placement.fallback import History
    from webhook.placement.nodes import Node
    from webhook.placement.owner_selector import OwnerSelector
    from webhook.placement.room import Room
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet


@dataclass(frozen=True, slots=True)
class World:
    """Everything that an evaluation depends on. No field has a default: none can be forgotten.

    namespaces:    labels by namespace, as far as they are known
    now:           the time, because exceptions end; None: no exception is in force
    configuration: the webhook configuration that sends pods; None if unknown
    classes:       names of PriorityClasses and RuntimeClasses, by kind, as far as they may be
                   listed; None if no cluster was asked
    plugins:       what the API server's plugins read
    nodes:         None if unknown
    server:        asks an API server about pods as decided; None if none is asked
    history:       what happened to the pods' replicas before, as the controller would say it; None:
                   what a pod of a Run says itself
    """

    policies: PolicySet
    cluster: Cluster
    namespaces: Mapping[str, Mapping[str, str]]
    now: datetime | None
    configuration: Mapping[str, Any] | None
    classes: Mapping[str, Collection[str]] | None
    plugins: PluginInputs
    nodes: Sequence[Node] | None
    server: Server | None
    history: History | None
    # The cluster, with the objects that plugins read.
    known_cluster: Cluster = field(init=False, repr=False, compare=False)
    # What is the same for equal pods, by what it depends on. They grow with the pods evaluated.
    surveyed: dict[str, Surveys] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )
    rooms: dict[str, tuple[Room, tuple[str, ...]]] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )
    daemon_pods: list[DaemonPods] = field(
        init=False, default_factory=list, repr=False, compare=False
    )
    free_nodes: dict[str, Sequence[Node]] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )
    _trials: dict[str, World] = field(init=False, default_factory=dict, repr=False, compare=False)
    # The same in other worlds, which share it.
    faults: PodFaults = field(kw_only=True, default_factory=PodFaults, repr=False, compare=False)

    @classmethod
    def for_pods_as_sent(
        cls,
        policies: PolicySet,
        cluster: Cluster,
        namespaces: Mapping[str, Mapping[str, str]],
        now: datetime | None,
        plugins: PluginInputs,
        classes: Mapping[str, Collection[str]] | None = None,
    ) -> World:
        """Return the world in which every pod is sent and says its own history, no node is
        surveyed, and no API server is asked."""
        return cls(policies, cluster, namespaces, now, None, classes, plugins, None, None, None)

    def evaluate(
        self,
        pod: JsonObject,
        namespace: str,
        *,
        led: bool,
        user: str = "",
        groups: Collection[str] = (),
        history: History | None = None,
        selector: OwnerSelector | None = None,
        maker: str = "Pod",
    ) -> Evaluation:
        """Return what happens to a new v1.Pod; the other arguments are those of Arrival.

        `history`: that of its replica, where the pod itself does not have it. `maker`: the kind of
        the object whose template makes it.
        Raises InvalidPod if a placement field of the pod has a wrong type.
        """
        return self.decided(
            self.arrival(
                pod,
                namespace,
                history,
                led=led,
                user=user,
                groups=groups,
                selector=selector,
                maker=maker,
            )
        )

    def arrival(
        self,
        pod: JsonObject,
        namespace: str,
        history: History | None = None,
        *,
        led: bool,
        user: str = "",
        groups: Collection[str] = (),
        selector: OwnerSelector | None = None,
        maker: str = "Pod",
    ) -> Arrival:
        """Return a new v1.Pod as the webhook gets it; the arguments are those of `evaluate`."""
        labels = labels_of(namespace, self.namespaces)
        selector = selector or self.plugins.selector(pod, namespace)
        made = made_by_daemon_set(pod)
        pod = admit(pod, namespace, self.plugins, self.cluster.node, labels)
        if self.history and may_have_history(pod, maker, self.policies.sources):
            history = self.history
        history = history or (history_of(pod) if owner(pod) else None)
        if history is not None and self.now is not None:
            # It is created now, not when the pod was whose text it has.
            history = history._replace(as_of=self.now)
        return Arrival(pod, namespace, labels, user, self.now, groups, led, history, selector, made)

    def __post_init__(self) -> None:
        plugins = self.plugins
        cluster = replace(
            self.cluster, runtime_classes=plugins.runtime_classes, flavors=plugins.flavors or ()
        )
        object.__setattr__(self, "known_cluster", cluster)

    def enforcing(self, policy: str) -> World:
        """Return the world with a policy under Audit enforced, or with "" all of them.

        All others that are not enforced have no effect.
        """
        if policy not in self._trials:
            self._trials[policy] = replace(self, policies=self.policies.enforcing(policy))
        return self._trials[policy]

    def decided(self, arrival: Arrival) -> Evaluation:
        """Return what happens to a pod that the webhook gets. Raises as `evaluate` does."""
        return Evaluation(self, arrival, self._sent(arrival))

    def _sent(self, arrival: Arrival) -> Decision:
        decision = decide(arrival, self.policies, self.known_cluster)
        if decision.identity is None:
            return decision
        labels = arrival.pod["metadata"].get("labels") or {}
        cause = unsent(labels, arrival.namespace, arrival.namespace_labels, self.configuration)
        if cause is None:
            return decision
        return Decision("not-sent", f"{cause.reason}; {cause.cure}", identity=decision.identity)


def labels_of(
    namespace: str, labels_by_namespace: Mapping[str, Mapping[str, str]]
) -> Mapping[str, str]:
    """Return a namespace's labels; for an unknown one, the label that every namespace has."""
    return labels_by_namespace.get(namespace) or {names.NAMESPACE_NAME: namespace}
