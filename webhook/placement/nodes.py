"""Which nodes admit a pod, and the condition that excludes each other node.

As in the scheduler's plugins NodeName, NodeAffinity, TaintToleration, NodeUnschedulable,
NodeResourcesFit for an empty node, and of those about other pods the keys of topologies: not
volumes, and not which pods are where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from webhook.errors import FairleadError
from webhook.placement import node_affinity, quantity
from webhook.placement.pod_requests import lacking
from webhook.placement.tolerations import NO_EXECUTE, tolerates, untolerated
from webhook.placement.topology import lacking_key, topology_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject, Requirement, Taint, Term

# How many values are compared in the time of one requirement's lookup.
_VALUES_AT_ONCE: Final = 16
# The taint of a cordon, whether the node controller has written it yet or not.
CORDON: Final[Taint] = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class InvalidNode(FairleadError):
    """A node with a field of the wrong type. `field` is its path: spec.taints[0]."""

    def __init__(self, field: str, wanted: str, actual: object) -> None:
        self.field = field
        super().__init__(f"{field}: want {wanted}, not {type(actual).__name__}")


class Node(NamedTuple):
    """The fields of a v1.Node that decide which pods it admits. `unschedulable`: cordoned.

    `allocatable` has amounts by resource as the scheduler counts them: cpu in thousandths, others
    in units; None where the node does not say.
    """

    name: str
    labels: Mapping[str, str]
    taints: Sequence[Taint]
    unschedulable: bool = False
    allocatable: Mapping[str, int] | None = None


class Obstacle(NamedTuple):
    """Why a node does not admit a pod.

    condition: what the pod or the node requires, the same text for every node that fails it
    actual:      what the node, or the pod, has instead
    """

    condition: str
    actual: str

    def __str__(self) -> str:
        return f"{self.condition}: {self.actual}"


class Shut(NamedTuple):
    """The nodes, by name, that one condition excludes."""

    condition: str
    nodes: tuple[str, ...]


class Survey(NamedTuple):
    """All nodes: those that admit the pod, and the others by condition, most nodes first."""

    admitted: tuple[str, ...]
    shut: tuple[Shut, ...]

    @property
    def total(self) -> int:
        return len(self.admitted) + sum(len(shut.nodes) for shut in self.shut)


def parse_node(node: JsonObject) -> Node:
    """Return the view of a v1.Node. Raises InvalidNode with the path of a field of the wrong
    type."""
    metadata = _object(node.get("metadata"), "metadata")
    spec = _object(node.get("spec"), "spec")
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidNode("metadata.name", "a name", name)
    labels = _object(metadata.get("labels"), "metadata.labels")
    for key, value in labels.items():
        _string(value, f"metadata.labels[{key}]")
    taints = spec.get("taints") or []
    if not isinstance(taints, list):
        raise InvalidNode("spec.taints", "a list", taints)
    for at, taint in enumerate(taints):
        if not isinstance(taint, dict):
            raise InvalidNode(f"spec.taints[{at}]", "an object", taint)
        for key in ("key", "value", "effect"):
            if taint.get(key) is not None:
                _string(taint[key], f"spec.taints[{at}].{key}")
    return Node(
        name,
        labels,
        cast("list[Taint]", taints),
        spec.get("unschedulable") is True,
        _allocatable(node),
    )


def _allocatable(node: JsonObject) -> Mapping[str, int] | None:
    status = _object(node.get("status"), "status")
    given = _object(status.get("allocatable"), "status.allocatable")
    amounts = {}
    for resource, text in given.items():
        path = f"status.allocatable[{resource}]"
        if not isinstance(text, str | int):
            raise InvalidNode(path, "a quantity", text)
        try:
            amounts[resource] = quantity.amount(resource, text)
        except quantity.InvalidQuantity as error:
            raise InvalidNode(path, "a quantity", text) from error
    return amounts or None


def _object(value: Any, path: str) -> JsonObject:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidNode(path, "an object", value)
    return value


def _string(value: object, path: str) -> None:
    if not isinstance(value, str):
        raise InvalidNode(path, "a string", value)


def by_name(nodes: Iterable[Node] | None) -> Callable[[str], Node | None] | None:
    """Return a node by its name; None if the nodes are not known."""
    return None if nodes is None else {node.name: node for node in nodes}.get


def survey(
    pod: PodPlacement,
    requests: Mapping[str, int],
    nodes: Iterable[Node],
    made: PodPlacement | None = None,
) -> Survey:
    """Return which nodes admit the pod, and why the others do not. Nodes keep their order.

    `requests`: the pod's, as `pod_requests.requests` counts them. `made`: the pod by which a
    DaemonSet's controller chooses the nodes for which it makes one.
    """
    admitted: list[str] = []
    shut: dict[str, list[str]] = {}
    kinds = nodes if isinstance(nodes, NodeKinds) else NodeKinds(nodes)
    obstacles: dict[tuple[Any, ...], Obstacle | None] = {}
    asked = _asked((pod, made) if made else (pod,))
    for node, kind in zip(kinds, kinds.numbers, strict=True):
        get = node.labels.get
        key = (kind, *[get(label) for label in asked]) if asked is not None else (node.name,)
        if key not in obstacles:
            closed = closed_to(made, node) if made else None
            obstacles[key] = closed or obstacle(pod, requests, node)
        first_obstacle = obstacles[key]
        if first_obstacle is None:
            admitted.append(node.name)
        else:
            shut.setdefault(first_obstacle.condition, []).append(node.name)
    groups = [Shut(condition, tuple(names)) for condition, names in shut.items()]
    groups.sort(key=lambda group: (-len(group.nodes), group.condition))
    return Survey(tuple(admitted), tuple(groups))


class NodeKinds(tuple[Node, ...]):
    """Nodes; `numbers` has one for each, the same for nodes with equal taints, cordon and
    allocatable, so that a survey asks one of those that are also equal in the labels it asks for.
    """

    numbers: tuple[int, ...]

    def __new__(cls, nodes: Iterable[Node]) -> NodeKinds:
        kinds = super().__new__(cls, nodes)
        known_kinds: dict[tuple[Any, ...], int] = {}
        kinds.numbers = tuple(
            [known_kinds.setdefault(_kind_of(node), len(known_kinds)) for node in kinds]
        )
        return kinds


def _kind_of(node: Node) -> tuple[Any, ...]:
    taints = [(t.get("key"), t.get("value"), t.get("effect")) for t in node.taints]
    room = node.allocatable
    return (node.unschedulable, *taints, None if room is None else frozenset(room.items()))


def _asked(pods: Sequence[PodPlacement]) -> Sequence[str] | None:
    """Return the labels by which nodes differ for the pods; None if they ask for names, too."""
    terms = [term for pod in pods for term in pod.required or ()]
    if any(pod.node_name for pod in pods) or any(term.get("matchFields") for term in terms):
        return None
    keys = {key for pod in pods for key in (*pod.node_selector, *topology_keys(pod))}
    return sorted(keys | set(node_affinity.keys(terms)))


def obstacle(pod: PodPlacement, requests: Mapping[str, int], node: Node) -> Obstacle | None:
    """Return the first condition by which the node does not admit the pod, or None.

    In this order: nodeName, nodeSelector, required affinity, topologies, taints, resources. A bound
    pod bypasses the scheduler; of its taints, the kubelet checks only NoExecute (package
    lifecycle).
    """
    return closed_to(pod, node) or too_small(pod, requests, node.allocatable)


def closed_to(pod: PodPlacement, node: Node) -> Obstacle | None:
    """Return the first condition on name, labels and taints that excludes the pod, or None."""
    if pod.node_name and pod.node_name != node.name:
        return Obstacle(f"nodeName {pod.node_name}", "the pod is bound to that node")
    first_obstacle = _selector(pod, node) or _affinity(pod, node) or _topology(pod, node)
    return first_obstacle or _taints(pod, node)


def too_small(
    pod: PodPlacement, requests: Mapping[str, int], allocatable: Mapping[str, int] | None
) -> Obstacle | None:
    """Return the first resource that an empty node with this allocatable lacks, or None."""
    if pod.node_name and allocatable is not None:
        # The kubelet does not count extended resources that its node does not report
        # (package lifecycle, removeMissingExtendedResources).
        requests = {name: requests[name] for name in requests.keys() & allocatable.keys()}
    lack = lacking(requests, allocatable)
    if lack is None:
        return None
    resource, asked, available = lack
    actual = (
        f"the node has {quantity.format_quantity(resource, available) if available else 'none'}"
    )
    return Obstacle(f"requests {resource} {quantity.format_quantity(resource, asked)}", actual)


def admits(pod: PodPlacement, node: Node) -> bool:
    """Return whether `closed_to` finds nothing, faster."""
    if pod.node_name and pod.node_name != node.name:
        return False
    labels = node.labels
    for key, value in pod.node_selector.items():
        if labels.get(key) != value:
            return False
    if pod.required is not None and not node_affinity.holds(pod.required, labels, node.name):
        return False
    if lacking_key(pod, labels) is not None:
        return False
    return excluding(pod, node) is None


def work(pod: PodPlacement) -> int:
    """Return the most comparisons of the pod with one node; its author chooses how many."""
    terms = pod.required or ()
    asked = [r for term in terms for r in term.get("matchExpressions") or ()]
    asked += [r for term in terms for r in term.get("matchFields") or ()]
    values = sum(len(r.get("values") or ()) for r in asked)
    counted = len(pod.node_selector) + len(pod.tolerations) + len(terms) + len(asked)
    return 1 + counted + len(topology_keys(pod)) + values // _VALUES_AT_ONCE


def _selector(pod: PodPlacement, node: Node) -> Obstacle | None:
    for key, value in pod.node_selector.items():
        if node.labels.get(key) != value:
            return Obstacle(f"nodeSelector {key}={value}", _label(key, node.labels))
    return None


def _affinity(pod: PodPlacement, node: Node) -> Obstacle | None:
    if pod.required is None:
        return None
    failures = [_failure(term, node) for term in pod.required]
    if None in failures:
        return None
    if not failures:
        return Obstacle("required affinity without terms", "it matches no node")
    by_condition: dict[str, list[int]] = {}
    for number, failed in enumerate(failures, start=1):
        by_condition.setdefault(str(failed and failed.condition), []).append(number)
    actual = dict.fromkeys(failed.actual for failed in failures if failed)
    return Obstacle(f"required affinity {_terms(by_condition)}", ", ".join(actual))


def _topology(pod: PodPlacement, node: Node) -> Obstacle | None:
    key = lacking_key(pod, node.labels)
    return None if key is None else Obstacle(f"topologyKey {key}", _label(key, node.labels))


def _failure(term: Term, node: Node) -> Obstacle | None:
    """Return the first requirement of a term that the node fails; None if the node meets the
    term."""
    if node_affinity.is_empty(term):
        return Obstacle("with an empty term", "it matches no node")
    failed = node_affinity.failed(term, node.labels, node.name)
    if failed is None:
        return None
    if failed in (term.get("matchExpressions") or ()):
        return Obstacle(format_requirement(failed), _label(failed.get("key", ""), node.labels))
    return Obstacle(f"field {format_requirement(failed)}", f"the node's name is {node.name}")


def _terms(by_condition: Mapping[str, Sequence[int]]) -> str:
    if len(by_condition) == 1:
        ((condition, numbers),) = by_condition.items()
        return condition if len(numbers) == 1 else f"{condition} (in each of {len(numbers)} terms)"
    return "; ".join(
        f"{condition} (term {', '.join(map(str, numbers))})"
        for condition, numbers in by_condition.items()
    )


def _taints(pod: PodPlacement, node: Node) -> Obstacle | None:
    taint = excluding(pod, node)
    if taint is None:
        return None
    if is_cordon(taint):
        return Obstacle("cordoned", "the pod does not tolerate that")
    return Obstacle(f"untolerated taint {taint_text(taint)}", "the node has it")


def excluding(pod: PodPlacement, node: Node) -> Taint | None:
    """Return the first taint that excludes the pod, or None; a cordon has its own taint."""
    if pod.node_name:
        bound = [taint for taint in node.taints if taint.get("effect") == NO_EXECUTE]
        return untolerated(bound, pod.tolerations)
    taint = untolerated(node.taints, pod.tolerations)
    if node.unschedulable and taint is None:
        taint = untolerated([CORDON], pod.tolerations)
    return taint


def stay(pod: PodPlacement, node: Node) -> int | None:
    """Return after how many seconds the node's taints evict the pod; None for never.

    Of the tolerations of a taint the first counts. Source: GetMatchingTolerations and
    getMinTolerationTime, k8s.io/kubernetes v1.36, pkg/controller/tainteviction.
    """
    evicting = [taint for taint in node.taints if taint.get("effect") == NO_EXECUTE]
    tolerations = [
        next((t for t in pod.tolerations if tolerates(t, taint)), None) for taint in evicting
    ]
    given = [toleration.get("tolerationSeconds") for toleration in tolerations if toleration]
    seconds = [value for value in given if value is not None]
    return max(min(seconds), 0) if seconds else None


def is_cordon(taint: Taint) -> bool:
    return taint.get("key") == CORDON["key"]


def format_requirement(requirement: Requirement) -> str:
    """Return a requirement as text: `pool In [a, b]`, `gpu Exists`, `gen Gt 5`."""
    operator, values = requirement.get("operator"), requirement.get("values") or []
    text = f"{requirement.get('key')} {operator}"
    if not values:
        return text
    return f"{text} {values[0]}" if operator in ("Gt", "Lt") else f"{text} [{', '.join(values)}]"


def taint_text(taint: Taint) -> str:
    """Return a taint as kubectl writes it: `key=value:Effect`, or `key:Effect`."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def _label(key: str, labels: Mapping[str, str]) -> str:
    return f"the node has {labels[key]!r}" if key in labels else "the node has no such label"
