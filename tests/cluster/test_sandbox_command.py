"""`fairlead sandbox`, as a person types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.manifests import pod
from tests.cluster.scenes import run_manifest
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.processes import alive

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True)
class Command:
    """Runs the command in a process of its own, with a cache of the test's own."""

    environ: Mapping[str, str]

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Exit code, stdout and stderr."""
        program = "from webhook.cli import main; main()"
        return subprocess.run(
            [sys.executable, "-c", program, "sandbox", *arguments],
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
        )

    def status(self) -> dict[str, Any]:
        """What `status -o json` prints."""
        document: dict[str, Any] = json.loads(self("status", "-o", "json").stdout)
        return document


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """The cache, in which sandboxes have their folders."""
    return tmp_path / "cache"


@pytest.fixture
def sandbox(cache: Path, tmp_path: Path, binaries: Mapping[str, Path]) -> Iterator[Command]:
    """The command; what it has started is stopped at the end, even if the test fails."""
    assets = tmp_path / "assets"
    assets.mkdir()
    for name, path in binaries.items():
        (assets / name).symlink_to(path)
    environ = {**os.environ, "FAIRLEAD_CACHE": str(cache), "KUBEBUILDER_ASSETS": str(assets)}
    command = Command(environ)
    yield command
    command("down")


def test_up_status_and_down(sandbox: Command, cache: Path, kubectl_path: Path) -> None:
    """A sandbox outlives its command, can be used, is left alone by a second up, and goes away."""
    up = sandbox("up")
    directory = cache / "sandboxes" / "default"
    kubeconfig = directory / "kubeconfig"
    # Nothing else is on stdout, for the shell evaluates it.
    assert (up.returncode, up.stdout) == (0, f"export KUBECONFIG={kubeconfig}\n"), up.stderr
    assert "starting the control plane" in up.stderr

    shown = sandbox("status")
    assert shown.returncode == 0
    assert "sandbox default: running" in shown.stdout
    status = sandbox.status()
    versions = {each["name"]: each["version"] for each in status["components"]}
    assert versions["kube-apiserver"].startswith("v1.")
    assert set(versions) == {
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
        "fairlead-controller",
    }
    assert len(status["nodes"]) == 12
    assert all(node["ready"] for node in status["nodes"])

    assert sandbox("kubeconfig").stdout.strip() == str(kubeconfig)
    kubectl = Kubectl(kubectl_path, kubeconfig)
    assert len(kubectl("get", "nodes", "-o", "name").splitlines()) == 12
    kubectl.create(run_manifest("single"))
    kubectl("wait", "--for=jsonpath={.status.phase}=Running", "run/single", "--timeout=180s")

    again = sandbox("up")
    assert (again.returncode, again.stdout) == (0, up.stdout)
    assert sandbox.status()["components"] == status["components"]

    down = sandbox("down")
    assert (down.returncode, down.stdout) == (0, "")
    assert not any(alive(each["pid"], directory) for each in status["components"])
    assert not (cache / "sandboxes").exists()
    gone = sandbox("status")
    assert (gone.returncode, gone.stdout) == (1, "sandbox default: absent\n")
    assert sandbox("kubeconfig").returncode == 1
    assert sandbox("down").returncode == 0


def test_a_broken_sandbox_is_told_and_replaced(sandbox: Command, cache: Path) -> None:
    """A component that died is seen by status, and up starts anew from nothing."""
    assert sandbox("up").returncode == 0
    before = {each["name"]: each["pid"] for each in sandbox.status()["components"]}
    directory = cache / "sandboxes" / "default"
    os.kill(before["kube-scheduler"], signal.SIGKILL)
    while alive(before["kube-scheduler"], directory):
        time.sleep(0.02)

    shown = sandbox("status")
    assert shown.returncode == 1
    assert "sandbox default: broken" in shown.stdout

    up = sandbox("up")
    assert up.returncode == 0
    assert "clearing away what a broken sandbox default has left" in up.stderr
    after = {each["name"]: each["pid"] for each in sandbox.status()["components"]}
    assert set(after) == set(before)
    assert not set(after.values()) & set(before.values())


def test_a_sandbox_that_cannot_start_leaves_nothing_behind(
    sandbox: Command, cache: Path, tmp_path: Path
) -> None:
    """The reason is told, and neither a process nor a file remains."""
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text("pools: [{name: a, count: 1, labels: {team: not a label value}}]")
    up = sandbox("up", "--nodes", str(nodes))
    assert (up.returncode, up.stdout) == (1, "")
    assert "not a label value" in up.stderr
    assert not (cache / "sandboxes").exists()


def test_two_sandboxes_stand_side_by_side(sandbox: Command, cache: Path, tmp_path: Path) -> None:
    """Each name has its own ports, files and processes."""
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text("pools: []")
    try:
        first = sandbox("up", "--name", "one", "--nodes", str(nodes), "-o", "json")
        second = sandbox("up", "--name", "two", "--nodes", str(nodes), "-o", "json")
        one, two = json.loads(first.stdout), json.loads(second.stdout)
        assert one["url"] != two["url"]
        assert sandbox("down", "--name", "one").returncode == 0
        assert sandbox("status", "--name", "two").returncode == 0
    finally:
        sandbox("down", "--name", "one")
        sandbox("down", "--name", "two")
    assert not (cache / "sandboxes").exists()


POLICIES = """\
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: to-a-pool}
spec:
  overrides:
    nodeSelector: {cloud.google.com/gke-nodepool: on-demand}
