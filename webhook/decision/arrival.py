"""The inputs of a decision: a pod that will be created, the policies, facts of the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from webhook import names
from webhook.decision.notice import owner_of, template_of
from webhook.errors import ClusterError, NotSynced, UnreadableText
from webhook.foreign_text import annotation
from webhook.identity import OURS, identify, leader_ref
from webhook.placement.fallback import parse_history
from webhook.placement.owner_selector import SELECTING, STATEFUL_SET, OwnerSelector
from webhook.placement.trace import warning
from webhook.sources.marks import parse_index

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from webhook.decision.decision import Decision, ReceivedPod
    from webhook.decision.notice import Owner
    from webhook.placement.fallback import History
    from webhook.placement.nodes import Node
    from webhook.placement.owner_selector import CountedPods
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet
    from webhook.sources.marks import ObjectRef
    from webhook.sources.table import SourceTable

# The default values of the DefaultTolerationSeconds admission plugin.
DEFAULT_TOLERATION_SECONDS = {names.TAINT_NOT_READY: 300, names.TAINT_UNREACHABLE: 300}


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster's defaults, which no user has set, and its nodes.

    default_priority_class:     the PriorityClass with globalDefault; empty if there is none
    default_toleration_seconds: the values of the DefaultTolerationSeconds plugin, by taint
    runtime_classes:            RuntimeClasses by name, as far as they are known
    flavors:                    Kueue's ResourceFlavors, as far as they are known
    node:                       returns a node by name, None if it does not exist; the function
                                itself is None if the nodes are not known
    """

    default_priority_class: str = ""
    default_toleration_seconds: Mapping[str, int] = field(
        default_factory=lambda: DEFAULT_TOLERATION_SECONDS
    )
    node: Callable[[str], Node | None] | None = None
    runtime_classes: Mapping[str, JsonObject] = field(default_factory=dict)
    flavors: Sequence[JsonObject] = ()


class Arrival(NamedTuple):
    """A pod (v1.Pod) as received, with its namespace, user and time. A tuple, like Decision.

    `user` is empty offline: the engine then trusts the pod's own metadata. `groups` are the user's.
    `now` is the time of the request, with a time zone. If it is None, no exception is in force and
    none has ended. `led`: the object that made the pod has a pod that leads by its role.
    `history`: what happened to its replica before; None if nobody who may say so did. `selector`:
    that of the owner that counts it; None if there is none, or offline it is not given. `made`: the
    pod as a DaemonSet's controller makes it, who chooses nodes by it and knows nothing of what the
    API server's plugins add; None for others. `sampled`: the controller asks by a dry run which
    replicas of the role are placed like this one.
    """

    pod: JsonObject
    namespace: str
    namespace_labels: Mapping[str, str]
    user: str = ""
    now: datetime | None = None
    groups: Collection[str] = ()
    led: bool = False
    history: History | None = None
    selector: OwnerSelector | None = None
    made: JsonObject | None = None
    sampled: bool = False


OF_DAEMON_SET: Final = "created by the DaemonSet controller, which uses its own template"


def history_of(pod: JsonObject) -> History | None:
    """Return what a v1.Pod's annotation says; None without a valid one."""
    text = annotation(pod["metadata"], names.HISTORY)
    try:
        return parse_history(text) if text else None
    except UnreadableText:
        return None  # of another version of the controller


def keeps_placement(arrival: Arrival, placement: PodPlacement) -> str:
    """Return why defaults and overrides skip the pod; empty if they apply.

    For a DaemonSet's pod (OF_DAEMON_SET), requirements apply nevertheless, unless only its
    namespace marks it, and spares DaemonSets.
    """
    # A client can forge an annotation or an owner reference, but not the user of the request.
    if names.MIRROR_POD in placement.annotations and (not arrival.user or _is_node(arrival)):
        return "mirror pod: it belongs to its node"
    if arrival.user in ("", names.DAEMON_SET_CONTROLLER) and owned_by_daemon_set(arrival.pod):
        return OF_DAEMON_SET
    return ""


def spares_daemon_sets(namespace_labels: Mapping[str, str]) -> bool:
    """Return whether a namespace's admin keeps requirements off DaemonSets' unmarked pods."""
    return namespace_labels.get(names.DAEMON_SETS) == names.DAEMON_SETS_KEEP


def _is_node(arrival: Arrival) -> bool:
    """Return True if the user is a node, by the node authorizer's rule (nodeidentifier)."""
    return arrival.user.startswith(names.NODE_USERS) and names.NODE_GROUP in arrival.groups


def owned_by_daemon_set(pod: JsonObject) -> bool:
    """Return whether a DaemonSet is the controller of the v1.Pod, by its owner references."""
    owners = pod["metadata"].get("ownerReferences")
    return isinstance(owners, list) and any(
        isinstance(owner, dict)
        and owner.get("kind") == "DaemonSet"
        and owner.get("controller") is True
        and str(owner.get("apiVersion")).startswith("apps/")
        for owner in owners
    )


def may_have_history(pod: JsonObject, maker: str, sources: SourceTable) -> bool:
    """Return whether the v1.Pod may have a history: only Fairlead's controller writes one.

    `maker`: the kind of the object whose template makes it, or Pod. A Pod that its author wrote
    down may be one of a Run if it has no other controller, and no other system marks it.
    """
    if maker != "Pod":
        return maker == names.RUN_KIND
    if owner := owner_of(pod):
        return owner.kind == names.RUN_KIND and owner.api_version.startswith(names.PREFIX)
    metadata = pod.get("metadata") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    identity = identify(labels, annotations, {}, sources)
    return identity is not None and identity.source == OURS


