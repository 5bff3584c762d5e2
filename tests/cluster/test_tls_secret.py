"""Serving from a Secret of the real API server: taken as it is written, refused if it is wrong."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from certs.authority import new_authority
from certs.issue import Names, issue_server, service_names
from certs.pair import Pair, read_certificate
from tests.cli.served import Served, served
from tests.eventually import eventually
from tests.server.serving import connect, serial_number
from tests.wording import mentions
from webhook.sandbox.control_plane import ControlPlane

AUTHORITY = new_authority("Test", datetime.now(UTC))
POLICY = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: arch}
spec: {defaults: {nodeSelector: {kubernetes.io/arch: amd64}}}
"""


def leaf(namespace: str) -> Pair:
    """A certificate for the webhook's Service there, and for loopback."""
    extra = Names(addresses=("127.0.0.1",))
    names = service_names("fairlead-webhook", namespace, extra)
    return issue_server(AUTHORITY, "webhook", names, datetime.now(UTC))


class Secret:
    """The Secret of the test's namespace."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._api = plane.api
        self.namespace = namespace
        self._collection = f"/api/v1/namespaces/{namespace}/secrets"

    def write(self, pair: Pair) -> int:
        """Create it, or replace what is there; the certificate's serial number."""
        data = {
            "tls.crt": pair.certificate,
            "tls.key": pair.private_key,
            "ca.crt": AUTHORITY.certificate,
        }
        secret: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "tls"},
            "type": "kubernetes.io/tls",
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }
        if self._api.get(f"{self._collection}/tls") is None:
            self._api.create(self._collection, secret)
        else:
            assert self._api.call("PUT", f"{self._collection}/tls", secret)[0] == 200
        return read_certificate(pair.certificate).serial_number

    def delete(self) -> None:
        """Delete it."""
        assert self._api.call("DELETE", f"{self._collection}/tls")[0] == 200


@pytest.fixture
def secret(control_plane: ControlPlane, namespace: str) -> Secret:
    """One that is not there yet."""
    return Secret(control_plane, namespace)


class Configuration:
    """A webhook configuration whose one entry goes to the Service of the test's namespace.

    It matches no pod: nobody is to be called.
    """

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._api = plane.api
        self.name = namespace
        self._path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"

    def write(self, bundle: bytes) -> None:
        """Create it with this bundle."""
        entry = {
            "name": "pods.example.com",
            "clientConfig": {
                "service": {"namespace": self.name, "name": "fairlead-webhook"},
                "caBundle": base64.b64encode(bundle).decode(),
            },
            "rules": [],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
        self._api.create(self._path, {"metadata": {"name": self.name}, "webhooks": [entry]})

    def delete(self) -> None:
        """Delete it."""
        self._api.call("DELETE", f"{self._path}/{self.name}")


@pytest.fixture
def configuration(control_plane: ControlPlane, namespace: str) -> Iterator[Configuration]:
    """One that is not there yet."""
    made = Configuration(control_plane, namespace)
    yield made
    made.delete()


@pytest.fixture
def server(control_plane: ControlPlane, secret: Secret, tmp_path: Path) -> Iterator[Served]:
    """A server that watches it; files are looked at once an hour."""
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "policies.yaml").write_text(POLICY)
    with served(
        tmp_path,
        *("--poll-interval", "3600"),
        *("--webhook-configuration", secret.namespace),
        certificate=("--tls-secret", f"{secret.namespace}/tls"),
        cluster=("--kubeconfig", str(control_plane.kubeconfig)),
    ) as running:
        yield running


def on_the_wire(server: Served) -> int:
    """The serial number of the certificate that a new handshake gets."""
    connection = connect(server.port, AUTHORITY)
    try:
        connection.connect()
        return serial_number(connection)
    finally:
        connection.close()


def until_reason(server: Served, text: str, name: str = "certificate") -> dict[str, Any]:
    """Wait until the condition of this name says so, and return it."""

    def said() -> dict[str, Any]:
        condition: dict[str, Any] = server.readiness()[1][name]
        return condition

    def so() -> dict[str, Any] | None:
        condition = said()
        return condition if text in condition["reason"] else None

    return eventually(f"{name}: {text}", so, explain=said)


def test_a_secret_serves_as_soon_as_it_is_written(server: Served, secret: Secret) -> None:
    """Absent: not ready, with the cure. Created and replaced: on the wire, and nothing polls."""
    absent = until_reason(server, "does not exist")
    assert not absent["ready"]
    mentions(absent["reason"], "`fairlead controller --cert")
    for count in range(1, 4):
        serial = secret.write(leaf(secret.namespace))
        assert server.line("certificate loaded", count)["digest"] == f"{serial:x}"
        assert on_the_wire(server) == serial
    server.wait_ready()
    assert 'fairlead_certificate_reload_total{outcome="loaded"} 3.0' in server.metrics()


def test_it_is_ready_under_the_published_ca_bundle(
    server: Served, secret: Secret, configuration: Configuration
) -> None:
    """The Secret's own bundle as long as no configuration is there; then each entry's."""
    none = until_reason(server, "no certificate to shake", "handshake")
    assert not none["ready"]
    secret.write(leaf(secret.namespace))
    host = f"fairlead-webhook.{secret.namespace}.svc"
    own = f"{host} verified under ca.crt"
    assert server.wait_ready()["handshake"]["reason"].startswith(own)
    assert "fairlead_self_handshake_verified 1.0" in server.metrics()
    configuration.write(new_authority("Other", datetime.now(UTC)).certificate)
    wrong = until_reason(server, "not verified under caBundle", "handshake")["reason"]
    mentions(wrong, "webhook pods.example.com")
    assert "fairlead_self_handshake_verified 0.0" in server.metrics()
    server.wait_ready(ready=False)
    configuration.delete()
    until_reason(server, own, "handshake")
    configuration.write(AUTHORITY.certificate)
    right = until_reason(server, f"{host} verified under caBundle", "handshake")
    assert right["ready"]
    mentions(right["reason"], "webhook pods.example.com")
    server.wait_ready()
