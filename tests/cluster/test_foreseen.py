"""What `fairlead mutate` and `explain` foresee offline is what a real cluster makes of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.manifests import SPOT_CLASS, Json, pod, spec, template, workload
from tests.cluster.rooms import NewNamespace, Room
from webhook import names
from webhook.cli.decisions import Replicas, decisions
from webhook.cli.offline import read_nodes, read_offline
from webhook.placement import pod as pods
from webhook.placement.nodes import survey

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running")

POLICIES = (
    SPOT_CLASS
    + """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: on-spot}
spec:
  match: {namespaceSelector: {matchLabels: {test: foreseen}}}
  exclude: [{replicaIndexes: [0]}]
  overrides: {capacity: [{class: spot, mode: Constrain}]}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: the-first-stays}
spec:
  match: {namespaceSelector: {matchLabels: {test: foreseen}}, replicaIndexes: [0]}
  overrides: {capacity: [{class: spot, mode: Prevent}]}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: second-of-a-set}
spec:
  match: {podSelector: {matchLabels: {apps.kubernetes.io/pod-index: "1"}}}
  defaults: {annotations: {which: second}}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: of-a-job}
spec:
  match: {podSelector: {matchExpressions: [{key: job-name, operator: Exists}]}}
  defaults: {labels: {from: job}}
"""
)
_SIDE = {"metadata": {"name": "w"}}
WORKLOADS = {
    "pod": pod("w"),
    "deployment": workload("Deployment", "w", replicas=2),
    "replica-set": workload("ReplicaSet", "w", replicas=2),
    "stateful-set": workload("StatefulSet", "w", replicas=2, serviceName="w"),
    "replication-controller": {
        "apiVersion": "v1",
        "kind": "ReplicationController",
        **_SIDE,
        "spec": {"replicas": 2, "selector": {"app": "app"}, "template": template()},
    },
    "job": {
        "apiVersion": "batch/v1",
        "kind": "Job",
        **_SIDE,
        "spec": {"template": template(restartPolicy="Never")},
    },
    "indexed-job": {
        "apiVersion": "batch/v1",
        "kind": "Job",
        **_SIDE,
        "spec": {
            "completionMode": "Indexed",
            "completions": 3,
            "parallelism": 3,
            "template": template(restartPolicy="Never"),
        },
    },
    "daemon-set": workload("DaemonSet", "w", template(nodeSelector={"none": "none"})),
}


@pytest.fixture
def room(new_namespace: NewNamespace) -> Room:
    """A namespace in which the policies apply."""
    return new_namespace({"test": "foreseen"})


def foreseen(room: Room, manifest: Json, folder: Path) -> list[Replicas]:
    """What is decided offline, with the namespace as kubectl prints it."""
    (folder / "w.json").write_text(json.dumps(manifest))
    (folder / "p.yaml").write_text(POLICIES)
    (folder / "ns.yaml").write_text(room.kubectl("get", "ns", room.name, "-o", "yaml"))
    offline = read_offline([folder / "w.json"], [folder / "p.yaml"], room.name, folder / "ns.yaml")
    return decisions(offline)


def of(replicas: list[Replicas], seen: Json) -> tuple[Replicas, Json]:
    """Those of which the pod is one, and its own metadata as it was foreseen, unplaced."""
    labels = seen["metadata"]["labels"].items()
    made = [(each, each.template.pod(at)["metadata"]) for each in replicas for at in each.indexes]
    return next(one for one in made if one[1]["labels"].items() <= labels)


@pytest.mark.parametrize("manifest", WORKLOADS.values(), ids=WORKLOADS.keys())
def test_pods_come_out_as_foreseen(room: Room, manifest: Json, tmp_path: Path) -> None:
    """Same stamp, labels and placement, but for what the API server adds; on a foreseen node."""
    replicas = foreseen(room, manifest, tmp_path)
    expected = sum(len(each.indexes) for each in replicas if each.template.count is not None)
    (tmp_path / "nodes.yaml").write_text(room.kubectl("get", "nodes", "-o", "yaml"))
    nodes = read_nodes(tmp_path / "nodes.yaml")
    room.create(manifest)
    # Of a DaemonSet nobody foresees how many there will be: that it is created is all.
    for seen in room.wait_for_pods(expected) if expected else ():
        found, own = of(replicas, seen)
        wanted, real = found.decision.placement, pods.parse_pod(seen)
        assert wanted is not None
        assert real.annotations[names.PLACEMENT] == wanted.annotations[names.PLACEMENT]
        assert {**wanted.labels, **own["labels"]}.items() <= real.labels.items()
        assert {**wanted.annotations, **own.get("annotations", {})}.items() <= (
            real.annotations.items()
        )
        for field in ("node_selector", "required", "lists", "topology_spread"):
            assert getattr(real, field) == getattr(wanted, field)
        added = [each for each in real.tolerations if each not in wanted.tolerations]
        assert all("node.kubernetes.io/" in each["key"] for each in added)
        assert len(added) + len(wanted.tolerations) == len(real.tolerations)
        assert seen["spec"]["nodeName"] in survey(wanted, nodes).admitted


def test_pods_that_the_cluster_has_are_left_as_they_are(room: Room, tmp_path: Path) -> None:
    """`kubectl get pods -o yaml` of pods that were placed: nothing would change."""
    room.create(WORKLOADS["indexed-job"])
    room.wait_for_pods(3)
    listed = json.loads(room.kubectl("get", "pods", "-o", "json"))
    found = foreseen(room, listed, tmp_path)
    assert [(each.decision.result, list(each.decision.patch)) for each in found] == [
        ("unchanged", [])
    ] * 3


def test_a_mutated_workload_can_be_created(room: Room, tmp_path: Path) -> None:
    """What -o yaml prints is accepted, and its pods are unchanged by the webhook."""
    manifest = workload(
        "Deployment", "w", {"metadata": {"labels": {names.RUN: "r", "app": "app"}}, "spec": spec()}
    )
    (found,) = foreseen(room, manifest, tmp_path)
    room.create({**manifest, "spec": {**manifest["spec"], "template": found.mutated()}})
    (seen,) = room.wait_for_pods(1)
    assert (
        seen["metadata"]["annotations"][names.PLACEMENT]
        == (found.mutated()["metadata"]["annotations"][names.PLACEMENT])
    )
