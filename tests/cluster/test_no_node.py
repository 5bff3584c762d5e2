"""Pods that no node admits: kubectl shows why, and the scheduler says the same."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.manifests import pod, template, workload
from tests.cluster.spaces import Json, Running, Space
from tests.eventually import eventually
from tests.wording import mentions
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import start_webhook, stop_webhook

POOL = "cloud.google.com/gke-nodepool"
GPU = {"key": "nvidia.com/gpu", "operator": "Exists"}
POLICIES = f"""
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {{name: burst}}
spec: {{nodes: [{{labels: {{{POOL}: burst}}}}], autoscaled: true}}
---
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {{name: gone}}
spec: {{nodes: [{{labels: {{{POOL}: gone}}}}]}}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: gpu-jobs}}
spec:
  match: {{podSelector: {{matchLabels: {{want: gpu}}}}}}
  defaults: {{nodeSelector: {{{POOL}: gpu}}}}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: on-burst}}
spec:
  match: {{podSelector: {{matchLabels: {{want: burst}}}}}}
  overrides: {{capacity: [{{class: burst, mode: Constrain}}]}}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: on-gone}}
spec:
  match: {{podSelector: {{matchLabels: {{want: gone}}}}}}
  overrides: {{capacity: [{{class: gone, mode: Constrain}}]}}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: on-demand-only}}
spec:
  match: {{podSelector: {{matchLabels: {{want: on-demand}}}}}}
  requirements: {{nodeSelector: {{{POOL}: on-demand}}}}
