"""A control plane of its own for `fairlead install`, whose webhook is a process of this machine.

kwok says of every pod that it runs, and no container is started: so the Deployments become
available, and the one webhook that answers runs beside them. It is registered by its address.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tests.cluster.paths import home, path
from tests.eventually import eventually
from tests.objects import an_object
from webhook import names
from webhook.cli import fairlead
from webhook.sandbox.api import wait_until
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.processes import free_ports
from webhook.sandbox.rights import account

Json = dict[str, Any]
NAMESPACE = "fairlead-system"
# Options of `fairlead uninstall`: with them nothing is kept for the next installation.
EVERYTHING = ("--delete-runs", "--delete-policies")
WEBHOOK = "install-webhook"
POLICY: Json = an_object(
    names.API_VERSION, names.POLICY_KIND, "pool", {"defaults": {"nodeSelector": {"pool": "a"}}}
)


@dataclass(frozen=True)
class Site:
    """A cluster, and a webhook that is there for it, but that nobody has registered."""

    plane: ControlPlane
    kubectl: Kubectl
    port: int
    health_port: int

    @property
    def authority(self) -> Path:
        """The PEM that vouches for the webhook."""
        return self.plane.layout.directory / "install-ca.crt"

    @property
    def at_its_address(self) -> Sequence[str]:
        """Options of `fairlead install` that have pods sent there."""
        url = f"https://127.0.0.1:{self.port}/mutate"
        return ("--webhook-url", url, "--webhook-ca", str(self.authority))

    def run(self, command: str, *options: str, stdin: str | None = None) -> Result:
        """`fairlead COMMAND` on this cluster."""
        return CliRunner(env={"KUBECONFIG": str(self.plane.kubeconfig)}).invoke(
            fairlead, [command, *options], input=stdin, catch_exceptions=False
        )

    def install(self, *options: str) -> Result:
        """`fairlead install` with these options alone, and the webhook at its address; it has to
        succeed."""
        always = ("--reset", "--yes", "--timeout", "5m")
        result = self.run("install", *self.at_its_address, *always, *options)
        assert result.exit_code == 0, result.output
        return result

    def uninstall(self, *options: str) -> Result:
        """`fairlead uninstall`, Runs and policies included; it has to succeed."""
        result = self.run("uninstall", "--yes", *EVERYTHING, *options)
        assert result.exit_code == 0, result.output
        return result

    def findings(self, *options: str) -> list[Json]:
        """What `fairlead doctor` finds."""
        document: Json = json.loads(self.run("doctor", "-o", "json", *options).stdout)
        found: list[Json] = document["findings"]
        return found

    def configuration(self, kind: str = "mutatingwebhookconfiguration") -> Json:
        """The webhook configuration as the API server has it."""
        found: Json = self.plane.api.get(path(f"{kind.lower()}s", "fairlead"))
        return found

    def create_pod(self, name: str, namespace: str = "default", **labels: str) -> Json:
        """Create a pod with labels of ours, and give it as it is stored."""
        created: Json = self.plane.api.create(path("pods", namespace=namespace), _pod(name, labels))
        return created

    def apply(self, manifest: Json, *, dry_run: bool = False) -> str:
        """Server-side apply; "" if it is stored, else why the API server refuses it.

        kubectl would first read what each kind may be: more than a second of processor time.
        """
        where = f"{home(manifest, 'default')}/{manifest['metadata']['name']}"
        query = "?fieldManager=tests&fieldValidation=Strict" + ("&dryRun=All" if dry_run else "")
        status, answer = self.plane.api.call(
            "PATCH", where + query, manifest, content_type="application/apply-patch+yaml"
        )
        return "" if status < HTTPStatus.BAD_REQUEST else str(answer["message"])

    def change(self, resource: str, name: str, *operations: Json, namespace: str = "") -> None:
        """Change an object by a JSON Patch, which has to succeed."""
        status, answer = self.plane.api.call(
            "PATCH",
            path(resource, name, namespace=namespace),
            operations,
            content_type="application/json-patch+json",
        )
        assert status < HTTPStatus.BAD_REQUEST, answer

    def bring_policy(self) -> None:
        """Apply the policy above, and wait until pods are placed by it."""
        assert self.apply(POLICY) == ""
        eventually(
            "pods are placed by it",
            lambda: self.dry_run(run="r")["spec"].get("nodeSelector") == {"pool": "a"},
        )

    def dry_run(self, **labels: str) -> Json:
        """What would become of a pod with labels of ours."""
        where = path("pods", namespace="default")
        created: Json = self.plane.api.create(f"{where}?dryRun=All", _pod("dry", labels))
        return created

    def start_webhook(self) -> None:
        """Run `fairlead serve`, and wait until it listens."""
        # Another process has another authority.
        self.authority.unlink(missing_ok=True)
        ports = ("--port", str(self.port), "--health-port", str(self.health_port))
        process = self.plane.start_process(
            WEBHOOK,
            [
                *(sys.executable, "-c", "from webhook.cli import main; main()", "serve"),
                *("--policies-from-cluster", "--kubeconfig", account(self.plane, names.WEBHOOK)),
                *("--host", "127.0.0.1", *ports, "--self-signed", "--ca-out", self.authority),
                "--events",
            ],
        )
        wait_until(
            "the webhook to listen",
            self._listens,
            process.check,
            time.monotonic() + 120,
            process.log_tail,
        )

    def _listens(self) -> bool:
        try:
            context = ssl.create_default_context(cafile=str(self.authority))
            with (
                socket.create_connection(("127.0.0.1", self.port), timeout=5) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1"),
            ):
                return True
        except OSError:
            # No file yet, half a file, nobody there.
            return False


def _pod(name: str, labels: Mapping[str, str]) -> Json:
    return an_object(
        "v1",
        "Pod",
        {
            "name": name,
            "labels": {f"fairlead.dev/{key}": value for key, value in labels.items()},
        },
        {"containers": [{"name": "main", "image": "example.invalid/none"}]},
    )


def build(plane: ControlPlane, kubectl: Kubectl) -> Site:
    """The cluster with such a webhook, which runs."""
    ports = free_ports(["https", "health"])
    made = Site(plane, kubectl, ports["https"], ports["health"])
    made.start_webhook()
    return made
