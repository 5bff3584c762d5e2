"""One line for each replica, with what its pod and its node say."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.cli.run.scripted_cluster import (
    delegated_run,
    engine_pod_object,
    pod_object,
    run_object,
    served_pod,
)
from tests.kube.fake_api import Answer, Request, client_of, fake_api
from tests.wording import Wording, mentions
from webhook.cli.run.report import NodeSummary, Replica, fetch_summaries, replicas, summarize_labels
from webhook.errors import ClusterError
from webhook.run.backends.engine_pods import pod_reader
from webhook.run.model import RunStatus

READER = pod_reader(run_object(), ("worker",))


def told(*pods: dict[str, Any], **worker: Any) -> list[Replica]:
    """The replicas of a run whose workers are counted so."""
    counts = {"desired": len(pods) or 1, **worker}
    status = RunStatus.model_validate({"replicas": {"worker": counts}})
    return replicas(READER, status, pods, {"node-1": NodeSummary("pool", "spot")})


def only(status: dict[str, Any]) -> Replica:
    """The one replica whose pod has this status."""
    (one,) = told(pod_object("worker-0", **status))
    return one


def test_a_pod_that_runs_is_fine_and_says_where() -> None:
    """Node, pool, capacity."""
    one = only({})
    assert one == Replica(
        "worker", 0, "mnist-worker-0", "Running", "node-1", pool="pool", capacity="spot"
    )
    assert (one.name, one.fine) == ("worker-0", True)


@pytest.mark.parametrize(
    ("status", "state", "note"),
    [
        ({"conditions": [{"type": "Ready", "status": "False"}]}, "Running, not ready", ""),
        (
            {
                "phase": "Pending",
                "conditions": [
                    {
                        "type": "PodScheduled",
                        "status": "False",
                        "reason": "Unschedulable",
                        "message": "0/3 nodes are available. preemption: no use",
                    }
                ],
            },
            "Pending",
            "0/3 nodes are available",
        ),
        (
            {
                "phase": "Pending",
                "containerStatuses": [
                    {
                        "name": "main",
                        "state": {"waiting": {"reason": "ErrImagePull", "message": "no such tag"}},
                    }
                ],
            },
            "Pending",
            "ErrImagePull: no such tag",
        ),
        (
            {
                "phase": "Failed",
                "containerStatuses": [
                    {
                        "name": "main",
                        "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                    }
                ],
            },
            "Failed",
            "main exited with 137 (OOMKilled)",
        ),
        (
            {
                "phase": "Failed",
                "reason": "Evicted",
                "message": "disk pressure",
                "containerStatuses": [],
            },
            "Failed",
            "Evicted: disk pressure",
        ),
        (
            {
                "conditions": [
                    {"type": "Ready", "status": "True"},
                    {
                        "type": "DisruptionTarget",
                        "status": "True",
                        "reason": "PreemptionByScheduler",
                    },
                ]
            },
            "Running",
            "disrupted (PreemptionByScheduler)",
        ),
    ],
)
def test_a_pod_that_is_not_fine_says_why(status: dict[str, Any], state: str, note: str) -> None:
    """In the words of the scheduler or the kubelet."""
    one = only(status)
    assert (one.state, one.note, one.fine) == (state, note, False)


def test_gates_and_deletion_are_reported(wording: Wording) -> None:
    """What holds a pod back, and what it is on the way to."""
    gated, leaving = pod_object("worker-0", phase="Pending"), pod_object("worker-1")
    gated["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    leaving["metadata"]["deletionTimestamp"] = "2026-08-01T12:00:00Z"
    first, second = told(gated, leaving)
    assert first.state == "Pending"
    mentions(first.note, "1 scheduling gate")
    wording(first.note)
    assert second.state == "Terminating"


def test_replicas_without_pods_are_there_too() -> None:
    """Finished, waiting for their next start, or missing."""
    recovering = [{"indexes": "1", "failures": 3, "since": "2026-08-01T12:00:00Z"}]
    one, two, three = told(desired=3, succeededIndexes="0", recovering=recovering)
    assert (one.state, one.fine) == ("Succeeded", True)
    assert (two.state, two.downs, two.since) == ("Waiting", 3, "2026-08-01T12:00:00Z")
    assert (three.state, three.fine) == ("Missing", False)


def test_a_replica_that_runs_again_says_how_often_it_went_down() -> None:
    """Until it is stable."""
    recovering = [
        {"indexes": "0", "failures": 1, "disruptions": 2, "since": "2026-08-01T12:00:00Z"}
    ]
    (one,) = told(pod_object("worker-0"), recovering=recovering)
    assert (one.state, one.downs, one.fine) == ("Running", 3, False)


def test_pods_of_a_deployment_come_by_name_with_their_restarts() -> None:
    """A notebook has no replicas of a role; and other people's pods are left out."""
    served = served_pod("abc-xyz")
    served["status"]["containerStatuses"][0]["restartCount"] = 2
    foreign = pod_object("worker-7")
    foreign["metadata"]["ownerReferences"] = []
    found = replicas(READER, RunStatus(), [served, foreign], {})
    assert [(one.name, one.note) for one in found] == [("mnist-abc-xyz", "restarted 2 times")]


