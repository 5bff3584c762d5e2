"""The real kubectl, configured for one cluster."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from webhook.errors import SandboxError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Kubectl:
    """kubectl at `path` with the cluster of `kubeconfig`, and a namespace if one is given.

    Its discovery cache lies beside the kubeconfig, not in the home directory.
    """

    path: Path
    kubeconfig: Path
    namespace: str | None = None

    def within(self, namespace: str) -> Kubectl:
        """Return the same kubectl, with another default namespace."""
        return replace(self, namespace=namespace)

    def run(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run it and return exit code, stdout and stderr (warnings among it), whatever they are."""
        command = [str(self.path), f"--kubeconfig={self.kubeconfig}"]
        command.append(f"--cache-dir={self.kubeconfig.parent / 'kubectl-cache'}")
        if self.namespace:
            command.append(f"--namespace={self.namespace}")
        return subprocess.run(  # noqa: S603
            [*command, *arguments], input=stdin, capture_output=True, text=True, check=False
        )

    def __call__(self, *arguments: str, stdin: str | None = None) -> str:
        """Run it and return stdout. Raises SandboxError with its stderr if it fails."""
        done = self.run(*arguments, stdin=stdin)
        if done.returncode:
            raise SandboxError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def json(self, *arguments: str, stdin: str | None = None) -> Any:
        """Run it with `-o json` and return the decoded output. Raises SandboxError if it fails."""
        return json.loads(self(*arguments, "-o", "json", stdin=stdin))

    def create(self, *manifests: object) -> str:
        """`kubectl create` the objects, in order. Raises SandboxError with what was refused."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        return self("create", "-f", "-", stdin=json.dumps(items))
