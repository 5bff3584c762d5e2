"""Explain in one line why no node admits a decided pod."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import orjson

from webhook import names
from webhook.placement import capacity_request, label_values, node_affinity, on_demand, topology
from webhook.placement import pod as pods
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import admits, format_requirement, work
from webhook.placement.pod_requests import lacking, requests, with_devices
from webhook.placement.runtime_class import EVERY_TAINT
from webhook.placement.shortfall import WARNING_MAX_CHARACTERS, Condition, shortfall
from webhook.recent import Recent
from webhook.shortening import fit

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping, Sequence

    from webhook.decision.decision import Decision
    from webhook.placement.capacity import Mode
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject, Term
    from webhook.policy.policy_set import PolicySet

# Cached results; a change of a node clears the cache. Pods of one workload share a result.
_CACHED_RESULTS: Final = 4096
_LONGEST_KEY: Final = 1024
# Limits on the size of a pod's constraints, and on that size times the nodes to check, at a
# fraction of a microsecond each. An author may fill a request. A pod over the limit gets no result.
_MOST_CONSTRAINTS: Final = 2000
_MOST_WORK: Final = 100_000
# An affinity with more terms, requirements or keys is reported as one condition.
_MAX_AFFINITY_PARTS: Final = 32
_WHOLE: Final = "required affinity"
_ON_NODES: Final = ("nodeSelector", "affinity", "topologySpreadConstraints", "tolerations")


def demands(
    original: PodPlacement, final: PodPlacement, decision: Decision, policies: PolicySet
) -> list[Condition]:
    """Return the conditions in `final`'s nodeSelector, topologies and required affinity.

    `original` is the pod's placement as received, `final` the placement that was decided.
    """
    result = [*_of_selector(final, decision), *_of_topologies(final, decision, policies)]
    if final.required is None:
        return result
    if max(len(final.required), len(original.required or ())) > _MAX_AFFINITY_PARTS:
        return [*result, Condition(_WHOLE, "", final.required)]
    return [*result, *_of_policies(final, decision, policies), *_of_pod(original, final, policies)]


def whole(final: PodPlacement) -> Condition | None:
    """Return the required affinity as one condition, for what `demands` does not list."""
    return None if final.required is None else Condition(_WHOLE, "", final.required)


def _of_selector(final: PodPlacement, decision: Decision) -> list[Condition]:
    selector = final.node_selector
    if len(selector) > _MAX_AFFINITY_PARTS:
        every = [label_values.equal(key, value) for key, value in selector.items()]
        return [Condition("nodeSelector", "", ({"matchExpressions": every},))]
    setters = {e.field: e.policy for e in decision.trace if e.outcome == "set"}
    return [
        Condition(
            f"{key}={value}",
            setters.get(f"nodeSelector[{key}]", ""),
            ({"matchExpressions": [label_values.equal(key, value)]},),
        )
        for key, value in selector.items()
    ]


def _of_topologies(
    final: PodPlacement, decision: Decision, policies: PolicySet
) -> Iterator[Condition]:
    applied = {(e.policy, e.field) for e in decision.trace if e.outcome == "set"}
    setters = {
        key: policy.name
        for policy in policies.policies
        if policy.name in decision.policies
        for setting in policy.settings
        if (policy.name, setting.field) in applied
        for key in setting.topology_keys
    }
    for key in topology.topology_keys(final):
        yield Condition(f"topologyKey {key}", setters.get(key, ""), topology.condition([key]))


def _of_policies(
    final: PodPlacement, decision: Decision, policies: PolicySet
) -> Iterator[Condition]:
    """Yield the conditions in the pod's required affinity that come from policies' settings."""
    applied = {(e.policy, e.field) for e in decision.trace if e.outcome == "set"}
    took_part = set(decision.policies)
    for policy in policies.policies:
        if policy.name in took_part:
            for setting in policy.settings:
                terms = setting.condition
                if terms and (policy.name, setting.field) in applied and setting.holds_in(final):
                    text = ""
                    if isinstance(setting, CapacitySetting):
                        text = _of_class(setting.capacity.name, setting.mode)
                    yield from _conditions(text, policy.name, terms)


def _of_class(name: str, mode: Mode) -> str:
    return f"class {name}" if mode.requires else f"outside class {name}"


def _of_pod(
    original: PodPlacement, final: PodPlacement, policies: PolicySet
) -> Iterator[Condition]:
    """Yield the pod's own conditions: its affinity terms and its class requests."""
    text = original.annotations.get(names.CAPACITY)
    for request in capacity_request.parse(text, policies.classes) if text else ():
        terms = request.mode.condition(policies.classes[request.class_name])
        if terms and _implied(terms, final):
            yield Condition(_of_class(request.class_name, request.mode), "", terms)
    if original.required is not None and _implied(original.required, final):
        yield from _conditions("", "", original.required)


def _implied(terms: Sequence[Term], final: PodPlacement) -> bool:
    return all(node_affinity.implies(term, terms) for term in final.required or ())


def _conditions(text: str, policy: str, terms: Sequence[Term]) -> Iterator[Condition]:
    """Yield a condition for each requirement of a single term, or one for several terms."""
    requirements = terms[0].get("matchExpressions") or () if len(terms) == 1 else ()
    if (
        text
        or len(terms) != 1
        or terms[0].get("matchFields")
        or len(requirements) > _MAX_AFFINITY_PARTS
    ):
        yield Condition(text or _WHOLE, policy, terms)
        return
    for requirement in requirements:
        yield Condition(
            format_requirement(requirement), policy, ({"matchExpressions": [requirement]},)
        )


