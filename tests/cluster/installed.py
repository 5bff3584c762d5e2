"""The pages about installing, and a cluster in which their commands have run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.accounts import account
from tests.cluster.spaces import Space
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs" / "guides"
# In the order in which an admin follows them.
PAGES = (ROOT / "docs" / "installing.md", GUIDES / "customize.md", GUIDES / "upgrading.md")
UNINSTALLING = GUIDES / "uninstalling.md"


@dataclass(frozen=True)
class Installed:
    """The commands of the pages have run in `folder`; `said` has what each wrote on stderr."""

    plane: ControlPlane
    folder: Path
    kubectl: Kubectl
    said: Mapping[str, str]

    def account(self, name: str) -> Path:
        """A kubeconfig with a token of one of the ServiceAccounts, in their namespace."""
        file = self.plane.layout.directory / f"{name}.account"
        return account(self.kubectl, name, file)

    def arguments(self, name: str) -> list[str]:
        """The Deployment's arguments, as the API server has them."""
        deployment = self.kubectl.json("get", "deployment", name)
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        return list(container["args"])

    @property
    def home(self) -> Space:
        """The namespace that Fairlead is installed in."""
        return Space(self.plane, self.kubectl, names.NAMESPACE)

    def space(self, name: str) -> Space:
        self.plane.create_namespace(name)
        return Space(self.plane, self.kubectl.within(name), name)

    def audited(self) -> list[Json]:
        """The requests of both accounts so far."""
        lines = self.plane.layout.audit_log.read_text().splitlines(keepends=True)
        # The last line may be in the middle of being written.
        return [json.loads(line) for line in lines if line.endswith("\n")]


def files(page: str) -> Mapping[str, str]:
    """The page's YAML files by the names that their first lines give."""
    return dict(re.findall(r"```yaml\n# (\S+\.yaml)\n(.*?)```", page, re.DOTALL))


def commands(page: str) -> list[str]:
    """The page's commands, in order."""
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def run(command: str, folder: Path, kubeconfig: Path, kubectl: Path) -> str:
    """Run one of the page's commands there, and return what it writes on stderr."""
    programs = (Path(sys.executable).parent, kubectl.parent, os.environ["PATH"])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env={
            **os.environ,
            "PATH": os.pathsep.join(map(str, programs)),
            "KUBECONFIG": str(kubeconfig),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stderr
