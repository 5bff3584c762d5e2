"""How many pods of a run the real kube-scheduler runs at one time, beside what `room` says.

Each case is a run and the nodes of its own label, so that all cases are judged side by side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st

from tests.agreement.scheduling import await_node, create_nodes, landings
from tests.fuzz.drawn import drawn
from webhook.evaluation.replicas import Replicas
from webhook.names import API_VERSION, HOSTNAME_LABEL
from webhook.placement.nodes import parse_node
from webhook.placement.room import Room
from webhook.policy.load import load
from webhook.questions.decisions import decisions
from webhook.questions.offline import offline_of, unread_world, with_nodes
from webhook.sandbox.control_plane import ControlPlane
from webhook.workloads.object import Object

Json = dict[str, Any]
CASES = 330
NAMESPACE = "room"
WORLD = "world"
GPU = "nvidia.com/gpu"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Case(NamedTuple):
    """A run, the nodes for it, and whether its pods have sizes as in practice."""

    run: Json
    nodes: list[Json]
    ordinary: bool


class Foreseen(NamedTuple):
    """A case with the room of its run, and the pods."""

    case: Case
    room: Room
    pods: list[Json]


# Of a node: GPUs, CPUs, and the pods that it takes.
ORDINARY_NODES = st.sampled_from([(8, 64, 110), (8, 96, 110), (4, 32, 110), (0, 16, 110)])
ORDINARY_PODS = st.sampled_from([(8, 16), (4, 8), (2, 4), (1, 2), (0, 4)])
ODD_NODES = st.tuples(st.integers(0, 9), st.integers(1, 20), st.sampled_from([1, 2, 3, 110]))
ODD_PODS = st.tuples(st.integers(0, 5), st.integers(1, 9))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Few nodes and a run of at most nine pods, with host ports, anti-affinity, containers that
    begin first, a replica with requests of its own, or none of them."""
    ordinary = draw(st.integers(0, 3)) > 0
    sizes, asked = (ORDINARY_NODES, ORDINARY_PODS) if ordinary else (ODD_NODES, ODD_PODS)
    nodes = [
        {
            "metadata": {"labels": {"pool": draw(st.sampled_from("ab"))}},
            "status": {"allocatable": {GPU: f"{gpus}", "cpu": f"{cpus}", "pods": f"{pods}"}},
        }
        for gpus, cpus, pods in draw(st.lists(sizes, min_size=1, max_size=5))
    ]
    roles: Json = {"worker": {"count": draw(st.integers(2, 8))}}
    if draw(st.booleans()):
        roles["master"] = {}
    for role in roles.values():
        gpus, cpus = draw(asked)
        role["resources"] = {"limits": {"cpu": f"{cpus}", **({GPU: f"{gpus}"} if gpus else {})}}
        if draw(st.integers(0, 3)) == 0:
            role["environment"] = {"nodeSelector": {"pool": draw(st.sampled_from("ab"))}}
    container: Json = {"name": "main", "image": "i"}
    spec: Json = {"containers": [container]}
    match draw(st.integers(0, 11)):
        case 0:
            container["ports"] = [{"containerPort": 2222, "hostPort": 2222}]
        case 1:
            spec["affinity"] = {
                "podAntiAffinity": {
                    REQUIRED: [
                        {
                            "topologyKey": HOSTNAME_LABEL,
                            "labelSelector": {"matchLabels": {"apart": "yes"}},
                        }
                    ]
                }
            }
        case 2:
            port = {"containerPort": 2222, "hostPort": 2222}
            spec["initContainers"] = [begins_first("1", restartPolicy="Always", ports=[port])]
        case 3:
            spec["initContainers"] = [
                begins_first("1", restartPolicy="Always"),
                begins_first("9"),
            ]
        case 4:
            limits = {"cpu": f"{draw(st.integers(0, 9))}"}
            roles["worker"]["byIndex"] = [{"index": 1, "resources": {"limits": limits}}]
    template = {"metadata": {"labels": {"apart": "yes"}}, "spec": spec}
    run = {"framework": "pytorch", "replicas": roles, "template": template}
    return Case(run, nodes, ordinary)