class NamespaceLabels(Protocol):
    """A source of namespace labels."""

    def peek(self, name: str) -> Mapping[str, str] | None:
        """Return the labels from the cache; None if the namespace is not cached."""

    async def labels(self, name: str) -> Mapping[str, str]:
        """Return the labels, read from the API if not cached. Raises NotSynced on failure."""

    async def live(self, name: str, *, fresh: bool = False) -> Mapping[str, str]:
        """Return the labels, always read from the API. Raises NotSynced on failure.

        `fresh`: do not share the result of a read that started earlier.
        """


class Objects(Protocol):
    """A source of facts about the objects that make pods."""

    async def led(self, namespace: str, ref: ObjectRef, name: str, sources: SourceTable) -> bool:
        """Return True if the object has a pod that leads by its role. Raises ClusterError."""

    async def counted(self, namespace: str, owner: Owner) -> CountedPods:
        """Return how an owner counts its pods; nothing if there is no such object. Raises
        ClusterError."""


async def settle_leader(
    received: ReceivedPod, sources: SourceTable, objects: Objects | None
) -> tuple[ReceivedPod, Sequence[str]]:
    """Return the pod with its object's word on who leads, and warnings.

    Only a coordinator whose labels leave a doubt causes a read. Without an answer the labels
    decide: a coordinator too many costs less than one too few.
    """
    placement, identity = received.original, received.identity
    if objects is None or not identity.coordinator:
        return received, ()
    ref = leader_ref(identity, placement.labels, placement.annotations, sources)
    if ref is None:
        return received, ()
    name = placement.labels.get(ref.label, "")
    try:
        led = await objects.led(received.arrival.namespace, ref, name, sources)
    except ClusterError as error:
        # A warning is cut at its end, and the error's address may be long.
        doubt = f"leads by its labels alone: {ref.kind} {name} cannot be read: {error}"
        return received, [warning(doubt)]
    if led:
        arrival = received.arrival._replace(led=True)
        received = received._replace(arrival=arrival, identity=identity._replace(coordinator=False))
    return received, ()


def selecting_owner(pod: JsonObject) -> Owner | None:
    """Return the controller of a pod, if it counts its pods by a selector; else None."""
    owner = owner_of(pod)
    if owner is None or (owner.api_version.rpartition("/")[0], owner.kind) not in SELECTING:
        return None
    return owner


def ordinal_of(arrival: Arrival, labels: Mapping[str, str]) -> int | None:
    """Return the position of a StatefulSet's pod among its replicas; None for other pods, and if
    the StatefulSet is not read.

    Its controller sets the label (pkg/controller/statefulset, updateIdentity). An author can write
    it as well as the label of an index.
    """
    selector, number = arrival.selector, parse_index(labels.get(names.POD_INDEX))
    if selector is not None:
        first = selector.first
    else:
        owner = selecting_owner(arrival.pod)
        first = 0 if owner and owner.kind == STATEFUL_SET else None
    if number is None or first is None or (selector and selector.unread) or number < first:
        return None
    return number - first


async def settle_selector(
    received: ReceivedPod, owner: Owner, objects: Objects | None
) -> ReceivedPod:
    """Return the pod with the selector of its owner, or why that is not read."""
    arrival = received.arrival
    title = " ".join(template_of(arrival.pod, owner))
    try:
        if objects is None:
            raise ClusterError("no cluster is asked")
        counted = await objects.counted(arrival.namespace, owner)
        first = counted.first if owner.kind == STATEFUL_SET else None
        selector = OwnerSelector(title, counted.conditions, first=first)
    except ClusterError as error:
        selector = OwnerSelector(title, unread=str(error))
    return received._replace(arrival=arrival._replace(selector=selector))


@dataclass(frozen=True, slots=True)
class DecisionInputs:
    """The inputs of a decision, the same for pods and for workloads that will create pods.

    policies: returns the policy set in force; None before the first one is loaded
    default_priority_class: returns the cluster's default, None if there is none; raises NotSynced
    while it is unknown
    unplaceable: takes a pod as received and its decision; returns why no node could admit it, in
    one line; empty if a node could
    now: the clock, for the end of exceptions
    node: returns the function that looks up a node by name; None while the nodes are unknown
    nodes: returns all nodes; None while they are unknown
    controller: the user whose pods may have a history
    classes: returns the objects by kind and name without which the API server rejects pods that
    name them; a kind that is not known is left out
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
    controller: str = names.CONTROLLER_USER
    classes: Callable[[], Mapping[str, Mapping[str, JsonObject]]] = dict

    def serving(self) -> PolicySet:
        """Return the policy set in force. Raises NotSynced."""
        policies = self.policies()
        if policies is None:
            raise NotSynced(
                "no policies are loaded yet; /readyz on the health port gives the reason"
            )
        return policies

    def cluster(self) -> Cluster:
        """Return the cluster's defaults and its nodes. Raises NotSynced."""
        classes = self.classes()
        return Cluster(
            self.default_priority_class() or "",
            self.default_toleration_seconds,
            self.node(),
            classes.get("RuntimeClass", {}),
            [*classes.get("ResourceFlavor", {}).values()],
        )
