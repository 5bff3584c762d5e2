"""`fairlead sandbox`, as a person types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.cluster.live_runs import run_manifest
from tests.cluster.manifests import pod
from tests.eventually import eventually
from tests.wording import line_with, mentions
from webhook import names
from webhook.cli import fairlead
from webhook.sandbox.fairlead import CONTROLLER_NAME
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.processes import alive

POLICIES = """\
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: to-a-pool}
spec:
  overrides:
    nodeSelector: {cloud.google.com/gke-nodepool: on-demand}
"""

# Names of sandboxes.
FILES, OBJECTS = "files", "objects"


@dataclass(frozen=True)
class Command:
    """Runs the command in a process of its own, with a cache of the test's own."""

    environ: Mapping[str, str]

    @property
    def folders(self) -> Path:
        """Where each sandbox has its folder; absent while there is none."""
        return Path(self.environ["FAIRLEAD_CACHE"]) / "sandboxes"

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

    def status(self, name: str = "default") -> dict[str, Any]:
        """What `status -o json` prints."""
        shown = self("status", "--name", name, "-o", "json").stdout
        document: dict[str, Any] = json.loads(shown)
        return document


def command(folder: Path, binaries: Mapping[str, Path]) -> Command:
    """The command with a cache of its own in the folder."""
    assets = folder / "assets"
    assets.mkdir()
    for name, path in binaries.items():
        (assets / name).symlink_to(path)
    cache = {"FAIRLEAD_CACHE": str(folder / "cache"), "KUBEBUILDER_ASSETS": str(assets)}
    return Command({**os.environ, **cache})


@pytest.fixture
def sandbox(tmp_path: Path, binaries: Mapping[str, Path]) -> Iterator[Command]:
    """The command; what it has started is stopped at the end, even if the test fails."""
    sandbox = command(tmp_path, binaries)
    yield sandbox
    sandbox("down")


@dataclass(frozen=True)
class Pair:
    """Two sandboxes with the same policies: FILES has the folder's, OBJECTS has its own."""

    sandbox: Command
    policies: Path
    kubectl: Mapping[str, Kubectl]


@pytest.fixture(scope="module")
def pair(
    tmp_path_factory: pytest.TempPathFactory, binaries: Mapping[str, Path], kubectl_path: Path
) -> Iterator[Pair]:
    """Both stand side by side, for all tests of this module that want policies."""
    folder = tmp_path_factory.mktemp("sandboxes")
    sandbox = command(folder, binaries)
    policies = folder / "policies"
    policies.mkdir()
    (policies / "policy.yaml").write_text(POLICIES)
    try:
        for name, *options in ((FILES,), (OBJECTS, "--policies-from-cluster")):
            up = sandbox("up", "--name", name, "--policies", str(policies), *options)
            assert up.returncode == 0, up.stderr
        yield Pair(
            sandbox,
            policies,
            {
                name: Kubectl(kubectl_path, sandbox.folders / name / "kubeconfig", "default")
                for name in (FILES, OBJECTS)
            },
        )
    finally:
        for name in (FILES, OBJECTS):
            sandbox("down", "--name", name)


