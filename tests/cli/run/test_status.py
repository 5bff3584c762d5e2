"""`fairlead run status --watch`; golden/sessions/ has what it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.run.scripted_cluster import PODS, RUNS, Cluster, pod_object, run_object, served
from tests.kube.fake_api import Answer, Request
from webhook import names
from webhook.cli.run import status

MOMENT = "2026-08-01T12:00:30Z"
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
    monkeypatch.setattr(status, "LOOK_SECONDS", 0.01)
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
    assert titles == ["mnist: Running, 2 run; 0 of 3 are ready", "mnist: Succeeded, 2 run"]


# What another version, or any other client, wrote beside what can be read.
ODD: dict[str, Any] = {
    "phase": "Draining",
    "message": "two drain",
    "startTime": "yesterday",
    "restarts": 7,
    "disruptions": "many",
    "replicas": {
        "master": {"desired": 1, "activeIndexes": "0-3000000"},
        "worker": {"desired": 10**12, "failed": 3},
    },
    "incidents": [
        {"cause": "Maintenance", "reason": "Drained", "replica": "a", "began": MOMENT},
        {"cause": "Failure"},
    ],
    "usage": [{"resource": "replicas", "seconds": 60}, {"resource": 7}],
    "conditions": [{"type": "Ready", "status": "Soon", "lastTransitionTime": MOMENT}, 7],
    "later": {"field": 1},
}


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("status", "mnist"), ("mnist: Draining, two drain", "restarts", "7", "Maintenance")),
        (("status", "mnist", "-o", "json"), ('"phase": "Draining"', '"failed": 3', '"later"')),
        (("status", "mnist", "-o", "svg"), ("<svg", "Maintenance")),
        (("list",), ("Draining", "7")),
        (("cost", "mnist"), ("replicas", "1m")),
        (("top", "mnist"), ("Draining",)),
    ],
)
def test_what_can_be_read_of_a_status_is_shown(
    tmp_path: Path, arguments: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    """A value that cannot be read hides no other one, and ends no command."""
    there = cluster()
    run = run_object(**ODD)
    run["spec"] = {"later": True, "template": {"spec": {"containers": []}}}
    there.add(RUNS, run)
    there.add(f"/apis/{names.API_VERSION}/{names.CAPACITY_CLASSES}")
    with served(there, tmp_path) as call:
        done = call(*arguments)
    assert done.exit_code == 0, done.output
    for words in shown:
        assert words in done.output
