"""Whether nodes that are made on demand could admit a pod: those of autoscaled classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.placement import label_values, node_affinity
from webhook.placement.tolerations import untolerated

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Requirement, Taint, Term

# Of each node that is made, in whatever values its maker has.
_WELL_KNOWN: Final = ("topology.kubernetes.io/", "node.kubernetes.io/", "failure-domain.beta.")
# Of terms that would have to be looked at; of more than that it is taken that one can be met.
_MOST_PAIRS: Final = 2048
_OF_EVERY_NODE: Final = frozenset((names.OS_LABEL, "kubernetes.io/arch"))


def makers(
    pod: PodPlacement,
    classes: Iterable[CapacityClass],
    values: Callable[[str], Collection[str]],
) -> list[str]:
    """The names of the autoscaled classes that could make a node for the pod, sorted.

    A class speaks for the labels that it names. Any other label that the pod demands has to be
    well known (zone, instance type, system), or on some node as it is demanded: else nobody would
    ever hear of a label that no node has. `values` gives those that nodes have of a label. How
    large its nodes are is not asked.
    """
    if pod.node_name:
        return []
    return sorted(each.name for each in classes if each.autoscaled and _could(pod, each, values))


def _could(
    pod: PodPlacement, capacity: CapacityClass, values: Callable[[str], Collection[str]]
) -> bool:
    taints = [_excluding(taint) for taint in capacity.taints]
    # Of a class with shapes of several providers, each with its taint, one is enough.
    if taints and all(untolerated([taint], pod.tolerations) for taint in taints):
        return False
    if pod.required is None:
        return any(_meets(shape, shape, pod, values) for shape in capacity.inside)
    if len(pod.required) * len(capacity.inside) > _MOST_PAIRS:
        return True
    return any(
        _meets(node_affinity.both(shape, term), shape, pod, values)
        for shape in capacity.inside
        for term in pod.required
        if not node_affinity.is_empty(term)
    )


def _excluding(taint: Taint) -> Taint:
    return taint if taint.get("effect") else {**taint, "effect": "NoSchedule"}


def _meets(
    term: Term, shape: Term, pod: PodPlacement, values: Callable[[str], Collection[str]]
) -> bool:
    """Whether a node of the shape may meet the term and the nodeSelector."""
    if term.get("matchFields") or node_affinity.contradiction(term, pod.node_selector):
        return False
    own = node_affinity.keys([shape])
    asked: dict[str, list[Requirement]] = {}
    for key, value in pod.node_selector.items():
        asked.setdefault(key, []).append({"key": key, "operator": "In", "values": [value]})
    for requirement in term.get("matchExpressions") or ():
        asked.setdefault(requirement.get("key", ""), []).append(requirement)
    return all(key in own or _known(key, group, values) for key, group in asked.items())


def _known(
    key: str, requirements: list[Requirement], values: Callable[[str], Collection[str]]
) -> bool:
    if _all_hold(requirements, None):
        return True
    if key == names.HOSTNAME_LABEL:
        # A node that is made has a name that nobody knows yet.
        return False
    if key in _OF_EVERY_NODE or key.startswith(_WELL_KNOWN):
        return True
    return any(_all_hold(requirements, value) for value in values(key))


def _all_hold(requirements: list[Requirement], value: str | None) -> bool:
    return all(label_values.holds(each, value) for each in requirements)
