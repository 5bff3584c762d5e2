"""Whether nodes of autoscaled classes could admit a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook import names
from webhook.placement import label_values, node_affinity
from webhook.placement.nodes import work
from webhook.placement.tolerations import passing, untolerated
from webhook.placement.topology import topology_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.node_groups import NodeGroups
    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Requirement, Taint, Term

# Labels that every node has, with values that depend on its provider.
_WELL_KNOWN: Final = frozenset(
    {
        *(f"topology.kubernetes.io/{name}" for name in ("zone", "region")),
        *(f"failure-domain.beta.kubernetes.io/{name}" for name in ("zone", "region")),
        *(f"beta.kubernetes.io/{name}" for name in ("os", "arch", "instance-type")),
        names.OS_LABEL,
        "kubernetes.io/arch",
    }
)
_OF_PROVIDERS: Final = "node.kubernetes.io/"
# Stands for the name that a new node will have. No label has it as value.
_OWN_NAME: Final = "the name of a new node"
# Comparisons of a requirement with a shape, for one class. Beyond that, all count as met.
_MOST_LOOKS: Final = 30_000


class _Model(NamedTuple):
    """A node that an autoscaler creates, without the labels of the class's shapes."""

    labels: Mapping[str, str]
    taints: Sequence[Taint]


def makers(pod: PodPlacement, classes: Iterable[CapacityClass], groups: NodeGroups) -> list[str]:
    """Return the names of the autoscaled classes that could make a node for the pod, sorted.

    A new node is like a shape of its class, or like an existing node of the class. It has no other
    labels, except those of every node (zone, instance type, system), which may have any value, and
    its own name. Its size is not considered.
    """
    if pod.node_name:
        return []
    return sorted(
        capacity.name
        for capacity in classes
        if capacity.autoscaled and _could(pod, capacity, groups)
    )


def _could(pod: PodPlacement, capacity: CapacityClass, groups: NodeGroups) -> bool:
    inside = capacity.inside
    alike = groups.groups_for(pod, capacity.keys)
    if len(alike) * len(inside) * work(pod) > _MOST_LOOKS:
        return True
    nodes = [
        group.node
        for group in alike
        if node_affinity.holds(inside, group.node.labels, group.node.name)
    ]
    return could_make(pod, capacity, nodes)


def could_make(pod: PodPlacement, capacity: CapacityClass, nodes: Iterable[Node]) -> bool:
    """Return whether an autoscaled class could make a node for the pod; `nodes` are its nodes."""
    inside = capacity.inside
    like = [
        _Model(node.labels, [taint for taint in node.taints if not passing(taint)])
        for node in nodes
    ]
    models = [model for model in like if untolerated(model.taints, pod.tolerations) is None]
    if _opens(capacity, pod):
        models.append(_Model({}, ()))
    return any(
        _meets(asked, shape, model)
        for shape in inside
        for asked in _label_terms(pod, shape)
        for model in models
    )


def _opens(capacity: CapacityClass, pod: PodPlacement) -> bool:
    """Return whether the pod tolerates a taint of the class.

    If a class has shapes of several providers, each with its taint, one is enough.
    """
    taints: list[Taint] = [{"effect": "NoSchedule", **taint} for taint in capacity.taints]
    return not taints or any(untolerated([taint], pod.tolerations) is None for taint in taints)


def _label_terms(pod: PodPlacement, shape: Term) -> Iterator[Mapping[str, Sequence[Requirement]]]:
    """Yield the pod's requirements by label, for each term that a node of the shape may meet."""
    for term in [{}] if pod.required is None else pod.required:
        if pod.required is not None and node_affinity.is_empty(term):
            continue
        # In this order: the second is looked up in the first, and an author's term may be long.
        joined = node_affinity.both(term, shape)
        if joined.get("matchFields") or node_affinity.contradiction(joined, pod.node_selector):
            # The name of a new node is not known yet.
            continue
        asked: dict[str, list[Requirement]] = {
            key: [label_values.equal(key, value)] for key, value in pod.node_selector.items()
        }
        for requirement in term.get("matchExpressions") or ():
            asked.setdefault(requirement.get("key", ""), []).append(requirement)
        for key in topology_keys(pod):
            asked.setdefault(key, []).append({"key": key, "operator": "Exists"})
        yield asked


def _meets(asked: Mapping[str, Sequence[Requirement]], shape: Term, model: _Model) -> bool:
    free = node_affinity.keys([shape])
    return all(
        key in free
        or key in _WELL_KNOWN
        or key.startswith(_OF_PROVIDERS)
        or _holds(requirements, _value(key, model))
        for key, requirements in asked.items()
    )


def _value(key: str, model: _Model) -> str | None:
    return _OWN_NAME if key == names.HOSTNAME_LABEL else model.labels.get(key)


def _holds(requirements: Sequence[Requirement], value: str | None) -> bool:
    return all(label_values.holds(requirement, value) for requirement in requirements)
