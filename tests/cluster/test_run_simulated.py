"""A scenario that is played in virtual time happens on a real control plane, event by event.

Nodes of a class are sold out; the run waits, gives the class up, and runs elsewhere. Its nodes
come; the run loses another node, and what restarts returns to the class.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.live_runs import CONTAINER, LiveRun, run_manifest
from tests.cluster.spaces import Json, NewNamespace, Space
from tests.eventually import eventually
from tests.simulation.scenes import played, scenario
from webhook import names
from webhook.run.model import Run
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.simulated_nodes import Pool, node_manifests

pytest_plugins = ["tests.cluster.run_fixtures", "tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running", "nodes")

HERE = {"example.com/simulated": "yes"}
SPOT, SOLID = {**HERE, "example.com/class": "spot"}, {**HERE, "example.com/class": "solid"}
POLICIES = """
apiVersion: fairlead.dev/v1alpha1
kind: CapacityClass
metadata: {name: simulated-spot}
spec: {nodes: [{labels: {example.com/class: spot}}]}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: simulated}
spec:
  match: {namespaceSelector: {matchLabels: {test: simulated}}}
  overrides:
    nodeSelector: {example.com/simulated: "yes"}
    capacity:
    - class: simulated-spot
      mode: Constrain
      fallback: {afterPending: 4s, returnAfter: 6s}
"""
SPEC: Json = {
    "framework": "jax",
    "restartScope": "Run",
    "replicas": {"worker": {"count": 2}},
    "template": {"spec": {"containers": [CONTAINER]}},
}


@pytest.fixture(scope="module")
def nodes(control_plane: ControlPlane) -> Iterator[None]:
    """Two of each pool."""
    pools = [
        Pool(name="sim-spot", count=2, labels=SPOT),
        Pool(name="sim-solid", count=3, labels=SOLID),
    ]
    made = node_manifests(pools)
    for each in made:
        control_plane.api.create("/api/v1/nodes", each)
    yield
    for each in made:
        control_plane.api.call("DELETE", f"/api/v1/nodes/{each['metadata']['name']}")


@pytest.fixture
def space(run_space: Space, new_namespace: NewNamespace) -> Space:  # noqa: ARG001
    """A namespace in which the policy holds, and a controller."""
    return new_namespace({"test": "simulated"})


def test_what_is_simulated_happens(space: Space, tmp_path: Path) -> None:
    """The Run's Events in their order, and the pools on which the pods of each start run."""
    spot = {"name": "sim-spot", "labels": SPOT, "nodes": 2, "boot": "0s"}
    solid = {"name": "sim-solid", "labels": SOLID, "nodes": 3, "boot": "0s"}
    text = scenario(
        [
            {**spot, "events": [{"at": "0s", "soldOut": "15s"}]},
            {**solid, "events": [{"at": "30s", "lose": 1}]},
        ],
        program={"work": "1m"},
    )
    run = Run.model_validate({**run_manifest("train", **SPEC), "metadata": {"name": "train"}})
    policies = POLICIES.replace("{matchLabels: {test: simulated}}", "{}")
    (simulated,) = played({"a.yaml": policies.encode()}, text, run=run)
    foreseen = [each.what.partition(":")[0] for each in simulated.happenings if ": " in each.what]

    with WatchedEvents(space, tmp_path / "events") as watched:
        space.kubectl("cordon", "sim-spot-0", "sim-spot-1")
        space.create(run_manifest("train", **SPEC))
        live = LiveRun(space, "train")
        live.until_running("worker-0", "worker-1")
        assert pools_of(live) == {"sim-solid"}
        space.kubectl("uncordon", "sim-spot-0", "sim-spot-1")
        (history,) = live.role("worker")["history"]
        time.sleep(7)
        lost = live.live()["worker-0"]
        gone = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "TerminationByKubelet",
            "lastTransitionTime": history["asOf"],
        }
        live.patch_status(
            "worker-0", {"phase": "Failed", "reason": "Terminated", "conditions": [gone]}
        )
        live.until_replaced("worker-0", lost)
        live.until_running("worker-0", "worker-1")
        assert pools_of(live) == {"sim-spot"}
        live.until_phase("Running")
        for name in ("worker-0", "worker-1"):
            live.ends(name, 0)
        live.until_phase("Succeeded")
        told = watched.until("Succeeded")
    # A simulated replica runs as soon as it has a node.
    assert [each for each in told if each != "Starting"] == foreseen
    runs_in = {
        each.what.rpartition(" ")[2] for each in simulated.happenings if "runs in" in each.what
    }
    assert runs_in == {"sim-spot", "sim-solid"}


def pools_of(live: LiveRun) -> set[str]:
    """The pools on whose nodes the pods are."""
    found = [each["spec"].get("nodeName", "") for each in live.live().values()]
    return {each.rpartition("-")[0] for each in found}


class WatchedEvents:
    """The reasons of the Events of Runs in a space, in the order in which they come."""

    def __init__(self, space: Space, file: Path) -> None:
        self._file = file
        kubectl = space.kubectl
        columns = "custom-columns=KIND:.involvedObject.kind,REASON:.reason"
        self._command = [
            *(str(kubectl.path), f"--kubeconfig={kubectl.kubeconfig}", "-n", space.name),
            *("get", "events", "--watch", "--no-headers", "-o", columns),
        ]

    def __enter__(self) -> WatchedEvents:
        with self._file.open("w") as file:
            self._process = subprocess.Popen(self._command, stdout=file)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()

    def until(self, reason: str) -> list[str]:
        """Wait until an Event has this reason; return all reasons."""

        def reasons() -> list[str]:
            found = [line.split() for line in self._file.read_text().splitlines()]
            told = [each[1] for each in found if each[0] == names.RUN_KIND]
            return told if reason in told else []

        return eventually(f"the Event {reason}", reasons)
