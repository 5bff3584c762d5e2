"""What happens to one pod: warnings, refusals, nodes, and the pod as it is stored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from webhook.decision.advice import warnings
from webhook.decision.arrival import Arrival, owned_by_daemon_set, selecting_owner
from webhook.decision.engine import decide, merged_if_held, receive_pod
from webhook.evaluation import audits, limit_ranges
from webhook.evaluation.dry_run import Answer, describe_difference, question
from webhook.evaluation.plugins import PriorityFault, admit, conflicts, possible, priority_fault
from webhook.evaluation.pod_faults import INAPPLICABLE, apply, effective
from webhook.evaluation.selecting_objects import notes
from webhook.evaluation.surveys import not_judged, survey_pod
from webhook.evaluation.undecided import undecided
from webhook.placement import node_affinity
from webhook.placement import pod as pods
from webhook.placement.daemon import held_off, on_node, stranded, template_nodes
from webhook.placement.fields import FIELDS, field_of
from webhook.placement.merge_verdict import UNCHECKED
from webhook.placement.plugin_tolerations import RESTRICTION
from webhook.placement.pod_requests import requests, with_devices
from webhook.placement.runtime_class import EVERY_TAINT, FIELD
from webhook.placement.trace import warning
from webhook.policy.conditions import among, list_resources
from webhook.policy.refused_pods import classes_of, refusals
from webhook.policy.subject import resources
from webhook.run.controller_reference import controller_of
from webhook.workloads.stored_pod import is_stored

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.decision.decision import Audited, Decision
    from webhook.evaluation.surveys import Surveys, Unknown
    from webhook.evaluation.world import World
    from webhook.placement.nodes import Node
    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import JsonObject, Toleration

# The resources for which LimitRanges have defaults in practice.
_DEFAULTED: Final = ("cpu", "memory", "ephemeral-storage")
# What of a placement decides about nodes.
_OF_NODES: Final = (
    *(field.attribute for field in FIELDS if field.chooses_node and field.attribute),
    *("required", "lists", "runtime_class_name"),
)


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
        texts = [*self.webhook_warnings(), *self.stranded(self.world.nodes)]
        if self.decision.result == "left-alone":
            text = "left alone, but does not meet a requirement"
            texts += [warning(f"{text}: {requirement}") for requirement in self.unmet]
        return [*texts, *self._label_notes(), *([evictions] if evictions else ())]

    def webhook_warnings(self, no_node: str = "") -> list[str]:
        """Return the warnings of the webhook to the pod's author, of both of its calls.

        `no_node`: why no node admits the pod, if the webhook watches nodes and none does.
        """
        texts = warnings(self.arrival.pod, self.decision, no_node)
        if self.second:
            arrival, again = self.second
            texts += warnings(arrival.pod, again)
        return list(dict.fromkeys(texts))

    def _label_notes(self) -> Iterator[str]:
        """Yield whom else a label that policies add concerns, as far as the world has it."""
        arrival, placement = self.arrival, self.placement
        objects = self.world.plugins.selecting.get(arrival.namespace, ())
        if not (objects and placement):
            return
        labels, metadata = pods.parse_pod(arrival.pod).labels, arrival.pod["metadata"]
        if labels != placement.labels:
            # A template has no name, and its pods have an owner.
            named = bool(metadata.get("name") or metadata.get("generateName"))
            alone = named and not arrival.selector and not controller_of(arrival.pod)
            setters = (
                entry.policy for entry in effective(self.decision) if field_of(entry.field).selected
            )
            by = list(dict.fromkeys(setters))
            yield from notes(labels, placement.labels, objects, policies=by, adoptable=alone)

    def stranded(self, nodes: Sequence[Node] | None) -> Sequence[str]:
        """Return a warning if a DaemonSet's pods stay Pending for ever on some of these nodes."""
        placement = self.decision.placement
        if not nodes or placement is None or not owned_by_daemon_set(self.arrival.pod):
            return ()
        if placement.tolerations == pods.parse_pod(self.arrival.pod).tolerations:
            return ()
        lost = stranded(self.made, placement, nodes)
        return [warning(f"its pods stay Pending {lost}")] if lost.nodes else ()

    @cached_property
    def audited(self) -> Audited | None:
        """What enforcing the policies under Audit does to the pod; None if none matches."""
        return audits.judge(self)

    def enforcing(self, policy: str) -> Evaluation:
        """Return what happens to the pod in `World.enforcing`."""
        return self.world.enforcing(policy).decided(self.arrival)

    @property
    def made(self) -> PodPlacement:
        """The placement by which a DaemonSet's controller chooses nodes."""
        return pods.parse_pod(self.arrival.made or self.arrival.pod)

    @property
    def template_nodes(self) -> Sequence[Node] | None:
        """The nodes for which a DaemonSet's controller makes such a pod.

        None if they are unknown, for other pods, and for one that is for a certain node.
        """
        nodes = self.world.nodes
        return None if nodes is None or not self.for_each_node else template_nodes(self.made, nodes)

    @cached_property
    def for_each_node(self) -> bool:
        """Whether a DaemonSet's controller makes one for each node that it chooses."""
        if not owned_by_daemon_set(self.arrival.pod):
            return False
        pod = pods.parse_pod(self.arrival.pod)
        return not (pod.node_name or node_affinity.only_node(pod.required))

    @cached_property
    def held_off(self) -> Sequence[str]:
        """Of a DaemonSet, the names of the nodes for which its pods are rejected."""
        held, nodes = self.decision.placement, self.template_nodes
        if held is None or not nodes or not self.decision.allowed:
            return ()
        off = held_off(self.made, held, nodes)
        node_names = [node.name for node, _ in off.nodes]
        return () if not node_names or self.on_node(node_names[0]).decision.allowed else node_names

    def on_node(self, node: str) -> Evaluation:
        """Return what happens to a DaemonSet's pod for this node."""
        return self.world.decided(self.arrival._replace(pod=on_node(self.arrival.pod, node)))

    @property
    def depends_on_node(self) -> bool:
        """Whether the answer is without a look at the pod's node, which decides: that of a
        DaemonSet's pod that is admitted, and of one with nodeName that is rejected unlooked at."""
        held = self.decision.placement
        if self.world.cluster.node is not None:
            return False
        if not owned_by_daemon_set(self.arrival.pod):
            return any(entry.reason == UNCHECKED for entry in self.decision.trace)
        if held is None or not self.decision.allowed:
            return False
        pod = pods.parse_pod(self.arrival.pod)
        return (held.node_selector, held.required) != (pod.node_selector, pod.required)

    @property
    def unlisted(self) -> Sequence[tuple[str, str]]:
        """Kind and name of each class that the pod names, and of which it is unknown whether it is
        there."""
        classes, read = self.world.classes or {}, self.world.plugins.runtime_classes
        return [
            (kind, name)
            for _, kind, name in (classes_of(self.placement) if self.placement else ())
            if kind not in classes and not (kind == "RuntimeClass" and name in read)
        ]

    @property
    def unmet(self) -> Sequence[str]:
        """Why a DaemonSet's pod does not meet requirements, or on which nodes; also if it is left
        alone."""
        world, received = self.world, receive_pod(self.arrival, self.world.policies.sources)
        merged = received and merged_if_held(received, world.policies, world.known_cluster)
        if not received or not merged:
            return ()
        off = held_off(received.original, merged.placement, world.nodes or ())
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
        setters = {e.field: e.policy for e in effective(self.decision)}
        missing = refusals(placement, self.world.classes or {}, setters)
        conflicting = [*self._conflicts(setters)]
        again = self.second[1] if self.second and not conflicting else None
        if again and not again.allowed:
            what = "after plugins of the API server changed the pod again"
            conflicting = [f"{again.reason.removeprefix('fairlead: ')}, {what}"]
        ranges = (self.world.plugins.limit_ranges or {}).get(self.arrival.namespace, ())
        limited = limit_ranges.faults(self.arrival.pod["spec"], ranges)
        reasons = [*missing, *conflicting, *limited, *filter(None, [self.priority.reason])]
        faults = self.world.faults.of_decision(self.arrival.pod, self.decision)
        return (*reasons, *faults, *self._refused())

    @cached_property
    def answer(self) -> Answer:
        """What the API server says to the pod as decided; nothing if it is not asked."""
        server = self.world.server
        if server is None or not self.decision.allowed:
            return Answer()
        return server(question(self.patched), self.arrival.namespace)

    @property
    def unread_class(self) -> str:
        """The RuntimeClass of a run's pod as it came, if it is not known; else no text."""
        name = pods.parse_pod(self.arrival.pod).runtime_class_name
        is_known = name in self.world.plugins.runtime_classes or self.decision.identity is None
        return "" if is_known else name

    @cached_property
    def priority(self) -> PriorityFault:
        """What is wrong with the priority of the pod as it came; of a stored one it is given."""
        pod, world = self.arrival.pod, self.world
        if is_stored(pod):
            return PriorityFault()
        default = world.cluster.default_priority_class
        return priority_fault(pod["spec"], world.plugins.priorities, default)

    @property
    def unread_defaults(self) -> Sequence[str]:
        """Resources by which policies match, and that an unknown LimitRange may request."""
        world = self.world
        if world.plugins.limit_ranges is not None or self.decision.identity is None:
            return ()
        resource_names = resources(self.arrival.pod["spec"])
        tested = list_resources(world.policies.tested)
        return sorted(among(frozenset(_DEFAULTED) - resource_names, tested))

    @property
    def unread_selector(self) -> str:
        """The owner whose selector a label of a policy may break, if that is not known."""
        arrival, owner = self.arrival, selecting_owner(self.arrival.pod)
        if arrival.selector or not owner:
            return ""
        labels = (entry for entry in effective(self.decision) if field_of(entry.field).selected)
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
        asked = [self.asked(last)]
        if changed:
            last = self.stored()
            asked.append(self.asked(last))
        added = self.possible_tolerations
        made = self.made if self.for_each_node else None
        every = [*asked, (made, {})] if made else asked
        fields = [
            (*[getattr(placement, attribute) for attribute in _OF_NODES], more)
            for placement, more in every
        ]
        key = repr((fields, added))
        if key not in self.world.surveyed:
            plugins, classes = self.world.plugins, self.world.policies.classes
            self.world.surveyed[key] = survey_pod(nodes, asked, added, plugins, classes, made)
        first = asked[0]
        beside = not_judged(last["spec"], asked[-1][1])
        before = not_judged(self.arrival.pod["spec"], first[1])
        return self.world.surveyed[key]._replace(not_judged=tuple(beside), differs=beside != before)

    def asked(self, pod: JsonObject) -> tuple[PodPlacement, Mapping[str, int]]:
        """Return the placement of a form of the pod, and its requests (`with_devices`)."""
        devices = self.world.plugins.devices or ()
        return pods.parse_pod(pod), with_devices(requests(pod["spec"]), devices, ())

    @cached_property
    def possible_tolerations(self) -> Mapping[str, Sequence[Toleration]]:
        """The tolerations that plugins may add to the pod, if they run; any, if one that runs does
        so by an annotation that is not read."""
        inputs = self.world.plugins
        tolerations_by_plugin = possible(
            self.arrival.pod["spec"], inputs, self.arrival.namespace_labels
        )
        if self.namespace_unread and inputs.running.get(RESTRICTION):
            return {**tolerations_by_plugin, RESTRICTION: [EVERY_TAINT]}
        return tolerations_by_plugin

    @cached_property
    def undecided(self) -> Sequence[Unknown]:
        """What decides about the pod, and is not known."""
        return tuple(undecided(self))

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
        return apply(arrival.pod, decision.patch)

    @cached_property
    def patched(self) -> JsonObject:
        """Return the pod with the patch applied."""
        return apply(self.arrival.pod, self.decision.patch)

    def as_written(self, pod: JsonObject) -> JsonObject:
        """Return a pod with this decision with the patch, and without what plugins add.

        Only where the patch needs something that a plugin adds, that is there; but no toleration.
        """
        merged = self._merged(pod)
        given, pod_tolerations = merged["spec"].get("tolerations"), pod["spec"].get("tolerations")
        base = (
            pod
            if given == pod_tolerations
            else {**pod, "spec": {**pod["spec"], "tolerations": given}}
        )
        try:
            patched = apply(base, self.decision.patch)
        except INAPPLICABLE:
            metadata = {"annotations": {}, **merged["metadata"]}
            patched = apply({**merged, "metadata": metadata}, self.decision.patch)
            if "overhead" not in pod["spec"]:
                # It would be refused once the class has another one.
                patched["spec"].pop("overhead", None)
        if given != pod_tolerations:
            added = [
                toleration
                for toleration in given or ()
                if toleration not in (pod_tolerations or ())
            ]
            left = [e for e in patched["spec"].pop("tolerations", ()) if e not in added]
            patched["spec"] |= {"tolerations": left} if left else {}
        return patched

    def _merged(self, pod: JsonObject) -> JsonObject:
        """Return the pod with what plugins add, except the requests of LimitRanges."""
        inputs = self.world.plugins._replace(limit_ranges=None)
        return admit(pod, self.arrival.namespace, inputs, None, self.arrival.namespace_labels)

    def _conflicts(self, setters: Mapping[str, str]) -> Iterator[str]:
        runtime_classes = self.world.plugins.runtime_classes
        # The plugin runs before the webhook, too: no policy helps a pod that it refuses then.
        if came := [text for _, text in conflicts(self.arrival.pod["spec"], runtime_classes)]:
            yield from came
            return
        for path, text in conflicts(self.patched["spec"], runtime_classes):
            by = {setters[key] for key in (path, FIELD) if key in setters}
            yield f"policy {', '.join(sorted(by))}: {text}" if by else text

    def _refused(self) -> Iterator[str]:
        server, refusal = self.world.server, self.answer.refusal
        if server is None or not refusal:
            return
        came = question(self.arrival.pod)
        before = server(came, self.arrival.namespace) if self.decision.patch else self.answer
        also = "it takes the pod without what policies set"
        if before.refusal:
            also = "it also refuses the pod without what policies set"
        yield "; ".join(filter(None, (refusal, also, describe_difference(self.arrival.pod))))