def test_up_status_and_down(sandbox: Command, kubectl_path: Path) -> None:
    """A sandbox outlives its command, can be used, is left alone by a second up, and goes away.

    One of which a component died is seen by status, and up starts it again from nothing.
    """
    up = sandbox("up")
    directory = sandbox.folders / "default"
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
    kubectl("wait", "--for=jsonpath={.status.phase}=Running", "run/single", "--timeout=120s")
    # GPU nodes have a taint, which nothing else tolerates here.
    asks = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    container = {"name": "main", "image": "example.invalid/none", **asks}
    kubectl.create(pod("gpu", containers=[container]))
    kubectl("wait", "--for=condition=Ready", "pod/gpu", "--timeout=120s")

    again = sandbox("up")
    assert (again.returncode, again.stdout) == (0, up.stdout)
    assert sandbox.status()["components"] == status["components"]

    before = {each["name"]: each["pid"] for each in status["components"]}
    os.kill(before["kube-scheduler"], signal.SIGKILL)
    eventually("it is gone", lambda: not alive(before["kube-scheduler"], directory))
    shown = sandbox("status")
    assert shown.returncode == 1
    assert "sandbox default: broken" in shown.stdout
    up = sandbox("up")
    assert up.returncode == 0
    line_with(up.stderr, "clearing away", "broken sandbox default")
    status = sandbox.status()
    after = {each["name"]: each["pid"] for each in status["components"]}
    assert set(after) == set(before)
    assert not set(after.values()) & set(before.values())
    assert not any(alive(pid, directory) for pid in before.values())

    down = sandbox("down")
    assert (down.returncode, down.stdout) == (0, "")
    assert not any(alive(each["pid"], directory) for each in status["components"])
    assert not sandbox.folders.exists()
    gone = sandbox("status")
    assert (gone.returncode, gone.stdout) == (1, "sandbox default: absent\n")
    assert sandbox("kubeconfig").returncode == 1
    assert sandbox("down").returncode == 0


def test_a_sandbox_that_cannot_start_leaves_nothing_behind(
    sandbox: Command, tmp_path: Path
) -> None:
    """The reason is told, and neither a process nor a file remains."""
    nodes = tmp_path / "nodes.yaml"
    nodes.write_text("pools: [{name: a, count: 1, labels: {team: not a label value}}]")
    up = sandbox("up", "--nodes", str(nodes))
    assert (up.returncode, up.stdout) == (1, "export KUBECONFIG=/dev/null; false\n")
    assert "not a label value" in up.stderr
    assert not sandbox.folders.exists()


def test_with_policies_pods_of_runs_are_placed(pair: Pair) -> None:
    """up --policies runs the webhook beside the control plane, registered and in effect.

    It knows the nodes, and warns of a pod that none of them admits.
    """
    found = pair.sandbox.status(FILES)["components"]
    components = {each["name"]: each["running"] for each in found}
    assert components["fairlead"]

    kubectl = pair.kubectl[FILES]
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

    eventually("nodes are known", lambda: "pool=a matches none" in warning(), explain=warning)

    other = str(pair.policies / "policy.yaml")
    again = pair.sandbox("up", "--name", FILES, "--policies", other)
    assert again.returncode == 1
    assert f"runs already, with {pair.policies}" in again.stderr


def test_policies_of_the_sandbox_s_own_are_judged_when_they_are_written(pair: Pair) -> None:
    """up --policies-from-cluster begins with those of the folder, whose status is written."""
    assert pair.sandbox.status(OBJECTS)["policies"] == "the cluster"
    kubectl = pair.kubectl[OBJECTS]
    kubectl("wait", "--for=condition=Accepted", "placementpolicy/to-a-pool", "--timeout=120s")
    kubectl("run", "placed", "--image=example.invalid/none", "--labels=fairlead.dev/run=one")
    placed = kubectl.json("get", "pod", "placed")
    assert placed["spec"]["nodeSelector"] == {"cloud.google.com/gke-nodepool": "on-demand"}
    setting = "{capacity: [{class: none, mode: Constrain}]}"
    wrong = POLICIES.partition("spec:")[0] + f"spec: {{overrides: {setting}}}\n"
    refused = kubectl.run("apply", "-f", "-", stdin=wrong)
    assert refused.returncode == 1
    mentions(refused.stderr, "no capacity class 'none'")


