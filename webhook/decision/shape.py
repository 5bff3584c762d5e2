"""The part of a pod that decisions depend on: pods of one shape get the same decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from webhook import names
from webhook.decision.engine import subject_of
from webhook.placement import pod as pods
from webhook.placement.kueue import flavor_of
from webhook.placement.settings import MemberSetting
from webhook.policy.conditions import FIELDS, reduce_value

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from webhook.decision.decision import ReceivedPod
    from webhook.policy.policy_set import PolicySet

# Annotations that the engine reads itself.
_ANNOTATIONS: Final = (names.CAPACITY, names.MIRROR_POD, names.HISTORY, names.AVOID_NODES)


class Shapes:
    """Compute the shapes of pods for a policy set.

    Pods of many runs, and the replicas of one, mostly differ by labels that no policy tests or
    writes, by index and by the name of their run. A shape leaves these out. It also leaves out
    label values and indexes that no policy names, because no condition distinguishes them.
    """

    def __init__(self, policies: PolicySet) -> None:
        self._policies = policies
        self._varied = sorted(policies.varied)
        self._tested = policies.tested
        self._labels = _member_keys(policies, "labels")
        self._annotations = _member_keys(policies, "annotations").union(_ANNOTATIONS)
        self._exceptions = tuple(policies.exceptions)

    def shape_of(self, received: ReceivedPod) -> bytes | None:
        """Return the shape; None if the pod has none and needs a decision of its own.

        Raises InvalidPod if the pod's placement fields have invalid types.
        """
        arrival, placement, identity, keeps, _ = received
        space, now, tested = arrival.namespace_labels, arrival.now, self._tested
        asked = subject_of(arrival, placement, identity, self._policies)
        shape = (
            None if now is None else [exception.in_force(now) for exception in self._exceptions],
            arrival.namespace,
            sorted(space.items()),
            identity._replace(run="", replica_index=None, replicas=None),
            self._varied and self._policies.variants(self._varied, received.replica),
            [
                reduce_value(match_field, asked, tested[match_field.name])
                for match_field in FIELDS
                if match_field.name in tested
            ],
            keeps,
            arrival.selector,
            flavor_of(placement, pods.scheduling_gates(arrival.pod), space),
            # IsNull distinguishes an empty map from a missing one.
            bool(placement.labels),
            bool(placement.annotations),
            _among(self._labels, placement.labels),
            _among(self._annotations, placement.annotations),
            placement._replace(labels={}, annotations={}),
        )
        try:
            return orjson.dumps(shape, option=orjson.OPT_SORT_KEYS, default=list)
        except TypeError:  # a number of over 64 bits, say
            return None


def _member_keys(policies: PolicySet, members: str) -> frozenset[str]:
    return frozenset(
        setting.key
        for policy in policies.policies
        for setting in policy.settings
        if isinstance(setting, MemberSetting) and setting.map == members
    )


def _among(keys: Collection[str], members: Mapping[str, str]) -> list[tuple[str, str]]:
    return sorted([member for member in members.items() if member[0] in keys])
