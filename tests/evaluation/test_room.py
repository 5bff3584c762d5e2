"""How many pods of one object can run at one time, as evaluations have it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.objects import an_object
from webhook.cli import fairlead
from webhook.evaluation.answer import answer_of
from webhook.evaluation.plugins import Used
from webhook.evaluation.replicas import Replicas
from webhook.evaluation.room import ObjectRoom
from webhook.names import API_VERSION
from webhook.placement.nodes import Node
from webhook.placement.room import Limit
from webhook.policy.load import load
from webhook.questions.decisions import decisions
from webhook.questions.offline import offline_of, unread_world, with_nodes
from webhook.workloads.object import Object

Json = dict[str, Any]
GPU = "nvidia.com/gpu"
HOST = "kubernetes.io/hostname"
NODES = [
    Node(name, {HOST: name}, [], allocatable={"pods": 110, "cpu": 64_000, GPU: 8})
    for name in ("a", "b")
]
CLASS = """
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: spot}
spec: {autoscaled: true, nodes: [{labels: {pool: spot}}]}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: nothing}
spec: {match: {kinds: [notebook]}, overrides: {labels: {a: b}}}
"""


def pod_spec(gpus: int = 8, **more: Any) -> Json:
    limits = {GPU: str(gpus)}
    return {"containers": [{"name": "main", "image": "i", "resources": {"limits": limits}}], **more}


def a_run(count: int = 16, spec: Json | None = None, **more: Any) -> Json:
    template = {"metadata": {"labels": {"app": "big"}}, "spec": spec or pod_spec()}
    roles = {"replicas": {"worker": {"count": count}}, "template": template}
    return an_object(API_VERSION, "Run", "big", {"framework": "pytorch", **roles, **more})


def a_job(**more: Any) -> Json:
    template = {"spec": {**pod_spec(), "restartPolicy": "Never"}}
    return an_object("batch/v1", "Job", "big", {"template": template, **more})


def decided(whole: Json, nodes: list[Node] | None = None, policies: str = "") -> list[Replicas]:
    files = {"p.yaml": policies.encode()} if policies else {}
    world = with_nodes(unread_world(load(files).policies), NODES if nodes is None else nodes)
    return decisions(offline_of(world, [Object("x", whole)], [], "default", None))


def room_of(groups: list[Replicas]) -> ObjectRoom:
    """That of all pods of the object."""
    room = groups[0].room
    assert room is not None
    assert all(replicas.room == room for replicas in groups)
    return room


def numbers(whole: Json) -> tuple[int, int, int]:
    """How many are asked for, run at most, and have a place."""
    return room_of(decided(whole)).room[:3]


def a_job_set(*jobs: Json) -> Json:
    """Three pods of each job."""
    spec = {"parallelism": 3, "completions": 3, **a_job()["spec"]}
    replicated = [{"template": {"spec": spec}, **job} for job in jobs]
    return an_object("jobset.x-k8s.io/v1alpha2", "JobSet", "big", {"replicatedJobs": replicated})


DEPLOYMENT = an_object(
    "apps/v1",
    "Deployment",
    "big",
    {
        "replicas": 16,
        "selector": {"matchLabels": {"app": "big"}},
        "template": {"metadata": {"labels": {"app": "big"}}, "spec": pod_spec()},
    },
)


def anti_affinity(**more: Any) -> Json:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "big"}}, **more}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": required}}


PORT = {"name": "main", "image": "i", "ports": [{"containerPort": 1, "hostPort": 2222}]}
OWN_PORT = {"name": "main", "image": "i", "ports": [{"containerPort": 1}]}
LOCAL = {
    "name": "main",
    "image": "i",
    "ports": [{"containerPort": 1, "hostPort": 2222, "hostIP": "10.0.0.1"}],
}


@pytest.mark.parametrize(
    ("whole", "expected"),
    [
        (a_run(), (16, 2, 2)),
        (a_run(2), (2, 2, 2)),
        (a_run(3, pod_spec(4)), (3, 3, 3)),
        (a_run(3, {"containers": [PORT]}), (3, 2, 2)),
        (a_run(3, {"containers": [OWN_PORT]}), (3, 3, 3)),
        (
            a_run(3, {"containers": [OWN_PORT], "hostNetwork": True}),
            (3, 2, 2),
        ),
        # Each may have another address, so that nothing is known.
        (a_run(3, {"containers": [LOCAL]}), (3, 3, 3)),
        (a_run(3, pod_spec(1, **anti_affinity())), (3, 2, 2)),
        (a_run(3, pod_spec(1, **anti_affinity(topologyKey="zone"))), (3, 3, 3)),
        (a_run(3, pod_spec(1, **anti_affinity(namespaces=["other"]))), (3, 3, 3)),
        (a_run(3, pod_spec(1, **anti_affinity(labelSelector={}))), (3, 2, 2)),
        (
            a_run(
                3,
                pod_spec(1, **anti_affinity(labelSelector={"matchLabels": {"app": "other"}})),
            ),
            (3, 3, 3),
        ),
        # Of a label that differs between the pods, only one of them is selected.
        (
            a_run(
                3,
                pod_spec(
                    1,
                    **anti_affinity(
                        labelSelector={"matchLabels": {"fairlead.dev/replica-index": "0"}}
                    ),
                ),
            ),
            (3, 3, 3),
        ),
        (a_run(pytorch={"elastic": {"minReplicas": 2}}), (16, 2, 2)),
        (a_job_set({"name": "a"}, {"name": "b"}), (6, 2, 2)),
        (a_job(completions=9, parallelism=3), (3, 2, 2)),
        (a_job(completions=9, parallelism=2), (2, 2, 2)),
        (a_job(completions=2, parallelism=9), (2, 2, 2)),
    ],
)
def test_how_many_can_run_at_one_time(whole: Json, expected: tuple[int, int, int]) -> None:
    """By resources, host ports, and anti-affinity of the pods to each other."""
    assert numbers(whole) == expected


def test_no_more_pods_of_a_job_run_than_it_has_completions() -> None:
    """A JobSet of two Jobs with parallelism 4 and one completion has two pods at one time."""
    spec = {**a_job()["spec"], "parallelism": 4, "completions": 1}
    replicated = [{"name": "a", "replicas": 2, "template": {"spec": spec}}]
    whole = an_object("jobset.x-k8s.io/v1alpha2", "JobSet", "big", {"replicatedJobs": replicated})
    assert numbers(whole) == (2, 2, 2)


def test_replicas_with_other_requests_are_named_by_their_number() -> None:
    """The reason has what each of them requests."""
    by_index = {"count": 9, "byIndex": [{"index": 0, "resources": {"limits": {GPU: "1"}}}]}
    room = room_of(decided(a_run(replicas={"worker": by_index})))
    assert room.room.limit == Limit(GPU, 2, 8, 8, {"worker 1-8": 8, "worker 0": 1})


def test_a_port_of_a_sidecar_is_one_of_the_pod() -> None:
    """Of an init container that ends before, it is not."""
    container = {**PORT, "name": "side"}
    for policy, most in (("Always", 2), (None, 3)):
        sidecar = {**container, **({"restartPolicy": policy} if policy else {})}
        assert numbers(a_run(3, pod_spec(1, initContainers=[sidecar])))[1] == most


DAEMON_SET = an_object(
    "apps/v1",
    "DaemonSet",
    "agent",
    {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": pod_spec(1, nodeSelector={HOST: "a"}),
        },
    },
)


def beside(whole: Json, daemon_set: Json, *, cluster: bool = False, **inputs: Any) -> ObjectRoom:
    """The room of an object beside a DaemonSet, which is in a file too, or in the cluster."""
    world = with_nodes(unread_world(load({}).policies), NODES)
    given = [Object("y", daemon_set)]
    plugins = world.plugins._replace(daemon_sets=given if cluster else (), **inputs)
    objects = [Object("x", whole), *([] if cluster else given)]
    offline = offline_of(replace(world, plugins=plugins), objects, [], "default", None)
    return room_of([group for group in decisions(offline) if group.template.count is not None])


@pytest.mark.parametrize("cluster", [True, False])
def test_pods_of_daemon_sets_take_their_part_of_the_nodes_that_they_run_on(
    *, cluster: bool
) -> None:
    """Also where no pod of them runs yet; not those that a pod of the run would preempt."""
    room = beside(a_run(2), DAEMON_SET, cluster=cluster).room
    assert room == (2, 1, 1, Limit(GPU, 2, 7, 8, {"worker": 8}))
    first = pod_spec(priorityClassName="system-node-critical")
    assert beside(a_run(2, first), DAEMON_SET, cluster=cluster).room[:3] == (2, 2, 2)
    unknown = pod_spec(priorityClassName="mine")
    assert beside(a_run(2, unknown), DAEMON_SET, cluster=cluster).room[:3] == (2, 2, 2)


def test_what_other_pods_request_counts_now_only() -> None:
    """Those of the run itself do not."""
    busy = {"a": {"pods": 3, GPU: 4}}
    for by_run, now in (({}, 1), ({("default", "big"): busy}, 2), ({("other", "big"): busy}, 1)):
        room = beside(a_run(2), DEPLOYMENT, cluster=True, used=Used(busy, by_run))
        assert room.room.most == 2
        assert room.now is not None
        assert room.now.most == now
        assert ("now at most 1, beside other pods" in room.text) is (now == 1)


def test_the_answer_has_the_room_once_for_each_object() -> None:
    """With that of its first pods that can run."""
    for gpus, shown in (("8", [True, False]), ("9", [False, True])):
        master = {"resources": {"limits": {GPU: gpus}}}
        groups = decided(a_run(replicas={"master": master, "worker": {"count": 2}}))
        assert ["at most 2 of 3" in answer_of(replicas) for replicas in groups] == shown


def test_roles_of_one_object_are_counted_together() -> None:
    """A node for the master is none for a worker."""
    roles = {"master": {}, "worker": {"count": 2}}
    groups = decided(a_run(replicas=roles))
    assert len(groups) == 2
    assert room_of(groups).room == (3, 2, 2, Limit(GPU, 2, 8, 8, {"master": 8, "worker": 8}))


@pytest.mark.parametrize(
    "whole",
    [
        a_run(1),
        a_job(),
        a_job(completions=5),
        DEPLOYMENT,
        a_job_set({"name": "a"}, {"name": "b", "dependsOn": [{"name": "a", "status": "Complete"}]}),
        a_run(2, pod_spec(nodeName="a")),
    ],
)
def test_pods_that_do_not_run_together_have_no_room(whole: Json) -> None:
    """One pod, pods of a Job one after the other, pods of other kinds, and pods with their node."""
    assert {id(replicas.room) for replicas in decided(whole)} == {id(None)}


def test_nodes_that_are_made_on_demand_leave_the_room_open() -> None:
    """The limit stands, and it is not known that the run cannot be whole."""
    room = room_of(decided(a_run(), policies=CLASS))
    assert room.room.most == 2
    assert room.on_demand == ("spot",)
    assert not room.is_short
    assert room.can_begin


@pytest.mark.parametrize(
    ("whole", "begins"),
    [
        (a_run(), False),
        (a_run(pytorch={"elastic": {"minReplicas": 2}}), True),
        (a_run(pytorch={"elastic": {"minReplicas": 3}}), False),
        (a_job(completions=9, parallelism=3), True),
    ],
)
def test_replicas_that_meet_do_not_begin_with_too_few(whole: Json, *, begins: bool) -> None:
    """Those of a framework need all, or an elastic run's minimum; pods of a Job need none."""
    room = room_of(decided(whole))
    assert room.can_begin is begins
    assert room.is_short


