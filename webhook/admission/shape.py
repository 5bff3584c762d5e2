"""All of a pod that a decision can depend on: pods of one shape have one decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from webhook import names
from webhook.placement import pod as pods
from webhook.placement.kueue import flavor_of
from webhook.placement.settings import MemberSetting
from webhook.policy import subject
from webhook.policy.conditions import FIELDS, merge_tested, reduce_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from webhook.admission.evaluation import ReceivedPod
    from webhook.policy.policy_set import PolicySet

# The engine asks for these itself.
_ANNOTATIONS: Final = (names.CAPACITY, names.MIRROR_POD)


class Shape(NamedTuple):
    """`who` is all that decides which policies take part, `own` what they then find."""

    who: bytes
    own: bytes


class Shapes:
    """Tells the shapes of pods, as some policy sets together tell pods apart.

    Pods of many runs, and the replicas of one, mostly differ by labels that no policy tests or
    writes, by their index and by the name of their run: these are left out. So are values of labels
    and indexes that no policy names: to every condition they are one like the other.
    """

    def __init__(self, sets: Iterable[PolicySet]) -> None:
        both = tuple(sets)
        self._tested = merge_tested(each.tested for each in both)
        self._labels = _written(both, "labels")
        self._annotations = _written(both, "annotations").union(_ANNOTATIONS)
        self._exceptions = tuple(exception for each in both for exception in each.exceptions)

    def of(self, seen: ReceivedPod) -> Shape | None:
        """The shape; None if it cannot be told, and the pod is to be decided on by itself.

        Raises InvalidPod if the pod's placement fields have no pod's shape.
        """
        arrival, own, identity, keeps, _ = seen
        space, now, tested = arrival.namespace_labels, arrival.now, self._tested
        spec = arrival.pod["spec"]
        asked = subject.subject_of(arrival.namespace, space, own.labels, identity, spec, tested)
        who = (
            None if now is None else [each.in_force(now) for each in self._exceptions],
            arrival.namespace,
            sorted(space.items()),
            identity._replace(run="", replica_index=None),
            [
                reduce_value(each, asked, tested[each.name])
                for each in FIELDS
                if each.name in tested
            ],
        )
        left = (
            keeps,
            flavor_of(own, pods.scheduling_gates(arrival.pod), space),
            # Under IsNull it matters whether there is any.
            bool(own.labels),
            bool(own.annotations),
            _among(self._labels, own.labels),
            _among(self._annotations, own.annotations),
            own._replace(labels={}, annotations={}),
        )
        try:
            return Shape(_bytes(who), _bytes(left))
        except TypeError:  # a number of over 64 bits, say
            return None


def _bytes(told: object) -> bytes:
    return orjson.dumps(told, option=orjson.OPT_SORT_KEYS, default=list)


def _written(sets: Iterable[PolicySet], members: str) -> frozenset[str]:
    return frozenset(
        setting.key
        for each in sets
        for policy in each.policies
        for setting in policy.settings
        if isinstance(setting, MemberSetting) and setting.map == members
    )


def _among(keys: Collection[str], members: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted([member for member in members.items() if member[0] in keys])
