"""How many pods of a run fit now, beside those of a cluster, by the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tests.control_planes import StartControlPlane
from webhook.cli import fairlead
from webhook.names import API_VERSION, RUN
from webhook.sandbox.control_plane import Settings

GPU = "nvidia.com/gpu"


def of_gpus(count: int, **more: Any) -> dict[str, Any]:
    """A pod's spec with so many GPUs."""
    limits = {GPU: f"{count}"}
    return {"containers": [{"name": "a", "image": "i", "resources": {"limits": limits}}], **more}


def test_what_other_pods_and_daemon_sets_request_is_taken_off(
    start_control_plane: StartControlPlane, tmp_path: Path
) -> None:
    """Not what has ended, nor what the run itself requests, nor what waits for a node."""
    plane = start_control_plane(Settings(components=("etcd", "kube-apiserver")))
    amounts = {"cpu": "64", "pods": "110", GPU: "8"}
    for name in ("a", "b", "c"):
        labels = {"kubernetes.io/hostname": name}
        made = plane.api.create(
            "/api/v1/nodes",
            {
                "metadata": {"name": name, "labels": labels},
                "status": {"allocatable": amounts, "capacity": amounts},
            },
        )
        # The taint that every node is born with.
        made["spec"].pop("taints", None)
        assert plane.api.call("PUT", f"/api/v1/nodes/{name}", made)[0] == 200
    plane.create_namespace("lab")
    pods = "/api/v1/namespaces/lab/pods"
    for name, label, spec in (
        ("agent", "none", of_gpus(1, nodeName="a")),
        ("other", "other", of_gpus(1, nodeName="b")),
        ("big-worker-0", "big", of_gpus(8, nodeName="c")),
        ("waits", "other", of_gpus(8)),
        ("ended", "other", of_gpus(8, nodeName="c")),
    ):
        plane.api.create(pods, {"metadata": {"name": name, "labels": {RUN: label}}, "spec": spec})
    ended = plane.api.get(f"{pods}/ended")
    ended["status"]["phase"] = "Succeeded"
    assert plane.api.call("PUT", f"{pods}/ended/status", ended)[0] == 200
    labels = {"app": "agent"}
    template = {
        "metadata": {"labels": labels},
        "spec": of_gpus(1, nodeSelector={"kubernetes.io/hostname": "a"}),
    }
    plane.api.create(
        "/apis/apps/v1/namespaces/lab/daemonsets",
        {
            "metadata": {"name": "agent"},
            "spec": {"selector": {"matchLabels": labels}, "template": template},
        },
    )
    run = {
        "apiVersion": API_VERSION,
        "kind": "Run",
        "metadata": {"name": "big", "namespace": "lab"},
        "spec": {
            "framework": "pytorch",
            "template": {"spec": of_gpus(8)},
            "replicas": {"worker": {"count": 3}},
        },
    }
    (tmp_path / "run.yaml").write_text(json.dumps(run))
    words = ["explain", "-f", f"{tmp_path}/run.yaml", "--policies", "/dev/null", "-o", "json"]
    options = ["--nodes", "cluster", "--kubeconfig", str(plane.kubeconfig)]
    done = CliRunner().invoke(fairlead, [*words, *options])
    assert done.exit_code == 0, done.output
    (answer,) = json.loads(done.stdout)["pods"]
    room = answer["room"]
    assert (room["asked"], room["most"], room["mostNow"]) == (3, 2, 1), answer["answer"]