def test_what_is_not_part_of_it_is_named() -> None:
    """Fields that also decide, and host ports of one address."""
    spec = {"containers": [LOCAL], **anti_affinity()}
    room = room_of(decided(a_run(3, spec)))
    assert set(room.unjudged) == {"podAntiAffinity", "hostIP"}


@pytest.mark.parametrize("output", ["pods", "text"])
@pytest.mark.parametrize(
    ("fail_on", "count", "code"),
    [
        ("no-room", 16, 1),
        ("no-room", 2, 0),
        ("warning", 16, 1),
        ("warning", 2, 0),
        ("no-node", 16, 0),
    ],
)
def test_a_run_without_room_fails_if_that_is_asked(
    tmp_path: Path, fail_on: str, count: int, code: int, output: str
) -> None:
    """`--fail-on` names the object once, in every form."""
    nodes = [
        {
            "metadata": {"name": name},
            "status": {"allocatable": {"pods": "110", "cpu": "64", GPU: "8"}},
        }
        for name in ("a", "b")
    ]
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(a_run(count)))
    (tmp_path / "nodes.yaml").write_text(yaml.safe_dump({"kind": "NodeList", "items": nodes}))
    words = ["-f", f"{tmp_path}/run.yaml", "--policies", "/dev/null", "-o", output]
    options = ["--nodes", f"{tmp_path}/nodes.yaml", "--fail-on", fail_on]
    done = CliRunner().invoke(fairlead, ["preview", *words, *options])
    assert done.exit_code == code, done.output
    assert done.stderr.count("Run/big in default: at most") == (fail_on == "no-room" and code)


