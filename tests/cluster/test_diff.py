"""`fairlead diff` beside the real API server: live pods and workloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.manifests import SPOT_CLASS, pod, policy_text, template, workload
from tests.cluster.spaces import NewNamespace, Space, is_stamped
from tests.objects import an_object
from tests.wording import mentions
from webhook import names
from webhook.placement.quantity import amount
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = [
    "tests.cluster.webhook_fixtures",
    "tests.cluster.run_fixtures",
]

POOL = "cloud.google.com/gke-nodepool"


def policy(name: str, stage: str, spec: str) -> str:
    """A policy for the pods of a stage in the namespaces of these tests."""
    namespaces, pods = "{matchLabels: {test: diff}}", f"{{matchLabels: {{stage: {stage}}}}}"
    match = f"match: {{namespaceSelector: {namespaces}, podSelector: {pods}}}"
    return policy_text(f"diff-{name}", match, spec)


POLICIES = SPOT_CLASS + policy(
    "training", "training", "overrides: {capacity: [{class: spot, mode: Constrain}]}"
)
OTHERS = (
    SPOT_CLASS
    + policy("training", "training", "overrides: {capacity: [{class: spot, mode: Prevent}]}")
    + policy("alone", "alone", "defaults: {nodeSelector: {zone: a}}")
    + policy("strict", "strict", f"requirements: {{nodeSelector: {{{POOL}: spot}}}}")
    + policy("lost", "lost", "overrides: {nodeSelector: {pool: none}}")
)


@pytest.fixture
def space(run_api: ControlPlane, new_namespace: NewNamespace) -> Space:
    """A namespace in which the policies apply, in a cluster that serves Runs."""
    assert run_api
    return new_namespace({"test": "diff"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with both sets."""
    (tmp_path / "old.yaml").write_text(POLICIES)
    (tmp_path / "new.yaml").write_text(OTHERS)
    return tmp_path


def changes(found: Any) -> dict[str, tuple[str, list[str], int]]:
    """By object: what becomes of its pods otherwise, by which policies, and how many they are."""
    return {
        each["object"]: (change["change"], change["policies"], each["count"])
        for change in found["changes"]
        for each in change["objects"]
    }


def of(stage: str) -> dict[str, str]:
    """The labels of a pod of that stage, of a run."""
    return {names.RUN: "r", "stage": stage}


@pytest.mark.usefixtures("running")
def test_live_pods_and_workloads_are_decided_on_under_both_sets(space: Space, folder: Path) -> None:
    """Moved, rejected, without a node; a workload's pods by its template, once."""
    space.create(workload("Deployment", "train", template(labels=of("training")), replicas=2))
    space.create(
        an_object(
            "fairlead.dev/v1alpha1",
            "Run",
            "mnist",
            {
                "kind": "experiment",
                "framework": "tensorflow",
                "template": {
                    "metadata": {"labels": {"stage": "training"}},
                    "spec": template()["spec"],
                },
                "replicas": {"worker": {"count": 3}},
            },
        )
    )
    space.create(pod("solo", labels=of("alone")))
    space.create(pod("stubborn", labels=of("strict"), nodeSelector={POOL: "on-demand"}))
    space.create(pod("stranded", labels=of("lost")))
    space.create(pod("nobodys", labels={"stage": "lost"}))
    space.create(pod("over", labels=of("lost")))
    space.kubectl(
        *("patch", "pod", "over", "--subresource=status", "--type=merge"),
        *("-p", '{"status": {"phase": "Succeeded"}}'),
    )
    live = space.wait_for_pods(7)
    assert sum(map(is_stamped, live)) == 6
    done = space.ask("diff", folder / "old.yaml", folder / "new.yaml", "-o", "json")
    assert done.exit_code == 1, done.output
    found = json.loads(done.stdout)
    assert changes(found) == {
        "Deployment/train": ("moved", ["diff-training"], 2),
        "Run/mnist": ("moved", ["diff-training"], 3),
        "Pod/solo": ("unplaceable", ["diff-alone"], 1),
        "Pod/stubborn": ("rejected", ["diff-strict"], 1),
        "Pod/stranded": ("unplaceable", ["diff-lost"], 1),
    }
    assert (found["pods"]["total"], found["pods"]["live"]) == (8, 3)
    assert (found["pods"]["moved"], found["pods"]["unplaceable"]) == (5, 2)
    assert found["nodes"] == len(space.items("nodes"))
    (moved,) = (each for each in found["changes"] if each["count"] >= 2)
    assert moved["new"]["nodes"] < found["nodes"]


def test_room_counts_what_daemon_sets_of_the_cluster_take(space: Space, tmp_path: Path) -> None:
    """The pods come from a file, what runs on each node from the cluster."""
    node = next(node for node in space.items("nodes") if not node["spec"].get("taints"))
    at = {"kubernetes.io/hostname": node["metadata"]["labels"]["kubernetes.io/hostname"]}
    cpu = amount("cpu", node["status"]["allocatable"]["cpu"])

    def taking(percent: int, **fields: object) -> dict[str, Any]:
        requests = {"requests": {"cpu": f"{cpu * percent // 100}m"}}
        container = {"name": "main", "image": "example.invalid/none", "resources": requests}
        return {"containers": [container], **fields}

    agents = workload("DaemonSet", "agents", template(**taking(30, nodeSelector=at)))
    pair = taking(40, restartPolicy="Never")
    pods = {"parallelism": 2, "completions": 2, "template": template(labels=of("pair"), **pair)}
    job = an_object("batch/v1", "Job", "pair", pods)
    (tmp_path / "pods.yaml").write_text(json.dumps(job))
    (tmp_path / "old.yaml").write_text(policy("pair", "pair", "defaults: {labels: {a: b}}"))
    pinned = f"overrides: {{nodeSelector: {json.dumps(at)}}}"
    (tmp_path / "new.yaml").write_text(policy("pair", "pair", pinned))
    sets = tmp_path / "old.yaml", tmp_path / "new.yaml"
    words = ("diff", *sets, "--pods", tmp_path / "pods.yaml", "--nodes", "cluster")
    assert "run at one time" not in space.ask(*words).stdout
    space.create(agents)
    mentions(space.ask(*words).stdout, "at most 1 of 2 run at one time")