@pytest.mark.parametrize(
    ("labels", "pool", "capacity"),
    [
        ({"cloud.google.com/gke-nodepool": "a", "cloud.google.com/gke-spot": "true"}, "a", "spot"),
        ({"cloud.google.com/gke-preemptible": "true"}, "", "preemptible"),
        (
            {"eks.amazonaws.com/nodegroup": "b", "eks.amazonaws.com/capacityType": "ON_DEMAND"},
            "b",
            "on-demand",
        ),
        ({"karpenter.sh/nodepool": "c", "karpenter.sh/capacity-type": "spot"}, "c", "spot"),
        (
            {
                "kubernetes.azure.com/agentpool": "d",
                "kubernetes.azure.com/scalesetpriority": "spot",
            },
            "d",
            "spot",
        ),
        ({"app.iguazio.com/lifecycle": "preemptible"}, "", "preemptible"),
        ({"kubernetes.io/os": "linux", "cloud.google.com/gke-spot": "false"}, "", ""),
    ],
)
def test_labels_tell_pool_and_capacity(labels: dict[str, str], pool: str, capacity: str) -> None:
    """Whoever the provider is; what no label tells stays empty."""
    assert summarize_labels(labels) == NodeSummary(pool, capacity)


def node(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "labels": {"karpenter.sh/nodepool": f"pool-of-{name}"}}}


@pytest.mark.parametrize("count", [3, 30])
def test_only_the_nodes_that_are_asked_for_are_reported(tmp_path: Path, count: int) -> None:
    """One by one, or out of one list; a node that is gone is left out."""

    async def handle(request: Request, answer: Answer) -> None:
        name = request.path.rpartition("/")[2]
        if name == "nodes":
            items = [node(f"n{number}") for number in range(100)]
            await answer.json({"metadata": {"resourceVersion": "1"}, "items": items})
        elif name == "gone":
            await answer.status(404, "NotFound", "gone")
        else:
            await answer.json(node(name))

    async def run() -> None:
        wanted = {f"n{number}" for number in range(count)}
        async with fake_api(handle) as api, client_of(api, tmp_path) as client:
            told = await fetch_summaries(client, wanted | {"gone"})
            assert set(told) == wanted
            assert told["n1"] == NodeSummary("pool-of-n1", "")

    asyncio.run(run())


def test_without_rights_on_nodes_there_is_no_text_about_them(tmp_path: Path) -> None:
    """That is usual, and no error; any other refusal is one."""
    codes = iter([403, 500])

    async def refuse(_: Request, answer: Answer) -> None:
        await answer.status(next(codes), "", "no")

    async def run() -> None:
        async with fake_api(refuse) as api, client_of(api, tmp_path) as client:
            assert await fetch_summaries(client, {"a"}) == {}
            with pytest.raises(ClusterError):
                await fetch_summaries(client, {"a"})

    asyncio.run(run())


def test_pods_of_an_engine_are_replicas_of_the_run() -> None:
    """By the operator's labels; of two pods of one replica the one that lives counts."""
    roles = {"server": {"desired": 1}, "worker": {"desired": 2}}
    status = RunStatus.model_validate({"replicas": roles})
    ended = engine_pod_object("worker-1", phase="Failed")
    ended["metadata"] |= {"name": "mnist-worker-1-old", "creationTimestamp": "2026-08-01T12:00:00Z"}
    container = {"name": "paddle", "restartCount": 2, "state": {"running": {}}}
    again = engine_pod_object("worker-1", containerStatuses=[container])
    again["metadata"]["creationTimestamp"] = "2026-08-01T12:00:05Z"
    pods = [again, engine_pod_object("master-0"), ended]
    server, missing, worker = replicas(pod_reader(delegated_run(), roles), status, pods, {})
    assert (server.name, server.pod, server.state) == ("server-0", "mnist-master-0", "Running")
    assert (missing.name, missing.state) == ("worker-0", "Missing")
    assert (worker.pod, worker.state, worker.note) == (
        "mnist-worker-1",
        "Running",
        "restarted 2 times",
    )