def test_the_result_has_the_room(tmp_path: Path) -> None:
    """As `explain -o json` prints it."""
    (tmp_path / "run.yaml").write_text(yaml.safe_dump(a_run()))
    node = {"metadata": {"name": "a"}, "status": {"allocatable": {"pods": "9", GPU: "8"}}}
    (tmp_path / "nodes.yaml").write_text(json.dumps({"kind": "NodeList", "items": [node]}))
    words = ["-f", f"{tmp_path}/run.yaml", "--policies", "/dev/null", "-o", "json"]
    done = CliRunner().invoke(fairlead, ["explain", *words, "--nodes", f"{tmp_path}/nodes.yaml"])
    (pods,) = json.loads(done.stdout)["pods"]
    limit = {"resource": GPU, "nodes": 1, "least": "8", "most": "8", "requests": {"worker": "8"}}
    assert pods["room"] == {
        "asked": 16, "most": 1, "placed": 1, "limit": limit, "onDemand": [], "unjudged": [],
        "mostNow": None,
    }  # fmt: skip


def test_the_groups_of_a_leader_worker_set_run_together() -> None:
    """Two groups of three pods: on two nodes with room for one each, two of the six run."""
    template = {"workerTemplate": {"spec": pod_spec()}, "size": 3}
    spec = {"replicas": 2, "leaderWorkerTemplate": template}
    whole = an_object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "big", spec)
    assert numbers(whole) == (6, 2, 2)
