"""The policies of the guide "Keep a run in one rack" beside the real API server and scheduler."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.agreement.scheduling import create_nodes, is_bound, landings
from tests.control_planes import StartControlPlane
from tests.eventually import eventually
from tests.test_guides import blocks
from webhook.errors import InvalidDocuments
from webhook.names import API_VERSION, HOSTNAME_LABEL
from webhook.policy.load import load
from webhook.questions.decisions import decisions
from webhook.questions.offline import offline_of, unread_world
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.workloads.object import Object

Json = dict[str, Any]
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "one-rack.md"
REQUIRED, PREFERRED = (
    block.text for block in blocks(PAGE) if block.language == "yaml" and "Policy" in block.text
)
RACK = "example.com/rack"
WORLD = "world"
# In each of two racks there are two nodes of two CPUs, and a pod takes one.
RACKS = {f"{rack}-{at}": rack for rack in ("left", "right") for at in range(2)}


@pytest.fixture
def plane(start_control_plane: StartControlPlane) -> ControlPlane:
    """A control plane whose nodes are the test's own, and whose pods nobody runs."""
    components = ("etcd", "kube-apiserver", "kube-scheduler")
    return start_control_plane(Settings(components=components))


def pods_of(policy: str, name: str, count: int, nodes: str) -> list[Json]:
    """The pods of a Run as this policy places them, on the nodes of a group of their own."""
    worker = {"count": count, "resources": {"requests": {"cpu": "1"}}}
    spec = {
        "framework": "pytorch",
        "environment": {"nodeSelector": {WORLD: nodes}},
        "template": {"spec": {"containers": [{"name": "main", "image": "i"}]}},
        "replicas": {"worker": worker},
    }
    metadata = {"name": name, "namespace": "racks"}
    run = {"apiVersion": API_VERSION, "kind": "Run", "metadata": metadata, "spec": spec}
    world = unread_world(load({"policy.yaml": policy.encode()}).policies)
    made = []
    for group in decisions(offline_of(world, [Object("x", run)], [], "racks", None)):
        for index in group.all_indexes:
            pod = group.evaluation.as_written(group.template.pod(index))
            assert pod["spec"]["affinity"]["podAffinity"]
            kept = {key: pod["metadata"][key] for key in ("name", "labels", "annotations")}
            made.append({"metadata": {**kept, "namespace": "racks"}, "spec": pod["spec"]})
    return made


def create_racks(plane: ControlPlane, group: str) -> dict[str, str]:
    """Create the nodes of a group, and return the rack of each by its name."""
    racks = {f"{group}-{name}": rack for name, rack in RACKS.items()}
    size = {"cpu": "2", "pods": "110"}
    nodes: list[Json] = []
    for name, rack in racks.items():
        labels = {HOSTNAME_LABEL: name, RACK: f"{group}-{rack}", WORLD: group}
        status = {"allocatable": size, "capacity": size}
        nodes.append({"metadata": {"name": name, "labels": labels}, "status": status})
    create_nodes(plane, nodes)
    probe = {
        "nodeSelector": {HOSTNAME_LABEL: [*racks][-1]},
        "containers": [{"name": "a", "image": "i"}],
    }
    path = "/api/v1/namespaces/racks/pods"
    plane.api.create(path, {"metadata": {"name": f"probe-{group}"}, "spec": probe})
    eventually("the probe is bound", partial(is_bound, plane, f"{path}/probe-{group}"))
    plane.api.call("DELETE", f"{path}/probe-{group}?gracePeriodSeconds=0")
    return racks


def test_each_run_is_in_one_rack_if_its_pods_require_it(plane: ControlPlane) -> None:
    """Of two Runs, each in one; of one that a rack is too small for, the rest waits. Where it is
    only preferred, the rest goes to another rack."""
    plane.create_namespace("racks")
    racks: dict[str, str] = {}
    for group in ("two", "large", "preferred"):
        racks |= create_racks(plane, group)
    runs = {
        "first": pods_of(REQUIRED, "first", 4, "two"),
        "second": pods_of(REQUIRED, "second", 4, "two"),
        "large": pods_of(REQUIRED, "large", 6, "large"),
        "preferred": pods_of(PREFERRED, "preferred", 6, "preferred"),
    }
    # One of each at a time, as two Runs begin together.
    for pod in (pod for pods in zip(runs["first"], runs["second"], strict=True) for pod in pods):
        plane.api.create("/api/v1/namespaces/racks/pods", pod)
    for pod in (*runs["large"], *runs["preferred"]):
        plane.api.create("/api/v1/namespaces/racks/pods", pod)
    landed = landings(plane, "racks")
    in_racks = {name: {racks[node] for node in landed[name]} for name in runs}
    for name in ("first", "second", "large"):
        assert len(in_racks[name]) == 1, landed[name]
    assert len(landed["large"]) == 4
    assert (len(landed["preferred"]), len(in_racks["preferred"])) == (6, 2)


def test_a_key_in_the_selector_too_is_refused_by_both(plane: ControlPlane) -> None:
    """The page shows the words of `fairlead check`, and the API server takes no such pod."""
    twice = REQUIRED.replace("key: fairlead.dev/role", "key: fairlead.dev/run")
    assert twice != REQUIRED
    (shown,) = (block.text for block in blocks(PAGE) if block.language == "text")
    with pytest.raises(InvalidDocuments) as refused:
        load({"policy.yaml": twice.encode()})
    assert shown.strip() in str(refused.value)
    plane.create_namespace("racks")
    (pod, *_) = pods_of(REQUIRED, "first", 2, "two")
    (term,) = pod["spec"]["affinity"]["podAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    term["labelSelector"]["matchExpressions"][0]["key"] = "fairlead.dev/run"
    status, answer = plane.api.call("POST", "/api/v1/namespaces/racks/pods", pod)
    assert status == 422
    assert "matchLabelKeys" in str(answer)
