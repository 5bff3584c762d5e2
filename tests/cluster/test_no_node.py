"""A webhook with --nodes as nodes come and go, and pods that are made for one node.

That its warnings are the scheduler's verdict is in test_scenarios.py.
"""

from __future__ import annotations

import json
import uuid

import pytest

from tests.cluster.manifests import pod, policy_text, template, workload
from tests.cluster.spaces import Json, Running, Space
from tests.eventually import eventually
from tests.objects import an_object
from tests.wording import mentions
from webhook import names

pytest_plugins = ["tests.cluster.webhook_fixtures"]

OPTIONS = ("--nodes",)
POOL = "cloud.google.com/gke-nodepool"
GPU = {"key": "nvidia.com/gpu", "operator": "Exists"}
POLICIES = policy_text(
    "on-demand-only",
    "match: {podSelector: {matchLabels: {want: on-demand}}}",
    f"requirements: {{nodeSelector: {{{POOL}: on-demand}}}}",
)


@pytest.fixture(autouse=True)
def known(running: Running) -> None:
    """The webhook knows the nodes."""
    eventually("nodes are known", lambda: " known" in running.readiness()["nodes"]["reason"])


def warned(module_space: Space, manifest: Json, *options: str) -> str:
    """What kubectl warns of when the pod is created; empty if nothing."""
    done = module_space.kubectl.run("create", "-f", "-", *options, stdin=json.dumps(manifest))
    assert done.returncode == 0, done.stderr
    return " ".join(line for line in done.stderr.splitlines() if " nodes" in line)


def test_a_node_that_is_added_and_deleted_is_observed(module_space: Space) -> None:
    """Once it is ready nothing is said; cordoned, that is; gone, that no node is left."""
    late = f"late-{uuid.uuid4().hex[:6]}"
    asking = pod("late", nodeSelector={"pool": late})
    node = an_object(
        "v1",
        "Node",
        {"name": late, "labels": {"pool": late}},
        status={"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "10"}},
    )

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
