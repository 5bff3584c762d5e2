"""docs/installing.md works, command by command, on a real API server."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.served import served
from tests.cluster.every_right import EVERY_RIGHT
from tests.cluster.rooms import Room
from tests.cluster.scenes import play
from webhook.cli import controller as fairlead_controller
from webhook.cli.demo.examples import POLICIES
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.controller import start_controller
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.nodes import SHIPPED_NODES, read_pools
from webhook.sandbox.webhook_config import mutating_webhook_configuration

Json = dict[str, Any]
Right = tuple[str, str, str]
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "installing.md"
NAMESPACE = "fairlead-system"
CONTROLLER = "fairlead-controller"
# Every request of the controller's account, and no other.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "users": [f"system:serviceaccount:{NAMESPACE}:{CONTROLLER}"]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True)
class Installed:
    """A cluster in which the page's commands have run, in `folder`."""

    plane: ControlPlane
    folder: Path
    kubectl: Kubectl

    def account(self, name: str) -> Path:
        """A kubeconfig with a token of one of the page's ServiceAccounts."""
        token = self.kubectl("create", "token", name).strip()
        config = yaml.safe_load(self.plane.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        # Within the control plane's folder, as a process beside it wants it.
        path = self.plane.layout.directory / f"{name}.account"
        path.write_text(yaml.safe_dump(config))
        return path

    def deployed(self, name: str) -> Json:
        """The Deployment's container, as the API server has it."""
        deployment = self.kubectl.json("get", "deployment", name)
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        return dict(container)

    def room(self, name: str) -> Room:
        """A new namespace."""
        self.plane.create_namespace(name)
        return Room(self.plane, self.kubectl.within(name), name)


def files(page: str) -> Mapping[str, str]:
    """The page's YAML files by the names that their first lines give."""
    return dict(re.findall(r"```yaml\n# (\S+\.yaml)\n(.*?)```", page, re.DOTALL))


def commands(page: str) -> list[str]:
    """The page's commands, in order."""
    blocks = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.fixture(scope="module")
def installed(
    binaries: Mapping[str, Path], kubectl_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    """All commands of the page have run."""
    folder = tmp_path_factory.mktemp("install")
    (folder / "mine").mkdir()
    for policy in POLICIES.glob("*.yaml"):
        (folder / "mine" / policy.name).write_bytes(policy.read_bytes())
    (folder / "manifests").symlink_to(ROOT / "manifests")
    (folder / "audit-policy.yaml").write_text(yaml.safe_dump(AUDIT_POLICY))
    page = PAGE.read_text()
    for name, text in files(page).items():
        (folder / name).write_text(text)
    settings = Settings(
        pools=read_pools(SHIPPED_NODES),
        extra_arguments={
            "kube-apiserver": [f"--audit-policy-file={folder / 'audit-policy.yaml'}"],
        },
        audit=True,
    )
    with ControlPlane(folder / "control-plane", binaries, settings) as plane:
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
        yield Installed(plane, folder, Kubectl(kubectl_path, plane.kubeconfig, NAMESPACE))


def test_the_webhook_works(installed: Installed) -> None:
    """Its permissions and certificate suffice to serve, and the API server is told what it needs.

    The one thing that is not tried is the way from a Service to a container, for there is none.
    """
    mounted = installed.kubectl.json("get", "configmap", "fairlead-policies")
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
        cluster=("--kubeconfig", str(installed.account("fairlead"))),
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
    assert installed.deployed("fairlead")["args"][0] == "serve"
    assert registered(installed) == wanted(authority.read_bytes())


def registered(installed: Installed) -> list[Json]:
    """The page's webhooks, as the API server has them."""
    found = installed.kubectl.json("get", "mutatingwebhookconfiguration", "fairlead")
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


def test_the_controller_works_with_each_of_its_rights_and_no_other(installed: Installed) -> None:
    """Runs of each shape, from creation to their end, use all that the page grants.

    Which rights are used the audit log of the API server tells.
    """
    container = installed.deployed(CONTROLLER)
    command, *options = container["args"]
    assert command == fairlead_controller.command.name
    (port,) = container["ports"]
    assert port["containerPort"] == default("--health-port")
    # As the page says: pods of runs would wait for a webhook that nobody can reach here.
    installed.kubectl("delete", "mutatingwebhookconfiguration", "fairlead")
    start_controller(
        installed.plane,
        name=CONTROLLER,
        kubeconfig=installed.account(CONTROLLER),
        # In a pod that would be the pod's own.
        options=(*options, "--lease-namespace", NAMESPACE),
    )
    for name, story in EVERY_RIGHT.items():
        story(installed.room(name))
    used, refused = requests(installed.plane)
    assert refused == set()
    assert used == granted(installed)


def default(option: str) -> object:
    """What an option of `fairlead controller` is if it is not given."""
    (found,) = (each for each in fairlead_controller.command.params if option in each.opts)
    return found.default


def requests(plane: ControlPlane) -> tuple[set[Right], set[Right]]:
    """What the controller has asked the API server for, and what of it was forbidden."""
    used, refused = set(), set()
    for line in plane.layout.audit_log.read_text().splitlines(keepends=True):
        # The last line may be in the middle of being written.
        event = json.loads(line) if line.endswith("\n") else {}
        about = event.get("objectRef", {})
        if "resource" in about:
            whole = "/".join(about[key] for key in ("resource", "subresource") if key in about)
            right = (about.get("apiGroup", ""), whole, event["verb"])
            used.add(right)
            # A webhook, or a policy, forbids with other words.
            if event["annotations"]["authorization.k8s.io/decision"] == "forbid":
                refused.add(right)
    return used, refused


def granted(installed: Installed) -> set[Right]:
    """What the page's roles for the controller allow."""
    found = [
        installed.kubectl.json("get", kind, CONTROLLER)["rules"] for kind in ("clusterrole", "role")
    ]
    return {
        (group, resource, verb)
        for rules in found
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_who_may_edit_a_namespace_may_create_runs_in_it(installed: Installed) -> None:
    """The roles that every cluster has are added to."""

    def may(role: str, verb: str) -> bool:
        room = f"{role}-may-{verb}"
        installed.plane.create_namespace(room)
        kubectl = installed.kubectl.within(room)
        kubectl("create", "rolebinding", "somebody", f"--clusterrole={role}", "--user=somebody")
        asked = kubectl.run("auth", "can-i", verb, "runs.fairlead.dev", "--as=somebody")
        return asked.stdout.strip() == "yes"

    assert [may("edit", "create"), may("edit", "list"), may("admin", "delete")] == [True] * 3
    assert [may("view", "watch"), may("view", "create")] == [True, False]


def test_runs_go_with_their_definition(installed: Installed) -> None:
    """As the page says of deleting it."""
    room = installed.room("last")
    play(room, "last", framework="jax", replicas={"worker": {"count": 2}})
    room.wait_for_pods(2)
    room.kubectl("delete", "crd", "runs.fairlead.dev")
    while room.pods():
        pass
