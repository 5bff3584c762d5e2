"""`fairlead run status` and `logs` beside the real API server, scheduler and controller."""

from __future__ import annotations

import json

from click.testing import Result

from tests.cluster.live_runs import create_run
from tests.cluster.spaces import Space

pytest_plugins = ["tests.cluster.run_fixtures"]


def rows(done: Result) -> list[list[str]]:
    assert done.exit_code == 0, done.output
    return [line.split() for line in done.output.splitlines()]


def test_a_run_is_shown_with_the_nodes_of_its_replicas(run_space: Space) -> None:
    """Where the scheduler has put them, and of which pool that is."""
    spot = {
        "nodeSelector": {"cloud.google.com/gke-nodepool": "spot"},
        "tolerations": [{"key": "cloud.google.com/gke-spot", "operator": "Exists"}],
    }
    replicas = {"master": {}, "worker": {"count": 2, "environment": spot}}
    live = create_run(run_space, "mnist", framework="tensorflow", replicas=replicas)
    live.until_phase("Running")
    shown = rows(run_space.ask("run", "status", "mnist"))
    assert shown[0] == ["mnist:", "Running,", "3", "of", "3", "replicas", "run"]
    assert ["worker", "2", "2", "2", "0", "0", "0", "0"] in shown
    (worker,) = (row for row in shown if row[:1] == ["worker-1"])
    assert worker[2].startswith("spot-")
    assert [worker[1], *worker[3:]] == ["Running", "spot", "spot"]


def test_the_original_error_message_is_shown(run_space: Space) -> None:
    """The scheduler's, and the program's last ones."""
    live = create_run(run_space, "sad", framework="pytorch", replicas={"master": {}, "worker": {}})
    live.until_phase("Running")
    live.ends("worker-0", 1, message="epoch 3\nloss is NaN")
    live.until_phase("Restarting")
    shown = rows(run_space.ask("run", "status", "sad"))
    assert shown[0][:2] == ["sad:", "Restarting,"]
    assert shown[-2:] == [["|", "epoch", "3"], ["|", "loss", "is", "NaN"]]

    create_run(run_space, "stuck", environment={"nodeSelector": {"no": "such-node"}}).until(
        "the scheduler has said so",
        lambda: "node(s)" in run_space.ask("run", "status", "stuck").output,
    )
    document = json.loads(run_space.ask("run", "status", "stuck", "-o", "json").output)
    (replica,) = document["replicas"]
    assert replica["state"] == "Pending"
    assert replica["note"].startswith("0/12 nodes are available")


def test_a_waiting_run_says_what_an_autoscaler_reports(run_space: Space) -> None:
    """The newest Event about the pod that the scheduler did not write, and since when it is so."""
    live = create_run(run_space, "waits", environment={"nodeSelector": {"no": "such-node"}})
    live.until("the scheduler has said so", lambda: "0/" in live.status.get("message", ""))
    pod = live.pods()["master-0"]
    for minute, reason, text in (
        (1, "TriggeredScaleUp", "pod triggered scale-up: [{spot 1->2 (max: 2)}]"),
        (2, "NotTriggerScaleUp", "pod didn't trigger scale-up: 1 max node group size reached"),
    ):
        at = f"2026-01-01T00:0{minute}:00Z"
        run_space.plane.api.create(
            f"/api/v1/namespaces/{run_space.name}/events",
            {
                "metadata": {"name": f"waits.{minute}", "namespace": run_space.name},
                "involvedObject": {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "namespace": run_space.name,
                    "name": pod["metadata"]["name"],
                    "uid": pod["metadata"]["uid"],
                },
                "type": "Normal",
                "reason": reason,
                "message": text,
                "source": {"component": "cluster-autoscaler"},
                "firstTimestamp": at,
                "lastTimestamp": at,
            },
        )
    want = f"; cluster-autoscaler since 2026-01-01T00:02:00Z: {text}"
    live.until("the message has it", lambda: want in live.status["message"])
    assert want in live.condition("Scheduled")["message"]
