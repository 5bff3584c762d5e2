"""How many pods of one object can run at one time, if it creates them to run together."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.errors import InvalidPod
from webhook.evaluation.plugins import priority_of
from webhook.evaluation.replicas import evaluate_template
from webhook.placement import label_values, on_demand
from webhook.placement import pod as pods
from webhook.placement.node_groups import NodeGroups
from webhook.placement.pod_requests import add_requests, devices_among, requests
from webhook.placement.room import (
    ANTI_AFFINITY,
    ONLY_ONE,
    PODS,
    PodGroup,
    find_room,
    less_used,
    node_kinds,
)
from webhook.placement.runtime_class import tolerating
from webhook.placement.shapes import as_object, objects_in
from webhook.sources.kind_model import UNKNOWN
from webhook.workloads.template import ranges
from webhook.workloads.template_search import pod_templates
from webhook.workloads.together import at_one_time, least_that_begin, run_together

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.evaluation.plugins import Used
    from webhook.evaluation.replicas import Replicas
    from webhook.evaluation.surveys import Surveys
    from webhook.evaluation.world import World
    from webhook.placement.nodes import Node
    from webhook.placement.room import Room
    from webhook.placement.shapes import JsonObject

_EVERY_ADDRESS: Final = ("", "0.0.0.0")  # noqa: S104  as in pods; nothing is bound here


class ObjectRoom(NamedTuple):
    """How many pods of one object can run at one time, on nodes with the pods of DaemonSets only.

    needed:    with fewer, the pods do nothing: all for replicas that meet, those that an elastic
               run begins with, and none for independent pods, which may run one after the other
    on_demand: if not all can run, the classes that could make nodes for those that lack them
    unjudged:  what also decides about nodes, and is not part of it
    now:       the same, less what other pods on the nodes request; None if these are not read
    """

    room: Room
    needed: int
    on_demand: tuple[str, ...]
    unjudged: tuple[str, ...]
    now: Room | None = None

    @property
    def is_short(self) -> bool:
        """Whether it is known that not all pods can run at one time, and no class makes nodes."""
        return self.room.most < self.room.asked and not self.on_demand

    @property
    def can_begin(self) -> bool:
        """Whether enough pods can run for the replicas to begin, as far as that is known."""
        return self.room.most >= self.needed or bool(self.on_demand)

    @property
    def warning(self) -> str:
        """What is told to the author of the pods: why not all can run at one time, if that is not
        on demand; empty where no node admits some, of which the author is warned anyway."""
        if not (self.is_short and self.room.limit and self.room.limit.nodes):
            return ""
        if self.can_begin:
            return f"note: {self.text}"
        return f"{self.text}; those that run wait for the others"

    @property
    def text(self) -> str:
        """What is known of it: `at most 2 of 16 run at one time: …`."""
        return f"{self._text}{self._text_now}"

    @property
    def _text(self) -> str:
        room = self.room
        if room.limit is None:
            return f"no limit found for {room.asked:,} pods at one time"
        text = f"at most {room.most:,} of {room.asked:,} run at one time"
        if 0 < self.needed < room.asked:
            text += f", elastic from {self.needed:,}"
        makers = ", ".join(self.on_demand)
        more = f"; class {makers} creates nodes on demand" if makers else ""
        return f"{text}: {room.limit.text}{more}"

    @property
    def _text_now(self) -> str:
        if self.now is None:
            return ""
        if self.now.most == self.room.most:
            return "; the same now, beside other pods"
        return f"; now at most {self.now.most:,}, beside other pods"


class DaemonPods(NamedTuple):
    """Pods of a DaemonSet: on which nodes, what each requests, and their priority; None if that is
    not known."""

    title: str
    nodes: tuple[str, ...]
    requests: Mapping[str, int]
    priority: int | None


def with_room(groups: Sequence[Replicas]) -> list[Replicas]:
    """Return the same pods; those of an object whose pods run together have its room."""
    members: dict[int, list[Replicas]] = {}
    for replicas in groups:
        members.setdefault(id(replicas.template.source), []).append(replicas)
    beside = [*_daemon_pods(groups)]
    rooms = {source: _room_of(pods_of_one, beside) for source, pods_of_one in members.items()}
    first = {source: _first_shown(pods_of_one) for source, pods_of_one in members.items()}
    return [
        replace(replicas, room=room, shows_room=replicas is first[source])
        if (room := rooms[source := id(replicas.template.source)])
        else replicas
        for replicas in groups
    ]


def _first_shown(groups: Sequence[Replicas]) -> Replicas:
    """Return the first pods of which the answer is that they can run, if there are any."""
    for replicas in groups:
        surveys = replicas.evaluation.nodes
        if replicas.admitted and surveys and not surveys.none_left:
            return replicas
    return groups[0]


def _room_of(groups: Sequence[Replicas], beside: Sequence[DaemonPods]) -> ObjectRoom | None:
    """Return the room of one object's pods; None for other kinds, for a single pod, and if it is
    unknown which nodes admit them."""
    source, world = groups[0].template.source, groups[0].evaluation.world
    admitted = [replicas for replicas in groups if replicas.admitted]
    if world.nodes is None or not run_together(source, {r.template.part for r in groups}):
        return None
    counts: dict[int, int] = {}
    for replicas in admitted:
        at = id(replicas.template)
        counts[at] = min(counts.get(at, 0) + replicas.count, at_one_time(replicas.template))
    asked = sum(counts.values())
    surveys = [surveys for r in admitted if (surveys := r.evaluation.nodes)]
    if asked < 2 or any(survey.unread.what for survey in surveys):
        return None
    stored = [replicas.evaluation.stored() for replicas in admitted]
    if any(pod["spec"].get("nodeName") for pod in stored):
        return None
    pod_groups = _named(
        admitted,
        [
            _demand(replicas, pod, min(replicas.count, counts[id(replicas.template)]))
            for replicas, pod in zip(admitted, stored, strict=True)
        ],
    )
    priorities = [_priority(world, pod) for pod in stored]
    daemons = [pods_of_one for pods_of_one in beside if _stays(pods_of_one, priorities)]
    key = repr((pod_groups, asked, [id(survey.last) for survey in surveys], _key(daemons)))
    if key not in world.rooms:
        kinds = node_kinds(
            _free_nodes(world, daemons), pod_groups, [s.last.admitted for s in surveys]
        )
        room = find_room(pod_groups, kinds, asked)
        # Equal surveys are of equal conditions on nodes, and so these have equal makers.
        short = room.limit.requests if room.limit else ()
        makers = [r for r, group in zip(admitted, pod_groups, strict=True) if group.name in short]
        world.rooms[key] = room, _makers(makers) if room.limit else ()
    room, classes = world.rooms[key]
    framework = any(r.decision.identity and r.decision.identity.framework for r in admitted)
    now = None
    if used := world.plugins.used:
        nodes = _nodes_now(world, used, admitted[0])
        now = find_room(
            pod_groups, node_kinds(nodes, pod_groups, [s.last.admitted for s in surveys]), asked
        )
        now = now._replace(most=min(now.most, room.most))
    return ObjectRoom(
        room,
        least_that_begin(source, asked) if framework else 0,
        classes,
        tuple(_unjudged(admitted, surveys)),
        now,
    )


def _daemon_pods(groups: Sequence[Replicas]) -> Iterator[DaemonPods]:
    """Yield the pods of DaemonSets among these, and of the others of the cluster."""
    if not groups or groups[0].evaluation.world.nodes is None:
        return
    world, given = groups[0].evaluation.world, set()
    for replicas in groups:
        if replicas.template.count is None:
            pods_of_one = _of_daemon_set(replicas)
            given.add(pods_of_one.title)
            yield pods_of_one
    if not world.daemon_pods:
        for source in world.plugins.daemon_sets:
            for template in pod_templates(source, sources=world.policies.sources):
                with suppress(InvalidPod):
                    evaluated = evaluate_template(world, template, source.namespace)
                    world.daemon_pods.extend(map(_of_daemon_set, evaluated))
    yield from (pods_of_one for pods_of_one in world.daemon_pods if pods_of_one.title not in given)


def _of_daemon_set(replicas: Replicas) -> DaemonPods:
    evaluation = replicas.evaluation
    stored = evaluation.stored()
    off = set(evaluation.held_off)
    # Those of some nodes only are rejected.
    on = evaluation.template_nodes if replicas.admitted and not replicas.nodes else ()
    return DaemonPods(
        f"{replicas.template.source.title} in {replicas.arrival.namespace}",
        tuple(node.name for node in on or () if node.name not in off),
        {PODS: 1, **requests(stored["spec"])},
        _priority(evaluation.world, stored),
    )


def _priority(world: World, pod: JsonObject) -> int | None:
    default = world.cluster.default_priority_class
    return priority_of(pod["spec"], world.plugins.priorities, default)


def _stays(daemon_pods: DaemonPods, priorities: Sequence[int | None]) -> bool:
    """Return whether it is known that no pod of these priorities takes the place of such pods."""
    least = daemon_pods.priority
    return least is not None and all(p is not None and p <= least for p in priorities)


def _key(daemons: Sequence[DaemonPods]) -> str:
    return repr([(d.title, d.requests, len(d.nodes), hash(d.nodes)) for d in daemons])


def _free_nodes(world: World, daemons: Sequence[DaemonPods]) -> Sequence[Node]:
    """Return the nodes without what DaemonSets request of them."""
    key = _key(daemons)
    if key not in world.free_nodes:
        used: dict[str, dict[str, int]] = {}
        for daemon_pods in daemons:
            for name in daemon_pods.nodes:
                add_requests(used.setdefault(name, {}), daemon_pods.requests)
        world.free_nodes[key] = less_used(world.nodes or (), used)
    return world.free_nodes[key]


def _nodes_now(world: World, used: Used, replicas: Replicas) -> Sequence[Node]:
    """Return the nodes without what pods on them request, but for those of the object itself."""
    identity = replicas.decision.identity
    run = (identity and identity.run) or replicas.template.source.title
    run_amounts = used.by_run.get((replicas.arrival.namespace, run), {})
    key = f"now {replicas.arrival.namespace} {run if run_amounts else ''}"
    if key not in world.free_nodes:
        others = dict(used.by_node)
        for name, amounts in run_amounts.items():
            others[name] = {r: n - amounts.get(r, 0) for r, n in others[name].items()}
        world.free_nodes[key] = less_used(world.nodes or (), others)
    return world.free_nodes[key]


def _named(groups: Sequence[Replicas], pod_groups: Sequence[PodGroup]) -> list[PodGroup]:
    """Return them; where some of one part have other requests, with the numbers of each."""
    requests_by_name: dict[str, list[Mapping[str, int]]] = {}
    for group in pod_groups:
        requests_by_name.setdefault(group.name, []).append(group.requests)
    return [
        group
        if all(asked == group.requests for asked in requests_by_name[group.name])
        else group._replace(
            name=f"{group.name} {ranges(replicas.template.numbers_of(replicas.all_indexes))}"
        )
        for replicas, group in zip(groups, pod_groups, strict=True)
    ]


def _demand(replicas: Replicas, pod: JsonObject, count: int) -> PodGroup:
    """Return what so many of the pods request; `pod` is the first of them as stored."""
    by_devices = devices_among(replicas.evaluation.asked(pod)[1])
    asked = {name: n for name, n in requests(pod["spec"]).items() if name not in by_devices}
    nodes = replicas.evaluation.world.nodes or ()
    alone = dict.fromkeys(_only_one(replicas, pod, nodes), 1)
    return PodGroup(replicas.template.part, count, {PODS: 1, **asked, **alone})


def _only_one(replicas: Replicas, pod: JsonObject, nodes: Sequence[Node]) -> Iterator[str]:
    """Yield what only one pod of a node can have: host ports, and anti-affinity to its like."""
    for port, address in _host_ports(pod["spec"]):
        if address in _EVERY_ADDRESS:
            yield f"{ONLY_ONE}{port}"
    terms = pods.parse_pod(pod).lists.get("affinity.podAntiAffinity.required", ())
    if terms and all(names.HOSTNAME_LABEL in node.labels for node in nodes):
        for term in terms:
            if _keeps_apart(replicas, pod, term):
                selector = json.dumps(term["labelSelector"], sort_keys=True)
                yield f"{ONLY_ONE}{ANTI_AFFINITY} {selector}"


def _host_ports(spec: JsonObject) -> Iterator[tuple[str, str]]:
    """Yield each host port of the containers, and the address for which it is."""
    on_host = spec.get("hostNetwork") is True
    sidecars = (
        container
        for container in objects_in(spec.get("initContainers"))
        if container.get("restartPolicy") == "Always"
    )
    for container in (*objects_in(spec.get("containers")), *sidecars):
        for port in objects_in(container.get("ports")):
            number = port.get("hostPort") or (port.get("containerPort") if on_host else None)
            if number:
                address = str(port.get("hostIP") or "")
                yield f"host port {number}/{port.get('protocol') or 'TCP'}", address


def _keeps_apart(replicas: Replicas, pod: JsonObject, term: JsonObject) -> bool:
    """Return whether a term of anti-affinity selects all of these pods on the same node.

    Any other term counts as unjudged.
    """
    selector = term.get("labelSelector")
    others = ("matchLabelKeys", "mismatchLabelKeys", "namespaces", "namespaceSelector")
    if term.get("topologyKey") != names.HOSTNAME_LABEL or not isinstance(selector, dict):
        return False
    if any(term.get(name) is not None for name in others):
        return False
    labels = as_object(pod["metadata"].get("labels"))
    first, last = (_labels(replicas, index) for index in (0, -1))
    return all(
        first.get(key) == last.get(key) != UNKNOWN
        and label_values.holds(expression, labels.get(key))
        for expression in label_values.expressions(selector)
        for key in (expression.get("key"),)
    )


def _labels(replicas: Replicas, position: int) -> JsonObject:
    pod: JsonObject = replicas.template.pod(replicas.all_indexes[position])
    return as_object(as_object(pod.get("metadata")).get("labels"))


def _makers(groups: Sequence[Replicas]) -> tuple[str, ...]:
    """Return the autoscaled classes that could make a node for one of these pods."""
    world = groups[0].evaluation.world
    classes = [c for c in world.policies.classes.values() if c.autoscaled]
    makers: dict[str, None] = {}
    alike = NodeGroups(world.nodes or ()) if classes else NodeGroups()
    for replicas in groups if classes else ():
        evaluation = replicas.evaluation
        pod = pods.parse_pod(evaluation.stored())
        wide = tolerating(pod, evaluation.possible_tolerations)
        makers |= dict.fromkeys(on_demand.makers(wide, classes, alike))
    return tuple(sorted(makers))


def _unjudged(groups: Sequence[Replicas], surveys: Sequence[Surveys]) -> dict[str, Any]:
    """Return the fields, and devices, that are not part of a room."""
    fields: dict[str, Any] = {}
    for survey in surveys:
        fields |= dict.fromkeys(survey.not_judged)
    for replicas in groups:
        ports = _host_ports(replicas.evaluation.stored()["spec"])
        if any(address not in _EVERY_ADDRESS for _, address in ports):
            fields["hostIP"] = None
    return fields