"""


def test_with_policies_pods_of_runs_are_placed(
    sandbox: Command, cache: Path, tmp_path: Path, kubectl_path: Path
) -> None:
    """up --policies runs the webhook beside the control plane, registered and in effect.

    It knows the nodes, and warns of a pod that none of them admits.
    """
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "policy.yaml").write_text(POLICIES)
    up = sandbox("up", "--policies", str(policies))
    assert up.returncode == 0, up.stderr
    components = {each["name"]: each["running"] for each in sandbox.status()["components"]}
    assert components["fairlead"]

    kubectl = Kubectl(kubectl_path, cache / "sandboxes" / "default" / "kubeconfig", "default")
    kubectl("run", "placed", "--image=example.invalid/none", "--labels=fairlead.dev/run=one")
    kubectl("run", "other", "--image=example.invalid/none")
    placed, other = (kubectl.json("get", "pod", name) for name in ("placed", "other"))
    assert placed["spec"]["nodeSelector"] == {"cloud.google.com/gke-nodepool": "on-demand"}
    assert "nodeSelector" not in other["spec"]
    lost = json.dumps(pod("lost", labels={"fairlead.dev/run": "one"}, nodeSelector={"pool": "a"}))

    def warning() -> str:
        done = kubectl.run("create", "--dry-run=server", "-f", "-", stdin=lost)
        assert done.returncode == 0, done.stderr
        return done.stderr

    while "pool=a matches none" not in warning():
        pass

    again = sandbox("up", "--policies", str(policies / "policy.yaml"))
    assert again.returncode == 1
    assert f"runs already, with {policies}" in again.stderr

    assert sandbox("down").returncode == 0
    assert not (cache / "sandboxes").exists()


def test_policies_of_the_sandbox_s_own_are_judged_when_they_are_written(
    sandbox: Command, cache: Path, tmp_path: Path, kubectl_path: Path
) -> None:
    """up --policies-from-cluster begins with those of the folder, whose status is written."""
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "policy.yaml").write_text(POLICIES)
    up = sandbox("up", "--policies-from-cluster", "--policies", str(policies))
    assert up.returncode == 0, up.stderr
    assert sandbox.status()["policies"] == "the cluster"
    kubectl = Kubectl(kubectl_path, cache / "sandboxes" / "default" / "kubeconfig", "default")
    kubectl("wait", "--for=condition=Accepted", "placementpolicy/to-a-pool", "--timeout=180s")
    kubectl("run", "placed", "--image=example.invalid/none", "--labels=fairlead.dev/run=one")
    placed = kubectl.json("get", "pod", "placed")
    assert placed["spec"]["nodeSelector"] == {"cloud.google.com/gke-nodepool": "on-demand"}
    wish = "{capacity: [{class: none, mode: Constrain}]}"
    wrong = POLICIES.partition("spec:")[0] + f"spec: {{overrides: {wish}}}\n"
    refused = kubectl.run("apply", "-f", "-", stdin=wrong)
    assert refused.returncode == 1
    assert "there is no capacity class 'none'" in refused.stderr


def test_invalid_policies_are_told_before_anything_is_started(
    sandbox: Command, cache: Path, tmp_path: Path
) -> None:
    """Every finding is printed as `fairlead check` would, and no sandbox is there."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICIES.replace("spec:", "spec:\n  priority: high"))
    up = sandbox("up", "--policies", str(path))
    assert (up.returncode, up.stdout) == (1, "")
    assert f"{path}:5:" in up.stderr
    assert "spec.priority" in up.stderr
    assert not (cache / "sandboxes").exists()