class Prospects:
    """The nodes, with cached results for pods that have the same constraints.

    The caller that watches the nodes keeps `groups` current. `devices` returns the resources that
    DeviceClasses provide; None while they are not known.
    """

    def __init__(
        self,
        groups: NodeGroups | None = None,
        devices: Callable[[], Container[str] | None] = lambda: None,
    ) -> None:
        self._devices = devices
        self.groups = NodeGroups() if groups is None else groups
        self._version = self.groups.version
        self._admitted: Recent[bytes, bool] = Recent(_CACHED_RESULTS)
        self._explanations: Recent[tuple[object, ...], str] = Recent(_CACHED_RESULTS)

    def unplaceable(self, pod: JsonObject, decision: Decision, policies: PolicySet) -> str:
        """Return why no node could admit the pod as decided; empty if one could, now or on demand.

        `pod` is the pod as received. The result is empty for pods that are rejected, left alone,
        already bound or without a run. Taints are ignored for a pod that is gated, or will be by
        Kueue, because the controller that lifts the gate may add tolerations, and for a pod that
        gets another RuntimeClass than `pod` has, because the API server adds the tolerations of
        that class.
        """
        final = decision.placement
        if final is None or decision.result not in ("placed", "unchanged") or final.node_name:
            return ""
        if self._version != self.groups.version:
            self._version = self.groups.version
            self._admitted.clear()
            self._explanations.clear()
        spec = pod["spec"]
        requested = with_devices(requests(spec), self._devices(), self.groups.rooms())
        tolerant = _may_get_tolerations(pod, final)
        if tolerant:
            final = _tolerate_all(final)
        key = _key(final, requested)
        if self._is_admitted(key, final, requested):
            return ""
        question = (key, _received_key(pod), policies.hash, decision.policies)
        explanation = self._explanations.get(question)
        if explanation is None:
            original = pods.parse_pod(pod)
            if tolerant:
                original = _tolerate_all(original)
            explanation = self._explain(original, final, requested, decision, policies)
            self._explanations.put(question, explanation)
        return explanation

    def unplaceable_as_stored(
        self, stored: JsonObject, decision: Decision, policies: PolicySet
    ) -> str:
        """Return why no node could admit the stored pod as it is; empty if one could, or if bound.

        `decision` is any decision on it. The scheduler judges what is stored, not what policies
        would make of it, so no condition is attributed to a policy.
        """
        placement = pods.parse_pod(stored)
        as_it_is = decision._replace(result="unchanged", placement=placement, policies=(), trace=())
        return self.unplaceable(stored, as_it_is, policies)

    def _is_admitted(self, key: bytes, pod: PodPlacement, requested: Mapping[str, int]) -> bool:
        is_admitted = self._admitted.get(key)
        if is_admitted is None:
            is_admitted = self._is_admitted_somewhere(pod, requested)
            self._admitted.put(key, is_admitted)
        return is_admitted

    def _is_admitted_somewhere(self, pod: PodPlacement, requested: Mapping[str, int]) -> bool:
        """Return True if some node admits the pod, or if the check would take too long."""
        effort = work(pod)
        if effort + len(requested) > _MOST_CONSTRAINTS:
            return True
        groups = self.groups.groups_for(pod)
        rooms = sum(len(alike.rooms) for alike in groups)
        if effort * len(groups) + len(requested) * rooms > _MOST_WORK:
            return True
        return any(
            admits(pod, alike.node)
            and any(lacking(requested, room) is None for room, _ in alike.rooms.values())
            for alike in groups
        )

    def _explain(
        self,
        original: PodPlacement,
        final: PodPlacement,
        requested: Mapping[str, int],
        decision: Decision,
        policies: PolicySet,
    ) -> str:
        if on_demand.makers(final, policies.classes.values(), self.groups):
            return ""
        groups = self.groups.groups_for(final)
        conditions = demands(original, final, decision, policies)
        shortage = shortfall(final, requested, conditions, groups, whole(final))
        ours = any(condition.policy for condition in shortage.conditions)
        as_created = not ours and not self._is_admitted(
            _key(original, requested), original, requested
        )
        begin = f"0 of {len(self.groups)} nodes{' for the pod as created' if as_created else ''}: "
        return fit(begin + shortage.text, WARNING_MAX_CHARACTERS)


def _may_get_tolerations(pod: JsonObject, final: PodPlacement) -> bool:
    # The controller that lifts a gate cannot remove selectors (KEP-3838), and neither can a class.
    spec, labels = pod["spec"], pod["metadata"].get("labels") or {}
    other_class = final.runtime_class_name != (spec.get("runtimeClassName") or "")
    # Kueue's webhook, which adds its gate, may be called after this one.
    queued = names.KUEUE_QUEUE in labels and names.KUEUE_PODSET not in labels
    return bool(spec.get("schedulingGates")) or queued or other_class


def _tolerate_all(placement: PodPlacement) -> PodPlacement:
    return placement._replace(tolerations=[EVERY_TAINT])


def _key(pod: PodPlacement, *more: object) -> bytes:
    """Return a key of everything in the pod that the result depends on."""
    keys = [*topology.topology_keys(pod)]
    return _short((pod.node_selector, pod.required, pod.tolerations, keys, more))


def _received_key(pod: JsonObject) -> bytes:
    """Return a key of everything in the received pod that the message depends on."""
    spec = pod["spec"]
    annotations = pod["metadata"].get("annotations") or {}
    fields = [spec.get(key) for key in _ON_NODES]
    return _short((fields, annotations.get(names.CAPACITY)))


def _short(value: object) -> bytes:
    """Return the serialized value, or a digest of it if it is long."""
    text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return text if len(text) <= _LONGEST_KEY else blake2b(text).digest()
