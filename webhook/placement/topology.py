"""The node labels without which no node admits a pod, because others are counted by them.

A node that lacks the topologyKey of a spread constraint with DoNotSchedule, or of required affinity
to pods, admits no pod with it. Source: k8s.io/kubernetes v1.36, Filter of the scheduler's plugins
podtopologyspread and interpodaffinity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject, Requirement, Term

AFFINITY: Final = "affinity.podAffinity.required"
_KEY: Final = "topologyKey"


def topology_keys(pod: PodPlacement) -> Collection[str]:
    """Return the keys; none for a bound pod, which no scheduler judges."""
    if pod.node_name or not (pod.topology_spread or pod.lists):
        return ()
    return keys_of(pod.topology_spread, pod.lists.get(AFFINITY, ()))


def condition(keys: Collection[str]) -> Sequence[Term]:
    """Return a node's condition to have labels with all these keys."""
    exist: list[Requirement] = [{"key": key, "operator": "Exists"} for key in keys]
    return ({"matchExpressions": exist},) if exist else ()


def lacking_key(pod: PodPlacement, labels: Mapping[str, str]) -> str | None:
    """Return the first key that a node with these labels lacks; None if it lacks none."""
    return next((key for key in topology_keys(pod) if key not in labels), None)


def keys_of(
    spread: Iterable[JsonObject] = (), affinity: Iterable[JsonObject] = ()
) -> Collection[str]:
    """Return the keys of spread constraints, and of terms of required affinity to pods."""
    asked: list[Any] = [
        constraint.get(_KEY)
        for constraint in spread
        if constraint.get("whenUnsatisfiable") == "DoNotSchedule"
    ]
    asked += [term.get(_KEY) for term in affinity]
    return dict.fromkeys(key for key in asked if isinstance(key, str) and key)


def spread_pair(constraint: JsonObject) -> tuple[str, str]:
    """Return a spread constraint's topologyKey and whenUnsatisfiable, unique within a pod."""
    return str(constraint.get(_KEY)), str(constraint.get("whenUnsatisfiable"))
