"""Evaluate a pod: whether it reaches the webhook, the decision, and what follows from it."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import jsonpatch

from webhook import names
from webhook.decision.advice import warnings
from webhook.decision.arrival import (
    Arrival,
    history_of,
    owned_by_daemon_set,
    selecting_owner,
)
from webhook.decision.decision import Decision
from webhook.decision.engine import decide, merged_if_held, receive_pod
from webhook.evaluation import limit_ranges
from webhook.evaluation.dry_run import Answer, question
from webhook.evaluation.plugins import (
    PluginInputs,
    admit,
    conflicts,
    possible,
)
from webhook.evaluation.sending import unsent
from webhook.evaluation.surveys import not_judged, survey_pod
from webhook.placement import pod as pods
from webhook.placement.daemon import held_off, stranded
from webhook.placement.plugin_tolerations import RESTRICTION
from webhook.placement.pod_requests import requests, with_devices
from webhook.placement.runtime_class import EVERY_TAINT, FIELD
from webhook.placement.settings import field_of
from webhook.placement.trace import EFFECTIVE, warning
from webhook.policy.findings import path_text
from webhook.policy.refused_pods import refusals
from webhook.policy.subject import resources
from webhook.run.observation import owner
from webhook.workloads.object import from_answer
from webhook.workloads.template import PodTemplate
from webhook.workloads.workload_faults import template_faults

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from webhook.decision.arrival import Cluster
    from webhook.evaluation.dry_run import Server
    from webhook.evaluation.surveys import Surveys
    from webhook.placement.fallback import History
    from webhook.placement.nodes import Node
    from webhook.placement.owner_selector import OwnerSelector
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject, Toleration
    from webhook.policy.policy_set import PolicySet

# The resources for which LimitRanges have defaults in practice.
_DEFAULTED: Final = ("cpu", "memory", "ephemeral-storage")
# What of a placement decides about nodes.
_OF_NODES: Final = (
    "node_name",
    "node_selector",
    "required",
    "tolerations",
    "topology_spread",
    "lists",
    "runtime_class_name",
)
# An operation whose place is missing.
_INAPPLICABLE: Final = (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException)


@dataclass(frozen=True, slots=True)
class World:
    """Everything that an evaluation depends on. No field has a default: none can be forgotten.

    namespaces:    labels by namespace, as far as they are known
    now:           the time, because exceptions end; None: no exception is in force
    configuration: the webhook configuration that sends pods; None if unknown
    classes:       names of PriorityClasses and RuntimeClasses, by kind, as far as they may be
                   listed; None if no cluster was asked
    plugins:       what the API server's plugins read
    nodes:         None if unknown
    server:        asks an API server about pods as decided; None if none is asked
    history:       what happened to the pods' replicas before, as the controller would say it; None:
                   what a pod of a Run says itself
    """

    policies: PolicySet
    cluster: Cluster
    namespaces: Mapping[str, Mapping[str, str]]
    now: datetime | None
    configuration: Mapping[str, Any] | None
    classes: Mapping[str, Collection[str]] | None
    plugins: PluginInputs
    nodes: Sequence[Node] | None
    server: Server | None
    history: History | None
    # The cluster, with the objects that plugins read.
    known_cluster: Cluster = field(init=False, repr=False, compare=False)
    # What is the same for equal pods, by what it depends on. They grow with the pods evaluated.
    surveyed: dict[str, Surveys] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )
    faults: dict[str, Sequence[str]] = field(
        init=False, default_factory=dict, repr=False, compare=False
    )

    def evaluate(
        self,
        pod: JsonObject,
        namespace: str,
        *,
        led: bool,
        user: str = "",
        groups: Collection[str] = (),
        history: History | None = None,
        selector: OwnerSelector | None = None,
    ) -> Evaluation:
        """Return what happens to a new v1.Pod; the other arguments are those of Arrival.

        `history`: that of its replica, where the pod itself does not have it.
        Raises InvalidPod if a placement field of the pod has a wrong type.
        """
        return self.decided(
            self.arrival(
                pod, namespace, history, led=led, user=user, groups=groups, selector=selector
            )
        )

    def arrival(
        self,
        pod: JsonObject,
        namespace: str,
        history: History | None = None,
        *,
        led: bool,
        user: str = "",
        groups: Collection[str] = (),
        selector: OwnerSelector | None = None,
    ) -> Arrival:
        """Return a new v1.Pod as the webhook gets it; the arguments are those of `evaluate`."""
        labels = labels_of(namespace, self.namespaces)
        selector = selector or self.plugins.selector(pod, namespace)
        pod = admit(pod, namespace, self.plugins, self.cluster.node, labels)
        history = self.history or history or (history_of(pod) if owner(pod) else None)
        return Arrival(pod, namespace, labels, user, self.now, groups, led, history, selector)

    def __post_init__(self) -> None:
        known = self.plugins
        cluster = replace(
            self.cluster, runtime_classes=known.runtime_classes, flavors=known.flavors or ()
        )
        object.__setattr__(self, "known_cluster", cluster)

    def decided(self, arrival: Arrival) -> Evaluation:
        """Return what happens to a pod that the webhook gets. Raises as `evaluate` does."""
        return Evaluation(self, arrival, self._sent(arrival))

    def _sent(self, arrival: Arrival) -> Decision:
        decision = decide(arrival, self.policies, self.known_cluster)
        if decision.identity is None:
            return decision
        own = arrival.pod["metadata"].get("labels") or {}
        found = unsent(own, arrival.namespace, arrival.namespace_labels, self.configuration)
        if found is None:
            return decision
        return Decision("not-sent", f"{found.reason}; {found.cure}", identity=decision.identity)


@dataclass(frozen=True)
class Evaluation:
    """What happens to a pod that is created.

    decision: the engine's, or that the pod is not sent to the webhook
    """

    world: World
    arrival: Arrival
    decision: Decision

    @cached_property
    def warnings(self) -> Sequence[str]:
        """The warnings that the pod's author gets, and whether nodes evict the pod."""
        evictions = self.nodes.evictions if self.nodes else ""
        found = [*warnings(self.arrival.pod, self.decision), *self.stranded(self.world.nodes)]
        if self.decision.result == "left-alone":
            text = "left alone, but does not meet a requirement"
            found += [warning(f"{text}: {each}") for each in self.unmet]
        return [*found, evictions] if evictions else found

    def stranded(self, nodes: Sequence[Node] | None) -> Sequence[str]:
        """Return a warning if a DaemonSet's pods stay Pending for ever on some of these nodes."""
        placement = self.decision.placement
        if not nodes or placement is None or not owned_by_daemon_set(self.arrival.pod):
            return ()
        own = pods.parse_pod(self.arrival.pod)
        lost = stranded(own, placement, nodes) if placement.tolerations != own.tolerations else None
        return [warning(f"its pods stay Pending {lost}")] if lost and lost.nodes else ()

    @property
    def unmet(self) -> Sequence[str]:
        """Why a DaemonSet's pod does not meet requirements, or on which nodes; also if it is left
        alone."""
        world, received = self.world, receive_pod(self.arrival, self.world.policies.sources)
        merged = received and merged_if_held(received, world.policies, world.known_cluster)
        if not received or not merged:
            return ()
        off = held_off(received.own, merged.placement, world.nodes or ())
        return merged.rejections or ([str(off)] if off.nodes else ())

    @property
    def allowed(self) -> bool:
        """Return True if the pod is admitted, as far as that is known."""
        return self.decision.allowed and not self.refusals

    @cached_property
    def refusals(self) -> Sequence[str]:
        """Why the API server refuses the pod as decided, with the policy; empty if it does not.

        Faults that the pod has without policies are left out: they are its author's. What a plugin
        refuses is none of them, as it depends on the namespace.
        """
        placement = self.placement
        if placement is None:
            return ()
        setters = {e.field: e.policy for e in self._effective()}
        missing = refusals(placement, self.world.classes or {}, setters)
        conflicting = [*self._conflicts(setters)]
        again = self.second[1] if self.second and not conflicting else None
        if again and not again.allowed:
            what = "after plugins of the API server changed the pod again"
            conflicting = [f"{again.reason.removeprefix('fairlead: ')}, {what}"]
        ranges = (self.world.plugins.limit_ranges or {}).get(self.arrival.namespace, ())
        limited = limit_ranges.faults(self.arrival.pod["spec"], ranges)
        return (*missing, *conflicting, *limited, *self._faults(), *self._refused())

    @cached_property
    def answer(self) -> Answer:
        """What the API server says to the pod as decided; nothing if it is not asked."""
        server = self.world.server
        if server is None or not self.decision.allowed:
            return Answer()
        return server(question(self.patched, self.world.policies.sources), self.arrival.namespace)

    @property
    def unread_class(self) -> str:
        """The RuntimeClass of a run's pod as it came, if it is not known; else no text."""
        name = pods.parse_pod(self.arrival.pod).runtime_class_name
        known = name in self.world.plugins.runtime_classes or self.decision.identity is None
        return "" if known else name

    @property
    def unread_defaults(self) -> Sequence[str]:
        """Resources by which policies match, and that an unknown LimitRange may request."""
        world = self.world
        if world.plugins.limit_ranges is not None or self.decision.identity is None:
            return ()
        own = resources(self.arrival.pod["spec"])
        tested = world.policies.tested.get("resources", ())
        return [name for name in _DEFAULTED if name in tested and name not in own]

    @property
    def unread_selector(self) -> str:
        """The owner whose selector a label of a policy may break, if that is not known."""
        arrival, owner = self.arrival, selecting_owner(self.arrival.pod)
        if arrival.selector or not owner:
            return ""
        labels = (each for each in self._effective() if field_of(each.field).selected)
        return f"{owner.kind}/{owner.name}" if any(labels) else ""

    @property
    def placement(self) -> PodPlacement | None:
        """The placement of the pod as it would be; None if the webhook rejects it."""
        if not self.decision.allowed:
            return None
        return self.decision.placement or pods.parse_pod(self.arrival.pod)

    @cached_property
    def nodes(self) -> Surveys | None:
        """Which nodes admit the pod, by its requests too; None if the nodes are unknown."""
        nodes = self.world.nodes
        if nodes is None:
            return None
        changed = self.decision.placement is not None and self.decision.allowed
        last = self.arrival.pod
        asked = [self._asked(last)]
        if changed:
            last = self.stored()
            asked.append(self._asked(last))
        added = self.possible_tolerations
        fields = [(*[getattr(own, each) for each in _OF_NODES], more) for own, more in asked]
        key = repr((fields, added))
        if key not in self.world.surveyed:
            known, classes = self.world.plugins, self.world.policies.classes
            self.world.surveyed[key] = survey_pod(nodes, asked, added, known, classes)
        unjudged = not_judged(last["spec"], asked[-1][1])
        return self.world.surveyed[key]._replace(not_judged=unjudged)

    def _asked(self, pod: JsonObject) -> tuple[PodPlacement, Mapping[str, int]]:
        devices = self.world.plugins.devices or ()
        return pods.parse_pod(pod), with_devices(requests(pod["spec"]), devices, ())

    @cached_property
    def possible_tolerations(self) -> Mapping[str, Sequence[Toleration]]:
        """The tolerations that plugins may add to the pod, if they run; any, if one that runs does
        so by an annotation that is not read."""
        inputs = self.world.plugins
        found = possible(self.arrival.pod["spec"], inputs, self.arrival.namespace_labels)
        if self.namespace_unread and inputs.running.get(RESTRICTION):
            return {**found, RESTRICTION: [EVERY_TAINT]}
        return found

    @property
    def namespace_unread(self) -> bool:
        """Whether the annotation of the pod's namespace is not known."""
        return self.arrival.namespace not in self.world.namespaces

    @cached_property
    def second(self) -> tuple[Arrival, Decision] | None:
        """The second call of the webhook, and its decision; None if there is none.

        Plugins run again after webhooks. If they change the pod, the webhook is called again.
        Source: reinvocationPolicy IfNeeded, k8s.io/api/admissionregistration/v1.
        """
        if not self.decision.patch:
            return None
        world = self.world
        namespace, labels = self.arrival.namespace, self.arrival.namespace_labels
        pod = admit(self.patched, namespace, world.plugins, world.cluster.node, labels)
        if pod == self.patched:
            return None
        arrival = self.arrival._replace(pod=pod)
        return arrival, decide(arrival, world.policies, world.known_cluster)

    def stored(self) -> JsonObject:
        """Return the pod as the API server stores it, after the second call."""
        if self.second is None:
            return self.patched
        arrival, decision = self.second
        return _apply(arrival.pod, decision.patch)

    @cached_property
    def patched(self) -> JsonObject:
        """Return the pod with the patch applied."""
        return _apply(self.arrival.pod, self.decision.patch)

    def as_written(self, pod: JsonObject) -> JsonObject:
        """Return a pod with this decision with the patch, and without what plugins add.

        Only where the patch needs something that a plugin adds, that is there; but no toleration.
        """
        merged = self._merged(pod)
        given, own = merged["spec"].get("tolerations"), pod["spec"].get("tolerations")
        base = pod if given == own else {**pod, "spec": {**pod["spec"], "tolerations": given}}
        try:
            patched = _apply(base, self.decision.patch)
        except _INAPPLICABLE:
            metadata = {"annotations": {}, **merged["metadata"]}
            patched = _apply({**merged, "metadata": metadata}, self.decision.patch)
            if "overhead" not in pod["spec"]:
                # It would be refused once the class has another one.
                patched["spec"].pop("overhead", None)
        if given != own:
            added = [each for each in given or () if each not in (own or ())]
            left = [e for e in patched["spec"].pop("tolerations", ()) if e not in added]
            patched["spec"] |= {"tolerations": left} if left else {}
        return patched

    def _merged(self, pod: JsonObject) -> JsonObject:
        """Return the pod with what plugins add, but for the requests of LimitRanges."""
        inputs = self.world.plugins._replace(limit_ranges=None)
        return admit(pod, self.arrival.namespace, inputs, None, self.arrival.namespace_labels)

    def _conflicts(self, setters: Mapping[str, str]) -> Iterator[str]:
        known = self.world.plugins.runtime_classes
        # The plugin runs before the webhook, too: no policy helps a pod that it refuses then.
        if came := [text for _, text in conflicts(self.arrival.pod["spec"], known)]:
            yield from came
            return
        for path, text in conflicts(self.patched["spec"], known):
            by = {setters[each] for each in (path, FIELD) if each in setters}
            yield f"policy {', '.join(sorted(by))}: {text}" if by else text

    def _refused(self) -> Iterator[str]:
        server, refusal = self.world.server, self.answer.refusal
        if server is None or not refusal:
            return
        came = question(self.arrival.pod, self.world.policies.sources)
        before = server(came, self.arrival.namespace) if self.decision.patch else self.answer
        also = "it takes the pod without what policies set"
        if before.refusal:
            also = "it also refuses the pod without what policies set"
        yield f"the API server refuses the pod: {refusal}; {also}"

    def _effective(self) -> Iterator[Any]:
        return (e for e in self.decision.trace if e.policy and e.outcome in EFFECTIVE)

    def _faults(self) -> Sequence[str]:
        decision, pod, known = self.decision, self.arrival.pod, self.world.faults
        if not decision.patch:
            return ()
        # Equal pods of runs with other names differ in labels, of which the patch has the index.
        annotations = pod["metadata"].get("annotations")
        key = repr((pod["spec"], annotations, decision.patch, decision.policies))
        if key not in known:
            known[key] = [*self._new_faults()]
        return known[key]

    def _new_faults(self) -> Iterator[str]:
        own = set(_faults_of(self.arrival.pod))
        for path, message in _faults_of(self.patched):
            if (path, message) not in own:
                by = self._causes((path, message))
                yield f"{path}: {message}; the API server refuses the pod{by}"

    def _causes(self, fault: tuple[str, str]) -> str:
        """Return which policies' fields cause the fault: without them it would not be there."""
        found: dict[str, None] = {}
        patch = self.decision.patch
        for at, operation in enumerate(patch):
            try:
                without = _apply(self.arrival.pod, [*patch[:at], *patch[at + 1 :]])
            except _INAPPLICABLE:
                continue  # a later operation needs this one, as annotations need their map
            if fault not in _faults_of(without):
                steps = jsonpatch.JsonPointer(operation["path"]).parts
                for entry in self._effective():
                    root, _, key = entry.field.removesuffix("]").partition("[")
                    if root in steps and (not key or steps[-1] in (root, key)):
                        found[f"policy {entry.policy} sets {entry.field}"] = None
        return f": {', '.join(found)}" if found else ""


def labels_of(namespace: str, known: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """Return a namespace's labels; for an unknown one, the label that every namespace has."""
    return known.get(namespace) or {names.NAMESPACE_NAME: namespace}


def _apply(pod: JsonObject, patch: Sequence[Any]) -> JsonObject:
    # The pod is copied by the library; later operations may change what earlier ones add.
    result: JsonObject = jsonpatch.apply_patch(pod, copy.deepcopy(list(patch)))
    return result


def _faults_of(pod: JsonObject) -> list[tuple[str, str]]:
    """Return path and message of each error that the pod schema finds."""
    template = PodTemplate(from_answer("v1", "Pod", pod), ())
    return [
        (path_text(fault.path), fault.message)
        for fault in template_faults(template)
        if fault.severity == "error"
    ]
