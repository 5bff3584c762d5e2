"""`fairlead run status`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.run.scripted_cluster import PODS, RUNS, Cluster, pod_object, run_object, served
from tests.kube.fake_api import Answer, Request
from webhook.cli.run import status

WORKERS = {"master": {"desired": 1}, "worker": {"desired": 2, "succeededIndexes": "1"}}


def cluster() -> Cluster:
    """A run of which one worker has finished, and its pod is gone."""
    there = Cluster()
    there.add(RUNS, run_object(phase="Running", message="2 run", replicas=dict(WORKERS)))
    there.add(PODS, pod_object("master-0"), pod_object("worker-0"))
    there.add(PODS, pod_object("worker-1", run="other", uid="u2"))
    spot = {"metadata": {"name": "node-1", "labels": {"cloud.google.com/gke-spot": "true"}}}
    there.add("/api/v1/nodes", spot)
    return there


def test_a_run_is_shown_with_its_replicas(tmp_path: Path) -> None:
    """Its own pods, and the replicas that have none; nobody else's."""
    with served(cluster(), tmp_path) as call:
        done = call("status", "mnist")
    assert done.exit_code == 0
    lines = [line.split() for line in done.output.splitlines()]
    assert lines[0] == ["mnist:", "Running,", "2", "run"]
    assert lines[-3:] == [
        ["master-0", "Running", "node-1", "spot"],
        ["worker-0", "Running", "node-1", "spot"],
        ["worker-1", "Succeeded"],
    ]


def test_json_has_the_status_and_every_replica(tmp_path: Path) -> None:
    """For programs."""
    with served(cluster(), tmp_path) as call:
        done = call("status", "mnist", "-o", "json")
    document = json.loads(done.output)
    assert (document["name"], document["status"]["phase"]) == ("mnist", "Running")
    assert document["status"]["replicas"]["worker"]["succeededIndexes"] == "1"
    assert [one["name"] for one in document["replicas"]] == ["master-0", "worker-0", "worker-1"]
    assert document["replicas"][0]["capacity"] == "spot"


def test_roles_come_in_the_framework_s_order(tmp_path: Path) -> None:
    """The API server sorts them by name."""
    there = Cluster()
    roles = {"master": {"desired": 1}, "ps": {"desired": 1}, "worker": {"desired": 1}}
    there.add(RUNS, run_object(phase="Pending", replicas=roles))
    with served(there, tmp_path) as call:
        done = call("status", "mnist", "-o", "json")
    assert list(json.loads(done.output)["status"]["replicas"]) == ["master", "worker", "ps"]


def test_watching_prints_each_change_until_the_run_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing while nothing changes."""
    monkeypatch.setattr(status, "PERIOD", 0.01)
    there = cluster()
    phases = iter(["Running", "Running", "Succeeded"])

    async def change(_: Request, answer: Answer) -> None:
        run = run_object(phase=next(phases), message="2 run", replicas=dict(WORKERS))
        await answer.json(run)

    there.answers[f"{RUNS}/mnist"] = change
    with served(there, tmp_path) as call:
        done = call("status", "mnist", "--watch")
    assert done.exit_code == 0
    titles = [line for line in done.output.splitlines() if line.startswith("mnist:")]
    assert titles == ["mnist: Running, 2 run", "mnist: Succeeded, 2 run"]
