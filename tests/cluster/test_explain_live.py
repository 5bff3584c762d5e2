"""`fairlead explain` and `mutate` of live objects, beside the real API server and webhook."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.cluster.manifests import (
    SPOT,
    SPOT_CLASS,
    SPOT_TAINT,
    pod,
    policy_text,
    template,
    within,
)
from tests.cluster.spaces import NewNamespace, Space
from tests.wording import mentions
from webhook import names
from webhook.cli import fairlead
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.webhook_fixtures", "tests.cluster.run_fixtures"]

SELECTOR = "match: {namespaceSelector: {matchLabels: {test: live}}"


def policy(name: str, match: str, spec: str) -> str:
    """A policy for some pods in the namespaces of these tests."""
    return policy_text(f"live-{name}", f"{SELECTOR}{match}}}", spec)


SPOT_POLICY = policy(
    "spot", ", roles: [worker]", "overrides: {capacity: [{class: spot, mode: Constrain}]}"
)
POLICIES = (
    SPOT_CLASS
    + SPOT_POLICY
    + policy("pool", "", "defaults: {nodeSelector: {pool: a}}")
    + policy("queue", "", "priority: 5\n  overrides: {nodeSelector: {queue: fast}}")
    + policy("queue-too", "", "overrides: {nodeSelector: {queue: slow}}")
)
# What an admin has made of them since: another pool, and no spot for workers.
LATER = (
    SPOT_CLASS
    + SPOT_POLICY.replace("[worker]", "[ps]")
    + policy("pool", "", "defaults: {nodeSelector: {pool: b}}")
    + policy("queue", "", "priority: 5\n  overrides: {nodeSelector: {queue: fast}}")
)
WORKER = {names.RUN: "r", names.ROLE: "worker"}


@pytest.fixture
def space(run_api: ControlPlane, new_namespace: NewNamespace) -> Space:
    """A namespace in which the policies apply."""
    assert run_api
    return new_namespace({"test": "live"})


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """The policies as they are since."""
    file = tmp_path / "later.yaml"
    file.write_text(LATER)
    return file


def call(space: Space, *arguments: str | Path) -> Result:
    """Call the command for the test's namespace."""
    where = ("--kubeconfig", space.plane.kubeconfig, "-n", space.name)
    return CliRunner().invoke(fairlead, [*map(str, (*arguments, *where))])


def told(space: Space, *arguments: str | Path) -> Any:
    """What explain says to programs of the one object."""
    done = call(space, "explain", *arguments, "-o", "json")
    assert done.exit_code in (0, 1), done.output
    (found,) = json.loads(done.stdout)["objects"]
    return found


def fields(found: Any) -> dict[str, tuple[Any, Any]]:
    """What differs: what is there, and what would be."""
    return {each["field"]: (each["has"], each["would"]) for each in found["differences"]}


@pytest.mark.usefixtures("running")
def test_a_live_pod_is_held_against_todays_policies(
    space: Space, policy_folder: Path, later: Path
) -> None:
    """As its author wrote it: the same set changes nothing, another one changes what it changes."""
    space.create(pod("solo", labels=WORKER))
    same = told(space, "pod", "solo", "--policies", policy_folder)
    assert same["same"]
    assert (same["differences"], same["unsure"]) == ([], [])
    assert set(same["stamp"]["policies"]) == {
        "live-pool",
        "live-queue",
        "live-queue-too",
        "live-spot",
    }
    found = told(space, "pod/solo", "--policies", later)
    assert not found["same"]
    required = [{"matchExpressions": [within(SPOT, "true")]}]
    assert fields(found) == {
        "nodeSelector[pool]": ("a", "b"),
        f"tolerations[{SPOT}]": ([SPOT_TAINT], None),
        "affinity.nodeAffinity.required": (required, None),
    }
    by = {each["field"]: (each["then"], each["now"]) for each in found["differences"]}
    assert by == {
        "nodeSelector[pool]": (["live-pool"], ["live-pool"]),
        f"tolerations[{SPOT}]": (["live-spot"], []),
        "affinity.nodeAffinity.required": (["live-spot"], []),
    }
    why = {each["field"]: each["why"] for each in found["differences"]}
    assert why["nodeSelector[pool]"] == []
    for field in (f"tolerations[{SPOT}]", "affinity.nodeAffinity.required"):
        (reason,) = why[field]
        mentions(reason, "live-spot does not match", "match.roles: role is worker", "wants ps")
    text = call(space, "explain", "pod", "solo", "--policies", later, "--nodes", "cluster")
    assert text.exit_code == 1
    assert "3 fields differ" in text.stdout
    assert "Today: nodes: 0 of" in text.stdout


@pytest.mark.usefixtures("running")
def test_the_plan_decides_which_pods_are_of_a_run(space: Space, later: Path) -> None:
    """What new ones would get; there are none without a controller."""
    space.create(
        {
            "apiVersion": "fairlead.dev/v1alpha1",
            "kind": "Run",
            "metadata": {"name": "mnist"},
            "spec": {
                "kind": "experiment",
                "framework": "tensorflow",
                "template": {"spec": template()["spec"]},
                "replicas": {"worker": {"count": 2}, "ps": {"count": 1}},
            },
        }
    )
    found = told(space, "run", "mnist", "--policies", later)
    applied = {
        each["pods"]: [one["name"] for one in each["policies"] if one["answer"] == "applies"]
        for each in found["today"]
    }
    assert applied["ps"] == ["live-queue", "live-pool", "live-spot"]
    assert [names for part, names in applied.items() if part.startswith("worker")] == [
        ["live-queue", "live-pool"]
    ]
    assert found["pods"] == []
    printed = call(space, "mutate", "run", "mnist", "--policies", later, "-o", "yaml")
    assert printed.exit_code == 2
    assert "fairlead run preview" in printed.stderr


def test_kubectl_finds_the_command_as_its_plugin(
    space: Space, kubectl_path: Path, later: Path
) -> None:
    """By its name on the PATH; help says how it was called."""
    space.create(pod("solo", labels={}))
    folders = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environ = {**os.environ, "PATH": os.pathsep.join(folders)}
    environ["KUBECONFIG"] = str(space.plane.kubeconfig)

    def kubectl(*words: str) -> str:
        command = [str(kubectl_path), "fairlead", *words]
        return subprocess.run(
            command, env=environ, check=True, capture_output=True, text=True
        ).stdout

    assert kubectl("explain", "--help").startswith("Usage: kubectl fairlead explain ")
    told = kubectl("explain", "pod", "solo", "-n", space.name, "--policies", str(later))
    assert "not part of a run" in told