"""


@pytest.fixture(scope="module")
def server(
    control_plane: ControlPlane, module_space: Space, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    """A webhook with --nodes that knows the nodes."""
    folder = tmp_path_factory.mktemp("policies")
    (folder / "policies.yaml").write_text(POLICIES)
    webhook = start_webhook(
        control_plane,
        folder,
        name="fairlead-nodes",
        namespaces=[module_space.name],
        options=["--nodes"],
    )
    running = Running(webhook, folder)
    try:
        eventually("nodes are known", lambda: " known" in running.readiness()["nodes"]["reason"])
        yield running
    finally:
        stop_webhook(control_plane, webhook)


pytestmark = pytest.mark.usefixtures("server")


def container(name: str = "main", *, sidecar: bool = False, **requests: str) -> Json:
    """A container that asks for so much; `gpu` is short for the device."""
    asked = {key.replace("gpu", "nvidia.com/gpu"): text for key, text in requests.items()}
    made = {"name": name, "image": "example.invalid/none"}
    if sidecar:
        made["restartPolicy"] = "Always"
    return made | {"resources": {"requests": asked, "limits": asked}}


def warned(module_space: Space, manifest: Json, *options: str) -> str:
    """What kubectl warns of when the pod is created; empty if nothing."""
    done = module_space.kubectl.run("create", "-f", "-", *options, stdin=json.dumps(manifest))
    assert done.returncode == 0, done.stderr
    return " ".join(line for line in done.stderr.splitlines() if " nodes" in line)


def wait_for_scheduler(module_space: Space, name: str, *, bound: bool) -> None:
    """Wait until the pod is bound, or until the scheduler says that no node takes it."""

    def judged() -> bool:
        seen = module_space.get("pods", name)
        conditions = seen.get("status", {}).get("conditions", [])
        refused = [c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"]
        if "nodeName" in seen["spec"]:
            assert bound
            return True
        # For a moment other pods may be in the way of one that will be bound.
        if refused and not bound:
            assert refused[0]["reason"] == "Unschedulable"
            return True
        return False

    eventually("the scheduler has judged the pod", judged)


# Name of the pod -> its fields, and what the warning names; nothing where there is none.
CASES: dict[str, tuple[Json, tuple[str, ...]]] = {
    "a-policys-pool-with-a-taint": (
        {"labels": {names.RUN: "r", "want": "gpu"}},
        (f"{POOL}=gpu (policy gpu-jobs) matches 2", "taint nvidia.com/gpu=present is not"),
    ),
    "the-taint-is-tolerated": (
        {"labels": {names.RUN: "r", "want": "gpu"}, "tolerations": [GPU]},
        (),
    ),
    "a-class-without-nodes": (
        {"labels": {names.RUN: "r", "want": "gone"}},
        ("class gone", "(policy on-gone) matches none"),
    ),
    "a-label-that-no-node-has": ({"nodeSelector": {POOL: "typo"}}, (f"{POOL}=typo matches none",)),
    "more-devices-than-a-node-has": (
        {
            "nodeSelector": {POOL: "gpu"},
            "tolerations": [GPU],
            "containers": [container(gpu="9")],
        },
        (f"{POOL}=gpu matches 2", "nvidia.com/gpu 8 at most", "requests 9"),
    ),
    "all-devices-of-a-node": (
        {
            "nodeSelector": {POOL: "gpu"},
            "tolerations": [GPU],
            "containers": [container(gpu="4"), container("b", gpu="4")],
        },
        (),
    ),
    "containers-run-together": (
        {"nodeSelector": {POOL: "on-demand"},
         "containers": [container(cpu="20"), container("b", cpu="20")]},
        ("cpu 32 at most", "requests 40"),
    ),
    "a-sidecar-runs-beside": (
        {
            "nodeSelector": {POOL: "on-demand"},
            "containers": [container(cpu="20")],
            "initContainers": [container("side", sidecar=True, cpu="20")],
        },
        ("cpu 32 at most", "requests 40"),
    ),
    "an-init-container-runs-before": (
        {
            "nodeSelector": {POOL: "on-demand"},
            "containers": [container(cpu="20")],
            "initContainers": [container("first", cpu="20")],
        },
        (),
    ),
    "what-the-pod-itself-is-given": (
        {"nodeSelector": {POOL: "on-demand"}, "resources": {"requests": {"memory": "200Gi"}}},
        ("memory 128Gi at most", "requests 200Gi"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "fields", "facts"), [(n, *case) for n, case in CASES.items()])
def test_the_warning_is_the_schedulers_verdict(
    module_space: Space, name: str, fields: dict[str, Any], facts: tuple[str, ...]
) -> None:
    """What is warned of stays pending, and what is not is bound."""
    warning = warned(module_space, pod(name, **fields))
    mentions(warning, *facts)
    assert bool(facts) == bool(warning)
    wait_for_scheduler(module_space, name, bound=not facts)
    module_space.kubectl("delete", "pod", name, "--wait=false", "--grace-period=0")


def test_a_node_that_is_added_and_deleted_is_observed(module_space: Space) -> None:
    """Once it is ready nothing is said; cordoned, that is; gone, that no node is left."""
    late = f"late-{uuid.uuid4().hex[:6]}"
    asking = pod("late", nodeSelector={"pool": late})
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": late, "labels": {"pool": late}},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "10"}},
    }

    def wait_for(*facts: str) -> None:
        def there() -> bool:
            said = warned(module_space, asking, "--dry-run=server") or "silence"
            assert "pool=" in said or said == "silence"
            return all(fact in said for fact in facts)

        eventually(f"it says {facts}", there)

    wait_for("for the pod as created", f"pool={late} matches none")
    module_space.create(node)
    try:
        wait_for("silence")
        module_space.kubectl("cordon", late)
        wait_for(f"pool={late} matches 1", "cordoned")
    finally:
        module_space.kubectl("delete", "node", late)
    wait_for(f"pool={late} matches none")


def test_a_pod_that_names_its_node_is_judged_by_that_node(module_space: Space) -> None:
    """By a requirement; a node that is not known is as one that does not meet it."""
    strict = {names.RUN: "r", "want": "on-demand"}
    nodes = {
        each["metadata"]["labels"].get(POOL): each["metadata"]["name"]
        for each in module_space.plane.api.get("/api/v1/nodes")["items"]
    }
    kept = module_space.create(pod("kept", labels=strict, nodeName=nodes["on-demand"]))
    assert kept["spec"]["nodeName"] == nodes["on-demand"]
    for name, cure in ((nodes["gpu"], "does not meet it"), ("no-node", "remove nodeName")):
        manifest = pod("refused", labels=strict, nodeName=name)
        done = module_space.kubectl.run("create", "-f", "-", stdin=json.dumps(manifest))
        assert done.returncode == 1
        mentions(done.stderr, "policy on-demand-only", f"nodeSelector[{POOL}]", cure)


def test_a_daemon_set_s_pod_is_judged_by_the_node_it_is_for(module_space: Space) -> None:
    """It is refused, with the reason where its author looks, and does not stay pending."""
    made = template(labels={"want": "on-demand"}, tolerations=[GPU])
    module_space.create(workload("DaemonSet", "everywhere", made))

    def told() -> bool:
        described = module_space.kubectl("describe", "daemonset", "everywhere")
        return "FailedCreate" in described and "does not meet it" in described

    eventually("the reason is told of the DaemonSet", told)
    mine = module_space.items("pods", "app=app")
    assert all("on-demand" in each["spec"].get("nodeName", "on-demand") for each in mine)
    module_space.delete("daemonsets", "everywhere")
