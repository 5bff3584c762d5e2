"""Whether any node could admit a pod that was decided on; if none, why, in one line."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import orjson

from webhook import names
from webhook.admission.demands import demands, whole
from webhook.placement import on_demand
from webhook.placement import pod as pods
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import admits, work
from webhook.placement.pod_requests import requests
from webhook.placement.room import lacking
from webhook.placement.shortfall import LIMIT, cut, shortfall
from webhook.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.admission.decision import Decision
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject, Toleration
    from webhook.policy.policy_set import PolicySet

# Answers that are remembered until a node changes. Pods of one workload ask the same.
_REMEMBERED: Final = 4096
_LONGEST_KEY: Final = 1024
# Of what a pod asks for, and looks at it on all nodes, a fraction of a microsecond each: an author
# may write as much as a request holds. Of such a pod nothing is said.
_MOST_ASKED: Final = 2000
_MOST_WORK: Final = 100_000
# Whoever lifts the gate may add tolerations, and may take no selector away (KEP-3838).
_ALL_TOLERATED: Final[Toleration] = {"operator": "Exists"}


class Prospects:
    """Knows the nodes, and remembers what it said of pods that demand the same.

    `groups` is to be kept current by whoever sees the nodes.
    """

    def __init__(self, groups: NodeGroups | None = None) -> None:
        self.groups = NodeGroups() if groups is None else groups
        self._version = self.groups.version
        self._admitted: Recent[bytes, bool] = Recent(_REMEMBERED)
        self._said: Recent[tuple[object, ...], str] = Recent(_REMEMBERED)

    def unplaceable(self, pod: JsonObject, decision: Decision, policies: PolicySet) -> str:
        """Why no node could admit the pod, as it is decided; empty if one could, now or on demand.

        `pod` is as it came. Nothing is said of pods that are refused, left alone, of no run, or
        bound. Of a pod behind a gate taints are not counted: who lifts it may add tolerations.
        """
        final = decision.placement
        if final is None or decision.result not in ("placed", "unchanged") or final.node_name:
            return ""
        if self._version != self.groups.version:
            self._version = self.groups.version
            self._admitted.clear()
            self._said.clear()
        spec = pod["spec"]
        asked = requests(spec)
        final = _behind_gates(spec, final)
        key = _key(final, asked)
        if self._some(key, final, asked):
            return ""
        asking = (key, _came(pod), policies.hash, decision.policies)
        said = self._said.get(asking)
        if said is None:
            own = _behind_gates(spec, pods.read(pod))
            said = self._why(own, final, asked, decision, policies)
            self._said.put(asking, said)
        return said

    def _some(self, key: bytes, pod: PodPlacement, asked: Mapping[str, int]) -> bool:
        known = self._admitted.get(key)
        if known is None:
            known = self._found(pod, asked)
            self._admitted.put(key, known)
        return known

    def _found(self, pod: PodPlacement, asked: Mapping[str, int]) -> bool:
        """Whether some node admits the pod; taken for granted where that is too much to look at."""
        much = work(pod)
        if much + len(asked) > _MOST_ASKED:
            return True
        groups = self.groups.of(pod)
        rooms = sum(len(alike.rooms) for alike in groups)
        if much * len(groups) + len(asked) * rooms > _MOST_WORK:
            return True
        return any(
            admits(pod, alike.node)
            and any(lacking(asked, room) is None for room, _ in alike.rooms.values())
            for alike in groups
        )

    def _why(
        self,
        own: PodPlacement,
        final: PodPlacement,
        asked: Mapping[str, int],
        decision: Decision,
        policies: PolicySet,
    ) -> str:
        if on_demand.makers(final, policies.classes.values(), self.groups):
            return ""
        groups = self.groups.of(final)
        conditions = demands(own, final, decision, policies)
        found = shortfall(final, asked, conditions, groups, whole(final))
        ours = any(condition.policy for condition in found.conditions)
        came = not ours and not self._some(_key(own, asked), own, asked)
        begin = f"0 of {len(self.groups)} nodes{' as the pod came' if came else ''}: "
        return cut(begin + found.text, LIMIT)


def _behind_gates(spec: JsonObject, placement: PodPlacement) -> PodPlacement:
    if not spec.get("schedulingGates"):
        return placement
    return placement._replace(tolerations=[_ALL_TOLERATED])


def _key(pod: PodPlacement, *more: object) -> bytes:
    """All of the pod that the answer depends on."""
    return _short((pod.node_selector, pod.required, pod.tolerations, more))


def _came(pod: JsonObject) -> bytes:
    """All of the pod as it came that what is said of it depends on."""
    spec = pod["spec"]
    annotations = pod["metadata"].get("annotations") or {}
    fields = [spec.get(key) for key in ("nodeSelector", "affinity", "tolerations")]
    return _short((fields, annotations.get(names.CAPACITY)))


def _short(value: object) -> bytes:
    """The value, or a digest of it where a pod says much."""
    told = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return told if len(told) <= _LONGEST_KEY else blake2b(told).digest()
