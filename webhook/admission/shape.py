"""All of a pod that a decision can depend on: pods of one shape have one decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from webhook import names
from webhook.admission.arrival import keeps_placement
from webhook.identity import identify
from webhook.placement import pod as pods
from webhook.placement.kueue import flavor_of
from webhook.placement.wishes import MemberWish
from webhook.policy import subject

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.admission.arrival import Arrival
    from webhook.policy.policy_set import PolicySet

# The engine asks for these itself.
_ANNOTATIONS: Final = (names.CAPACITY, names.MIRROR_POD)


class Shapes:
    """Tells the shapes of pods, as some policy sets together tell pods apart.

    Pods of many runs, and the replicas of one, mostly differ by labels that no policy reads or
    writes, by their index and by the name of their run: these are left out.
    """

    def __init__(self, sets: Iterable[PolicySet]) -> None:
        both = tuple(sets)
        self._labels = frozenset[str]().union(*(each.reads_labels for each in both))
        self._labels |= _written(both, "labels")
        self._annotations = _written(both, "annotations").union(_ANNOTATIONS)
        self._resources = any(each.reads_resources for each in both)
        self._volumes = any(each.reads_volumes for each in both)
        self._indexes = any(each.reads_replica_indexes for each in both)
        self._exceptions = tuple(exception for each in both for exception in each.exceptions)

    def of(self, arrival: Arrival) -> bytes | None:
        """The shape; None if it cannot be told, and the pod is to be decided on by itself.

        Raises InvalidPod if the pod's placement fields have no pod's shape.
        """
        own = pods.read(arrival.pod)
        identity = identify(own.labels, own.annotations, arrival.namespace_labels)
        if identity is not None:
            index = identity.replica_index if self._indexes else None
            identity = identity._replace(run="", replica_index=index)
        spec, now = arrival.pod["spec"], arrival.now
        told = [
            None if now is None else [each.in_force(now) for each in self._exceptions],
            arrival.namespace,
            sorted(arrival.namespace_labels.items()),
            identity,
            keeps_placement(arrival, own),
            flavor_of(own, pods.scheduling_gates(arrival.pod), arrival.namespace_labels),
            # Under IsNull it matters whether there is any.
            bool(own.labels),
            bool(own.annotations),
            _among(self._labels, own.labels),
            _among(self._annotations, own.annotations),
            own[2:],
            sorted(subject.resources(spec)) if self._resources else None,
            sorted(subject.volumes(spec)) if self._volumes else None,
        ]
        try:
            return orjson.dumps(told, option=orjson.OPT_SORT_KEYS, default=list)
        except TypeError:  # a number of over 64 bits, say
            return None


def _written(sets: Iterable[PolicySet], members: str) -> frozenset[str]:
    return frozenset(
        wish.key
        for each in sets
        for policy in each.policies
        for wish in policy.wishes
        if isinstance(wish, MemberWish) and wish.map == members
    )


def _among(keys: Iterable[str], members: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted((key, members[key]) for key in keys if key in members)
