"""How many pods of one object can run at one time, if it creates them to run together."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.placement import label_values, on_demand
from webhook.placement import pod as pods
from webhook.placement.node_groups import NodeGroups
from webhook.placement.pod_requests import devices_among, requests
from webhook.placement.room import ANTI_AFFINITY, ONLY_ONE, PODS, PodGroup, find_room, node_kinds
from webhook.placement.runtime_class import tolerating
from webhook.placement.shapes import as_object, objects_in
from webhook.sources.kind_model import UNKNOWN
from webhook.workloads.by_kind import group_of
from webhook.workloads.template import at, number_of_pods

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.evaluation.replicas import Replicas
    from webhook.evaluation.surveys import Surveys
    from webhook.placement.nodes import Node
    from webhook.placement.room import Limit, Room
    from webhook.placement.shapes import JsonObject
    from webhook.workloads.object import Object

# API groups of kinds whose pods run together: Runs, Jobs, JobSets, the kinds of Kubeflow.
_GANG_GROUPS: Final = frozenset(
    (names.GROUP, "batch", "jobset.x-k8s.io", "kubeflow.org", "trainer.kubeflow.org")
)
# The part of a TrainJob whose pods run before the others.
_INITIALIZER: Final = "-initializer"
# Of Jobs, completions are counted, and fewer may run at one time.
_JOBS: Final = ("Job", "CronJob")
# With how many pods an elastic run begins.
_MINIMA: Final = (
    ("spec", "pytorch", "elastic", "minReplicas"),
    ("spec", "elasticPolicy", "minReplicas"),
)
_EVERY_ADDRESS: Final = ("", "0.0.0.0")  # noqa: S104  as in pods; nothing is bound here


class ObjectRoom(NamedTuple):
    """How many pods of one object can run at one time, on nodes without other pods.

    needed:    with fewer, the pods do nothing: all for replicas that meet, those that an elastic
               run begins with, and none for independent pods, which may run one after the other
    on_demand: if not all can run, the classes that could make nodes for those that lack them
    unjudged:  what also decides about nodes, and is not part of it
    """

    room: Room
    needed: int
    on_demand: tuple[str, ...]
    unjudged: tuple[str, ...]

    @property
    def is_short(self) -> bool:
        """Whether it is known that not all pods can run at one time, and no class makes nodes."""
        return self.room.most < self.room.asked and not self.on_demand

    @property
    def can_begin(self) -> bool:
        """Whether enough pods can run for the replicas to begin, as far as that is known."""
        return self.room.most >= self.needed or bool(self.on_demand)

    @property
    def text(self) -> str:
        """What is known of it: `at most 2 of 16 run at one time: …`."""
        room = self.room
        if room.limit is None:
            return f"no limit found for {room.asked:,} pods at one time"
        text = f"at most {room.most:,} of {room.asked:,} run at one time"
        if 0 < self.needed < room.asked:
            text += f", elastic from {self.needed:,}"
        makers = ", ".join(self.on_demand)
        more = f"; class {makers} creates nodes on demand" if makers else ""
        return f"{text}: {room.limit.text}{more}"


def with_room(groups: Sequence[Replicas]) -> list[Replicas]:
    """Return the same pods; those of an object whose pods run together have its room."""
    members: dict[int, list[Replicas]] = {}
    for replicas in groups:
        members.setdefault(id(replicas.template.source), []).append(replicas)
    rooms = {source: _room_of(pods_of_one) for source, pods_of_one in members.items()}
    return [
        replace(replicas, room=room) if (room := rooms[id(replicas.template.source)]) else replicas
        for replicas in groups
    ]


def _room_of(groups: Sequence[Replicas]) -> ObjectRoom | None:
    """Return the room of one object's pods; None for other kinds, for a single pod, and if it is
    unknown which nodes admit them."""
    source, world = groups[0].template.source, groups[0].evaluation.world
    admitted = [replicas for replicas in groups if replicas.admitted]
    asked = _at_one_time(source, groups[0], sum(replicas.count for replicas in admitted))
    if not _run_together(source, groups) or world.nodes is None or asked < 2:
        return None
    surveys = [surveys for r in admitted if (surveys := r.evaluation.nodes)]
    if any(survey.unread.what for survey in surveys):
        return None
    demands = [_demand(replicas, world.nodes) for replicas in admitted]
    if None in demands:
        return None
    pod_groups = [demand for demand in demands if demand]
    key = repr((pod_groups, asked, [id(survey.last) for survey in surveys]))
    if key not in world.rooms:
        kinds = node_kinds(world.nodes, pod_groups, [s.last.admitted for s in surveys])
        room = find_room(pod_groups, kinds, asked)
        # Equal surveys are of equal conditions on nodes, and so these have equal makers.
        world.rooms[key] = room, _makers(admitted, room.limit) if room.limit else ()
    room, makers = world.rooms[key]
    framework = any(r.decision.identity and r.decision.identity.framework for r in admitted)
    return ObjectRoom(
        room,
        _minimum(source, asked) if framework else 0,
        makers,
        tuple(_unjudged(admitted, surveys)),
    )


def _run_together(source: Object, groups: Sequence[Replicas]) -> bool:
    """Return whether the pods run at one time: not those of jobs that wait for others to end."""
    for job in objects_in(at(source.value, ("spec", "replicatedJobs"))):
        if any(before.get("status") == "Complete" for before in objects_in(job.get("dependsOn"))):
            return False
    if any(replicas.template.part.endswith(_INITIALIZER) for replicas in groups):
        return False
    # The Run of a plan has no apiVersion.
    return source.kind == names.RUN_KIND or group_of(source) in _GANG_GROUPS


def _at_one_time(source: Object, replicas: Replicas, count: int) -> int:
    if source.kind not in _JOBS:
        return count
    parallel = at(source.value, (*replicas.template.path[:-1], "parallelism"))
    wanted = number_of_pods(parallel)
    return min(count, 1 if wanted is None else wanted)


def _minimum(source: Object, asked: int) -> int:
    for path in _MINIMA:
        least = number_of_pods(at(source.value, path))
        if least is not None:
            return min(least, asked)
    return asked


def _demand(replicas: Replicas, nodes: Sequence[Node]) -> PodGroup | None:
    """Return what the pods request; None if they name their node."""
    pod = replicas.evaluation.stored()
    spec = pod["spec"]
    if spec.get("nodeName"):
        return None
    by_devices = devices_among(replicas.evaluation.asked(pod)[1])
    asked = {name: n for name, n in requests(spec).items() if name not in by_devices}
    alone = dict.fromkeys(_only_one(replicas, pod, nodes), 1)
    return PodGroup(replicas.template.part, replicas.count, {PODS: 1, **asked, **alone})


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
    for container in objects_in(spec.get("containers")):
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


def _makers(groups: Sequence[Replicas], limit: Limit) -> tuple[str, ...]:
    """Return the autoscaled classes that could make a node for pods of the limit."""
    world = groups[0].evaluation.world
    classes = [c for c in world.policies.classes.values() if c.autoscaled]
    makers: dict[str, None] = {}
    alike = NodeGroups(world.nodes or ()) if classes else NodeGroups()
    for replicas in groups:
        if classes and replicas.template.part in limit.requests:
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
