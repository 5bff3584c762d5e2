"""The API server and the scheduler do with the pod of a scenario what every face says of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.paths import home
from tests.cluster.spaces import LOOK, NewNamespace, Running, Space, stamp
from tests.eventually import eventually
from tests.objects import an_object, controlled_by
from tests.scenarios import Json, Scenario, each_scenario
from webhook.errors import SandboxError
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.webhook_fixtures"]

POLICIES = ""
OPTIONS = ("--nodes",)
# A label of each node, by which a copy of the pod chooses it.
NODE = "example.com/node-of-a-scenario"
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "message": "",
    **{f"last{what}Time": "2026-01-01T00:00:00Z" for what in ("Heartbeat", "Transition")},
}


class Played:
    """A scenario in a namespace of its own, with its nodes and objects."""

    def __init__(self, scenario: Scenario, space: Space) -> None:
        self.scenario = scenario
        self.space = space
        self.made: list[str] = []

    def build(self) -> None:
        """Create what the scenario has, but for its pod."""
        for node in self.scenario.nodes or ():
            name = node["metadata"]["name"]
            labels = {**node["metadata"].get("labels", {}), NODE: name}
            allocatable = {"cpu": "64", "memory": "256Gi", **node["status"]["allocatable"]}
            status = {"allocatable": allocatable, "capacity": allocatable, "conditions": [READY]}
            metadata = {"name": name, "labels": labels}
            self._create({"apiVersion": "v1", "kind": "Node", "metadata": metadata,
                          "spec": node.get("spec", {}), "status": status})  # fmt: skip
        for each in self.scenario.objects:
            if "namespace" in each["metadata"]:
                each["metadata"]["namespace"] = self.space.name
            self._create(each)

    def _create(self, manifest: Json) -> None:
        collection = home(manifest, self.space.name)
        self.space.plane.api.create(collection, manifest)
        self.made.append(f"{collection}/{manifest['metadata']['name']}")

    def remove(self) -> None:
        for each in self.made:
            self.space.plane.api.call("DELETE", each)

    def pod(self, name: str, node: str = "") -> Json:
        """The pod, or a copy that chooses a node."""
        given = self.scenario.pod
        spec = dict(given["spec"])
        if node:
            spec["nodeSelector"] = {**spec.get("nodeSelector", {}), NODE: node}
        metadata = {**given["metadata"], "name": name, "namespace": self.space.name}
        if self.scenario.is_owned:
            (owner,) = (each for each in self.scenario.objects if "template" in each["spec"])
            where = f"{home(owner, self.space.name)}/{owner['metadata']['name']}"
            live = self.space.plane.api.get(where)
            metadata["ownerReferences"] = controlled_by(live)
        return an_object("v1", "Pod", metadata, spec)

    def refusal(self) -> str:
        """Why the pod is refused; empty if it is not."""
        try:
            self.space.create(self.pod("p"), dry_run=True)
        except SandboxError as error:
            return str(error)
        return ""

    def warned_of(self, names: Sequence[str], *options: str) -> set[str]:
        """Create a copy for each node; of which the author is warned that no node admits it."""
        items = [self.pod(name, name) for name in names]
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        done = self.space.kubectl.run("create", "-f", "-", *options, stdin=text)
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stderr.splitlines() if "0 of " in line]
        return {name for name in names if any(f"pod {name}: " in line for line in lines)}

    def is_placed(self) -> bool:
        """Whether the pod is taken, and gets the scenario's policies."""
        if self.refusal():
            return False
        created = self.space.create(self.pod("p"), dry_run=True)
        applied = stamp(created).get("policies", ()) if "annotations" in created["metadata"] else ()
        return self.scenario.applies is None or list(applied) == self.scenario.applies

    def is_bound(self, name: str) -> bool | None:
        """Whether the scheduler has bound the pod; None if it has not decided."""
        found = self.space.get("pods", name)
        if "nodeName" in found["spec"]:
            return True
        conditions = found.get("status", {}).get("conditions", ())
        refused = any((c["type"], c["status"]) == ("PodScheduled", "False") for c in conditions)
        return False if refused else None

    def call(self, *words: str) -> Any:
        """What a command says to programs of the live objects."""
        policies = ("--policies", f"{self.scenario.folder}/policies.yaml")
        done = self.space.ask(*words, "-o", "json", *policies)
        assert done.exit_code in (0, 1), done.output
        return json.loads(done.stdout)


@pytest.fixture
def played(
    control_plane: ControlPlane,
    running: Running,
    new_namespace: NewNamespace,
    path: Path,
    tmp_path: Path,
) -> Iterator[Played]:
    """The scenario of the file, with names of its own."""
    assert control_plane
    scenario = Scenario(path, tmp_path, f"s{uuid.uuid4().hex[:6]}")
    running.serve(scenario.policies)
    space = new_namespace({})
    found = Played(scenario, replace(space, name=scenario.namespace or space.name))
    try:
        found.build()
        yield found
    finally:
        found.remove()


@each_scenario
def test_the_api_server_and_the_scheduler_agree(played: Played) -> None:
    """A pod that is refused is not created; any other has the policies, and gets such nodes.

    The API server hears of nodes and classes with some delay.
    """
    scenario = played.scenario
    if scenario.refused:
        wanted = scenario.rejected or scenario.said_by_the_api_server
        said: list[str] = []

        def is_refused() -> bool:
            said[:] = [played.refusal()]
            return bool(said[0]) and all(text in said[0] for text in wanted)

        eventually("the pod is refused", is_refused, explain=lambda: said, period=LOOK)
        return
    eventually("policies apply", played.is_placed, explain=played.refusal, period=LOOK)
    if "nodeName" in scenario.pod["spec"]:
        return
    names_of = [node["metadata"]["name"] for node in scenario.nodes or ()]
    if names_of and not scenario.on_demand and not scenario.namespace:
        # Of a pod to which no policy applies nothing is said.
        lost = set() if scenario.applies == [] else set(names_of) - set(scenario.admitted or ())
        eventually(
            f"the authors of {lost} are warned",
            lambda: played.warned_of(names_of, "--dry-run=server") == lost,
            explain=lambda: played.warned_of(names_of, "--dry-run=server"),
        )
    for name in names_of:
        played.space.create(played.pod(name, name))
        played.made.append(played.space.path("pods", name))
    bound = {name: name in (scenario.admitted or ()) for name in names_of}
    eventually(
        f"pods are bound: {bound}",
        lambda: {name: played.is_bound(name) for name in names_of} == bound,
        explain=lambda: {name: played.is_bound(name) for name in names_of},
        period=LOOK,
    )
    for name in names_of:
        (found,) = played.call("explain", f"pod/{name}", "--nodes", "cluster")["objects"]
        admitted = found["today"]["nodes"]["after"] or found["today"]["nodes"]["before"]
        assert (name in admitted["admitted"]) == bound[name], found
    applying = {
        each["name"]: each["podsMatching"] for each in played.call("policy", "list")["policies"]
    }
    if scenario.applies is not None:
        counts = dict.fromkeys(scenario.applies, len(names_of))
        assert {name: applying[name] for name in scenario.applies} == counts
    without = {each["name"] for each in played.call("pods", "--no-node")["pods"]}
    if not scenario.on_demand:
        assert without == {name for name in names_of if not bound[name]}