def begins_first(cpu: str, **more: Any) -> Json:
    """An init container, with so much CPU."""
    return {"name": f"first-{cpu}", "image": "i", "resources": {"limits": {"cpu": cpu}}, **more}


def complete(case: Case, number: int) -> Case:
    """The case with names and labels of its own, by which its run finds its nodes."""
    nodes = []
    for at, node in enumerate(case.nodes):
        name = f"n{number}-{at}"
        labels = {**node["metadata"]["labels"], WORLD: f"{number}", HOSTNAME_LABEL: name}
        status = {**node["status"], "capacity": node["status"]["allocatable"]}
        nodes.append({"metadata": {"name": name, "labels": labels}, "status": status})
    world = {WORLD: f"{number}"}
    spec = {**case.run, "environment": {"nodeSelector": world}}
    # The selector of one case is none of another.
    selector = {"matchLabels": {"apart": f"c{number}"}}
    template = {
        "metadata": {"labels": {"apart": f"c{number}"}},
        "spec": dict(spec["template"]["spec"]),
    }
    if "affinity" in template["spec"]:
        term = {"topologyKey": HOSTNAME_LABEL, "labelSelector": selector}
        template["spec"]["affinity"] = {"podAntiAffinity": {REQUIRED: [term]}}
    run = {
        "apiVersion": API_VERSION,
        "kind": "Run",
        "metadata": {"name": f"c{number}", "namespace": NAMESPACE},
        "spec": {**spec, "template": template},
    }
    return Case(run, nodes, case.ordinary)


def foresee(case: Case) -> Foreseen | None:
    """What `room` says of the run; None if it has a single pod."""
    world = with_nodes(unread_world(load({}).policies), [*map(parse_node, case.nodes)])
    groups = decisions(offline_of(world, [Object("x", case.run)], [], NAMESPACE, None))
    room = groups[0].room
    return room and Foreseen(case, room.room, [pod for group in groups for pod in pods_of(group)])


def pods_of(group: Replicas) -> list[Json]:
    """The pods as the controller creates them, without what only their containers need."""
    made = []
    for index in group.all_indexes:
        pod = group.template.pod(index)
        pod["metadata"].pop("ownerReferences", None)
        made.append({"metadata": {**pod["metadata"], "namespace": NAMESPACE}, "spec": pod["spec"]})
    return made


def test_the_scheduler_never_runs_more_pods_than_the_most(
    scheduler_plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the packing has all pods, it runs all of nine in ten runs of ordinary sizes."""
    plane = scheduler_plane
    numbered = map(complete, drawn(cases(), CASES, seed=46), range(CASES))
    foreseen = [entry for case in numbered if (entry := foresee(case))]
    plane.create_namespace(NAMESPACE)
    nodes = [node for entry in foreseen for node in entry.case.nodes]
    create_nodes(plane, nodes)
    await_node(plane, NAMESPACE, nodes[-1])
    for pod in (pod for entry in foreseen for pod in entry.pods):
        plane.api.create(f"/api/v1/namespaces/{NAMESPACE}/pods", pod)
    landed = landings(plane, NAMESPACE)
    full = whole = limited = reached = 0
    for entry in foreseen:
        room, count = entry.room, len(landed[entry.case.run["metadata"]["name"]])
        assert count <= room.most, (count, room, entry.case)
        limited += room.most < room.asked
        reached += room.most < room.asked and count == room.most
        if entry.case.ordinary and room.placed == room.asked:
            full += 1
            whole += count == room.asked
    with capsys.disabled():
        print(
            f"\nkube-scheduler, {len(foreseen)} runs: {limited} have a limit, and {reached} of "
            f"these run as many pods; of {full} ordinary ones with a packing, {whole} are whole"
        )
    assert len(foreseen) >= 300
    assert limited >= len(foreseen) / 5
    assert full >= len(foreseen) / 5
    assert whole >= 0.9 * full
