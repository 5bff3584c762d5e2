"""Distributed TensorFlow, written as a Run and as a Polyaxonfile: 11 pods, each where it belongs.

One master, seven workers, three parameter servers, of which worker 2 and server 0 differ.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.live_runs import LiveRun
from tests.cluster.manifests import SPOT, SPOT_CLASS, policy_text
from tests.cluster.spaces import Json, NewNamespace, Space, stamp
from tests.fast_yaml import load_yaml
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.simulated_nodes import Pool, Taint, node_manifests

pytest_plugins = ["tests.cluster.run_fixtures", "tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running", "more_nodes")

FILES = Path(__file__).parent / "files"
POLICIES = (
    SPOT_CLASS
    + policy_text(
        "workers-on-spot",
        "match: {roles: [worker], namespaceSelector: {matchLabels: {test: mnist}}}",
        "overrides: {capacity: [{class: spot, mode: Constrain}]}",
    )
    + policy_text(
        "leaders-on-demand",
        "match: {roles: [master, ps], namespaceSelector: {matchLabels: {test: mnist}}}",
        "overrides: {capacity: [{class: spot, mode: Prevent}]}",
    )
    + policy_text(
        "gpus",
        "match: {resources: [nvidia.com/gpu], namespaceSelector: {matchLabels: {test: mnist}}}",
        "defaults: {tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]}",
    )
)
GPU = "nvidia.com/gpu"
BIG = {"cpu": "64", "memory": "128Gi", "pods": "100"}
REPLICAS = ("master-0", *(f"worker-{i}" for i in range(7)), *(f"ps-{i}" for i in range(3)))


@pytest.fixture(scope="module")
def more_nodes(control_plane: ControlPlane) -> Iterator[None]:
    """The nodes that the run's own selectors name, of both sorts."""
    spot = [Taint(key=SPOT, value="true", effect="NoSchedule")]
    pools = [
        Pool(
            name="experiments",
            count=1,
            labels={"polyaxon": "experiments"},
            taints=[Taint(key=GPU, value="present", effect="NoSchedule")],
            capacity={**BIG, GPU: "8"},
        ),
        Pool(name="servers", count=1, labels={"polyaxon": "parameter_servers"}, capacity=BIG),
        Pool(
            name="special",
            count=1,
            labels={"polyaxon": "special_node", SPOT: "true"},
            taints=[*spot, Taint(key="special", value="yes", effect="NoSchedule")],
            capacity=BIG,
        ),
    ]
    made = node_manifests(pools)
    for node in made:
        control_plane.api.create("/api/v1/nodes", node)
    yield
    for node in made:
        control_plane.api.call("DELETE", f"/api/v1/nodes/{node['metadata']['name']}")


def converted() -> Json:
    """The Run that `fairlead run convert` makes of the Polyaxonfile."""
    command = [sys.executable, "-c", "from webhook.cli import main; main()", "run", "convert"]
    polyaxonfile = FILES / "mnist-polyaxonfile.yml"
    done = subprocess.run(
        [*command, "-f", polyaxonfile, "--name", "mnist"], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    run: Json = load_yaml(done.stdout)
    return run


def written() -> Json:
    """The Run as a person writes it."""
    run: Json = load_yaml((FILES / "mnist-run.yaml").read_text())
    return run


def main(pod: Json) -> Json:
    container: Json = pod["spec"]["containers"][0]
    return container


@pytest.fixture
def mnist_space(run_space: Space, new_namespace: NewNamespace) -> Space:  # noqa: ARG001
    """A namespace in which the policies hold, and a controller."""
    return new_namespace({"test": "mnist"})


@pytest.mark.parametrize("make", [written, converted])
def test_each_replica_has_its_resources_and_its_place(mnist_space: Space, make: Any) -> None:
    """Masters and servers land on demand, workers on spot: the real scheduler puts them there."""
    mnist_space.create(make())
    pods = LiveRun(mnist_space, "mnist").until_running(*REPLICAS)
    nodes = mnist_space.items("nodes")
    spot = {node["metadata"]["name"] for node in nodes if SPOT in node["metadata"]["labels"]}
    for name, pod in pods.items():
        assert (pod["spec"]["nodeName"] in spot) == name.startswith("worker"), name
        who = "workers-on-spot" if name.startswith("worker") else "leaders-on-demand"
        assert who in stamp(pod)["policies"]
    assert pods["master-0"]["spec"]["nodeName"] == "experiments-0"
    assert pods["worker-2"]["spec"]["nodeName"] == "special-0"
    assert {pods[f"ps-{i}"]["spec"]["nodeName"] for i in range(3)} == {"servers-0"}

    assert main(pods["master-0"])["resources"]["limits"][GPU] == "1"
    assert main(pods["worker-1"])["resources"]["requests"]["cpu"] == "500m"
    assert main(pods["worker-2"])["resources"]["requests"] == {"cpu": "1", "memory": "256Mi"}
    assert GPU not in main(pods["worker-2"])["resources"]["limits"]
    assert main(pods["ps-0"])["resources"]["limits"]["memory"] == "512Mi"
    assert main(pods["ps-1"])["resources"]["limits"]["memory"] == "256Mi"