@pytest.mark.parametrize("name", [FILES, OBJECTS])
def test_doctor_finds_nothing_wrong_with_a_sandbox(pair: Pair, name: str) -> None:
    """Webhook and controller are programs of this machine: nothing is said to be missing.

    What nobody can ask from within the cluster does not apply, and is not called well.
    """
    kubeconfig = str(pair.sandbox.folders / name / "kubeconfig")
    text, done = (
        CliRunner().invoke(fairlead, ["doctor", "--kubeconfig", kubeconfig, *options])
        for options in ((), ("-o", "json"))
    )
    policies = ["doctor", "--kubeconfig", kubeconfig, "--check", "policies"]
    # Whether it takes policies from the cluster is known by who is asked about writes of them.
    own = name == OBJECTS
    assert CliRunner().invoke(fairlead, policies).exit_code == (0 if own else 2)
    assert (text.exit_code, done.exit_code) == (0, 0), text.output
    mentions(text.stdout.splitlines()[-1], "No problem found.")
    document = json.loads(done.stdout)
    assert {each["severity"] for each in document["findings"]} == {"note"}, text.output
    assert document["unknown"] == []
    (programs,) = (each for each in document["findings"] if each["check"] == "programs")
    mentions(programs["message"], "outside of the cluster", "https://127.0.0.1:")
    beyond = {"watches", "writes", "endpoints", "certificates", "trust", "leader"}
    notes = {each["check"] for each in document["findings"] if "not checked" in each["message"]}
    assert {*beyond, *(() if own else ("policies",))} <= notes
    assert ("policies" in document["ok"]) == own
    assert {"end to end", "interception", "unplaced pods", "definitions"} <= set(document["ok"])


@pytest.mark.last
def test_two_sandboxes_stand_side_by_side(pair: Pair) -> None:
    """Each name has its own ports, files and processes."""
    sandbox = pair.sandbox
    one, two = (sandbox.status(name) for name in (FILES, OBJECTS))
    assert one["state"] == two["state"] == "running"
    assert one["url"] != two["url"]
    assert sandbox("down", "--name", FILES).returncode == 0
    assert sandbox("status", "--name", OBJECTS).returncode == 0
    assert sandbox("down", "--name", OBJECTS).returncode == 0
    assert not sandbox.folders.exists()


def test_invalid_policies_are_reported_before_anything_is_started(
    sandbox: Command, tmp_path: Path
) -> None:
    """Every finding is printed as `fairlead check` would, and no sandbox is there."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICIES.replace("spec:", "spec:\n  priority: high"))
    up = sandbox("up", "--policies", str(path))
    assert (up.returncode, up.stdout) == (1, "export KUBECONFIG=/dev/null; false\n")
    assert f"{path}:5:" in up.stderr
    assert "spec.priority" in up.stderr
    assert not sandbox.folders.exists()


@pytest.mark.parametrize("name", [FILES, OBJECTS])
def test_both_programs_have_the_rights_of_an_installation_and_no_more(
    pair: Pair, kubectl_path: Path, name: str
) -> None:
    """So that a right that the manifests lack is missing here too."""
    judged = "yes" if name == OBJECTS else "no"
    expected = {
        names.WEBHOOK_CONFIGURATION: {
            "watch nodes": "yes",
            "create events": "yes",
            "watch placementpolicies.fairlead.dev": judged,
            "create pods": "no",
            "get secrets": "no",
        },
        CONTROLLER_NAME: {
            "create pods": "yes",
            "patch placementpolicies.fairlead.dev --subresource=status": judged,
            "patch nodes": "no",
            "get secrets": "no",
            "create jobsets.jobset.x-k8s.io": "no",
        },
    }
    pids = {each["name"]: each["pid"] for each in pair.sandbox.status(name)["components"]}
    for program, answers in expected.items():
        words = Path(f"/proc/{pids[program]}/cmdline").read_text().split("\0")
        kubectl = Kubectl(kubectl_path, Path(words[words.index("--kubeconfig") + 1]))
        for asked, answer in answers.items():
            said = kubectl.run("auth", "can-i", "-A", *asked.split()).stdout.split()
            assert said == [answer], (program, asked)
