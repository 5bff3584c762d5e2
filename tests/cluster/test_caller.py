"""Callers that have to show a certificate: the real API server with one, another's, and none."""

from __future__ import annotations

import base64
import json
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from certs.authority import new_authority
from certs.pair import Pair
from tests.cluster.manifests import pod, policy_text
from tests.cluster.spaces import is_stamped
from tests.control_planes import StartControlPlane
from tests.eventually import eventually
from tests.server.clients import client
from tests.server.serving import readiness
from tests.wording import mentions
from webhook import names
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import mutating_webhook_configuration
from webhook.sandbox.processes import free_ports
from webhook.sandbox.rights import account

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
AUTHORITY = new_authority("Callers", datetime.now(UTC))
POLICY = policy_text("arch", "defaults: {nodeSelector: {kubernetes.io/arch: amd64}}")
# One server, reached by three addresses: for each the API server has other credentials.
RIGHT, WRONG, NONE = "127.0.0.1", "127.0.0.2", "127.0.0.3"


@dataclass(frozen=True)
class Guarded:
    """A webhook that asks callers for a certificate, and the API server that calls it."""

    plane: ControlPlane
    port: int
    health_port: int
    authority: Path

    def register(self, address: str, namespace: str) -> None:
        """Have pods of a namespace sent to the webhook by one of its addresses."""
        self.plane.api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
        configuration = mutating_webhook_configuration(
            f"https://{address}:{self.port}/mutate",
            self.authority.read_bytes(),
            only_namespaces=[namespace],
            name=namespace,
        )
        self.plane.api.create(CONFIGURATIONS, configuration)

    def created(self, namespace: str) -> tuple[int, dict[str, Any]]:
        """What comes of a pod of a run there, once the API server knows of the webhook."""
        path = f"/api/v1/namespaces/{namespace}/pods"

        def asked() -> tuple[int, dict[str, Any]] | None:
            status, answer = self.plane.api.call("POST", path, pod(f"p-{uuid.uuid4().hex}"))
            return (status, answer) if status != 201 or is_stamped(answer) else None

        return eventually("the webhook is asked", asked)


def admission_configuration(folder: Path, port: int) -> Path:
    """What an API server is told of the credentials for webhooks; none for NONE."""
    users = [
        {"name": f"{RIGHT}:{port}", "user": credentials(client(AUTHORITY, "api-server"))},
        {"name": f"{WRONG}:{port}", "user": credentials(client(AUTHORITY, "somebody-else"))},
    ]
    kubeconfig = folder / "webhooks.kubeconfig"
    kubeconfig.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "users": users}))
    group = "apiserver.config.k8s.io/v1"
    plugin = {
        "name": "MutatingAdmissionWebhook",
        "configuration": {
            "apiVersion": group,
            "kind": "WebhookAdmissionConfiguration",
            "kubeConfigFile": str(kubeconfig),
        },
    }
    file = folder / "admission.json"
    whole = {"apiVersion": group, "kind": "AdmissionConfiguration", "plugins": [plugin]}
    file.write_text(json.dumps(whole))
    return file


def credentials(pair: Pair) -> dict[str, str]:
    return {
        "client-certificate-data": base64.b64encode(pair.certificate).decode(),
        "client-key-data": base64.b64encode(pair.private_key).decode(),
    }


@pytest.fixture
def guarded(start_control_plane: StartControlPlane, tmp_path: Path) -> Iterator[Guarded]:
    """It runs, and nothing is sent to it yet."""
    ports = free_ports(["https", "health"])
    configuration = admission_configuration(tmp_path, ports["https"])
    plane = start_control_plane(
        Settings(
            components=("etcd", "kube-apiserver"),
            extra_arguments={
                "kube-apiserver": [
                    f"--admission-control-config-file={configuration}",
                    # Nobody makes service accounts here.
                    "--disable-admission-plugins=ServiceAccount",
                ]
            },
        )
    )
    (tmp_path / "policies.yaml").write_text(POLICY)
    (tmp_path / "clients.crt").write_bytes(AUTHORITY.certificate)
    authority = tmp_path / "ca.crt"
    plane.start_process(
        "guarded",
        [
            *(sys.executable, "-c", "from webhook.cli import main; main()", "serve"),
            *("--policies", tmp_path / "policies.yaml"),
            *("--kubeconfig", account(plane, names.WEBHOOK)),
            *("--port", str(ports["https"]), "--health-port", str(ports["health"])),
            *("--self-signed", "--ca-out", authority, "--name", WRONG, "--name", NONE),
            *("--client-ca", tmp_path / "clients.crt", "--client-name", "api-server"),
        ],
    )
    try:
        eventually("the webhook has its certificate", authority.exists)
        eventually("the webhook is ready", partial(is_ready, ports["health"]))
        yield Guarded(plane, ports["https"], ports["health"], authority)
    finally:
        plane.stop_component("guarded")


def is_ready(health_port: int) -> bool:
    """Whether it says so; False while nobody answers."""
    try:
        return readiness(health_port)[0] == 200
    except OSError:
        return False


def test_only_the_caller_with_the_right_certificate_is_answered(guarded: Guarded) -> None:
    """With it pods are placed; with another's or none the API server fails closed, and says why."""
    guarded.register(RIGHT, "right")
    guarded.register(WRONG, "wrong")
    guarded.register(NONE, "none")
    status, placed = guarded.created("right")
    assert status == 201
    assert placed["spec"]["nodeSelector"] == {"kubernetes.io/arch": "amd64"}
    status, refused = guarded.created("wrong")
    assert status >= 400
    mentions(refused["message"], "certificate is for somebody-else", "may call: api-server")
    status, refused = guarded.created("none")
    assert status >= 400
    assert 'failed calling webhook "pods-0.fairlead.dev"' in refused["message"]
    assert guarded.created("right")[0] == 201
    assert readiness(guarded.health_port)[0] == 200
