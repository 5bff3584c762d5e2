"""`fairlead run status --watch`; golden/sessions/ has what it shows."""

from __future__ import annotations

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
