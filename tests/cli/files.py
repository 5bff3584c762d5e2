"""A folder of policies, workloads and nodes, for tests of the commands that read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from click.testing import CliRunner, Result

from tests.policy_tests.writing import CLASS, policy

SPOT_TAINT = "[{key: spot, value: 'true', effect: NoSchedule}]"
POLICIES = CLASS + policy(
    "workers-on-spot",
    "description: Workers go to spot. They may be lost., priority: 5, match: {roles: [worker]}, "
    "overrides: {capacity: [{class: spot, mode: Constrain}]}",
)
NODES = """\
kind: List
items:
- {kind: Node, metadata: {name: spot-1, labels: {pool: spot}}, spec: {taints: TAINTS}}
- {kind: Node, metadata: {name: spot-2, labels: {pool: spot}}, spec: {taints: TAINTS}}
- {kind: Node, metadata: {name: steady-1, labels: {pool: steady}}}
""".replace("TAINTS", SPOT_TAINT)
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: mnist
  namespace: research
  labels: {fairlead.dev/run: mnist, fairlead.dev/role: worker}
spec:
  containers: [{name: main, image: train}]
"""
TF_JOB = """\
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: mnist}
spec:
  tfReplicaSpecs:
    Worker:
      replicas: 3
      template: {spec: {containers: [{name: tensorflow, image: tf}]}}
"""
REJECTED = policy("amd64-only", "requirements: {nodeSelector: {arch: amd64}}")


class Files:
    """Files in a folder, and commands over them."""

    def __init__(self, folder: Path, command: click.Command) -> None:
        self.folder = folder
        self._command = command
        self.write("policies.yaml", POLICIES)
        self.write("nodes.yaml", NODES)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def run(self, *arguments: str | Path, stdin: str | None = None) -> Result:
        """Run the command with just these arguments."""
        return CliRunner().invoke(self._command, list(map(str, arguments)), input=stdin)

    def on(self, objects: str, *arguments: str | Path, policies: Sequence[str] = ()) -> Result:
        """Run the command on objects, which stand in objects.yaml, over the policies."""
        self.write("objects.yaml", objects)
        if policies:
            self.write("policies.yaml", "".join(policies))
        path, source = self.folder / "policies.yaml", self.folder / "objects.yaml"
        return self.run("-f", source, "--policies", path, *arguments)
