"""kubectl finds the command by its name on the PATH."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.cluster.manifests import pod, policy_text
from tests.cluster.spaces import Space


def test_kubectl_finds_the_command_as_its_plugin(
    module_space: Space, kubectl_path: Path, tmp_path: Path
) -> None:
    """Help says how it was called, and live objects are found by kubectl's own configuration."""
    policies = tmp_path / "policies.yaml"
    policies.write_text(policy_text("pool", "match: {}", "defaults: {nodeSelector: {pool: b}}"))
    module_space.create(pod("solo", labels={}))
    folders = [str(Path(sys.executable).parent), os.environ["PATH"]]
    environ = {**os.environ, "PATH": os.pathsep.join(folders)}
    environ["KUBECONFIG"] = str(module_space.plane.kubeconfig)

    def kubectl(*words: str) -> str:
        command = [str(kubectl_path), "fairlead", *words]
        return subprocess.run(
            command, env=environ, check=True, capture_output=True, text=True
        ).stdout

    assert kubectl("explain", "--help").startswith("Usage: kubectl fairlead explain ")
    where = ("-n", module_space.name, "--policies", str(policies))
    assert "not part of a run" in kubectl("explain", "pod", "solo", *where)
