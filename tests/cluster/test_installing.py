"""docs/installing.md works, command by command, on a real API server."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import ssl
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.served import served
from tests.cluster.conftest import StartControlPlane
from webhook.cli.demo.examples import POLICIES
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.nodes import SHIPPED_NODES, read_pools
from webhook.sandbox.webhook_config import mutating_webhook_configuration

Json = dict[str, Any]
PAGE = Path(__file__).parents[2] / "docs" / "installing.md"
NAMESPACE = "fairlead-system"


@dataclass(frozen=True)
class Installed:
    """A cluster in which the page's commands have run, in `folder`."""

    plane: ControlPlane
    folder: Path
    kubectl: Path

    def run(self, *arguments: str) -> str:
        """kubectl's output."""
        command = [str(self.kubectl), f"--kubeconfig={self.plane.kubeconfig}", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def files(page: str) -> Mapping[str, str]:
    """The page's YAML files by the names that their first lines give."""
    return dict(re.findall(r"```yaml\n# (\S+\.yaml)\n(.*?)```", page, re.DOTALL))


def commands(page: str) -> list[str]:
    """The page's commands, in order."""
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture
def installed(
    start_control_plane: StartControlPlane, kubectl_path: Path, tmp_path: Path
) -> Installed:
    """All commands of the page have run."""
    plane = start_control_plane(Settings(pools=read_pools(SHIPPED_NODES)))
    folder = tmp_path / "install"
    (folder / "mine").mkdir(parents=True)
    for policy in POLICIES.glob("*.yaml"):
        (folder / "mine" / policy.name).write_bytes(policy.read_bytes())
    page = PAGE.read_text()
    for name, text in files(page).items():
        (folder / name).write_text(text)
    path = f"{kubectl_path.parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "KUBECONFIG": str(plane.kubeconfig)}
    for command in commands(page):
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, (command, done.stderr)
    return Installed(plane, folder, kubectl_path)


def account(installed: Installed) -> Path:
    """A kubeconfig with a token of the page's ServiceAccount."""
    token = installed.run("create", "token", "fairlead", "-n", NAMESPACE).strip()
    config = yaml.safe_load(installed.plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    path = installed.folder / "account.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def test_the_page_works(installed: Installed) -> None:
    """Its permissions and certificate suffice to serve, and the API server is told what it needs.

    The one thing that is not tried is the way from a Service to a container, for there is none.
    """
    mounted = json.loads(
        installed.run("get", "configmap", "fairlead-policies", "-n", NAMESPACE, "-o", "json")
    )
    folder = installed.folder / "mounted"
    (folder / "policies").mkdir(parents=True)
    for name, text in mounted["data"].items():
        (folder / "policies" / name).write_text(text)
    certificate = ("--cert", str(installed.folder / "tls.crt"))
    key = ("--key", str(installed.folder / "tls.key"))
    authority = installed.folder / "ca.crt"
    with served(
        folder,
        certificate=(*certificate, *key),
        cluster=("--kubeconfig", str(account(installed))),
    ) as server:
        conditions = server.wait_ready()
        assert set(conditions) >= {"policies", "certificate", "namespaces", "priority-classes"}
        context = ssl.create_default_context(cafile=str(authority))
        name = "fairlead.fairlead-system.svc"
        with (
            socket.create_connection(("127.0.0.1", server.port)) as plain,
            context.wrap_socket(plain, server_hostname=name) as connection,
        ):
            assert connection.version() == "TLSv1.3"
    assert deployed(installed)["args"][0] == "serve"
    assert registered(installed) == wanted(authority.read_bytes())


def deployed(installed: Installed) -> Json:
    """The Deployment's container, as the API server has it."""
    deployment = json.loads(
        installed.run("get", "deployment", "fairlead", "-n", NAMESPACE, "-o", "json")
    )
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(container)


def registered(installed: Installed) -> list[Json]:
    """The page's webhooks, as the API server has them."""
    found = json.loads(
        installed.run("get", "mutatingwebhookconfiguration", "fairlead", "-o", "json")
    )
    webhooks: list[Json] = found["webhooks"]
    return webhooks


def wanted(authority: bytes) -> list[Json]:
    """What the sandbox registers, which the other cluster tests try, but by way of a Service."""
    webhooks: list[Json] = mutating_webhook_configuration("", b"")["webhooks"]
    client = {
        "service": {"name": "fairlead", "namespace": NAMESPACE, "path": "/mutate", "port": 443},
        "caBundle": base64.b64encode(authority).decode(),
    }
    return [{**webhook, "clientConfig": client} for webhook in webhooks]
