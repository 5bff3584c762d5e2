"""A webhook whose watches have gone silent: what it decides on, and what it says of them."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.manifests import SPOT_CLASS, pod
from tests.cluster.rooms import NewNamespace, Room, Running, is_stamped
from tests.eventually import eventually
from webhook import names
from webhook.errors import SandboxError
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.webhook import start_webhook, stop_webhook

pytest_plugins = ["tests.cluster.webhook_fixtures"]

Json = dict[str, Any]
POLICIES = (
    SPOT_CLASS
    + """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: off-spot}
spec:
  overrides: {capacity: [{class: spot, mode: Prevent}]}
"""
)


class Relay:
    """Passes connections on to a port. Those that are frozen pass nothing any more, and stay open,
    as behind a proxy that has lost them; new ones work."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._frozen: set[socket.socket] = set()
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def freeze(self) -> int:
        """Freeze all connections that there are; how many they are."""
        self._frozen |= self._open
        return len(self._frozen)

    def close(self) -> None:
        """End everything."""
        self._listening.close()
        for each in {*self._open, *self._frozen}:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._open.add(client)
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with (
            contextlib.suppress(OSError),
            client,
            socket.create_connection(("127.0.0.1", self._target)) as server,
        ):
            other = {client: server, server: client}
            while True:
                for ready in select.select([client, server], [], [])[0]:
                    data = ready.recv(65536)
                    if client in self._frozen:
                        # What comes is swallowed: neither side hears of it.
                        threading.Event().wait()
                    if not data:
                        self._open.discard(client)
                        return
                    other[ready].sendall(data)


@pytest.fixture
def relay(control_plane: ControlPlane) -> Iterator[Relay]:
    """Before the API server."""
    made = Relay(control_plane.layout.ports["kube-apiserver"])
    yield made
    made.close()


@pytest.fixture
def room(new_namespace: NewNamespace) -> Room:
    """A namespace without a mark."""
    return new_namespace({})


@pytest.fixture
def behind(
    control_plane: ControlPlane,
    relay: Relay,
    room: Room,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Running]:
    """A webhook that reaches the API server by the relay, and is called by it directly.

    It is sent the room's pods alone: the test counts what it lets through.
    """
    folder = tmp_path_factory.mktemp("policies")
    (folder / "policies.yaml").write_text(POLICIES)
    text = control_plane.layout.kubeconfig.read_text()
    port = control_plane.layout.ports["kube-apiserver"]
    kubeconfig: Path = tmp_path_factory.mktemp("config") / "kubeconfig"
    kubeconfig.write_text(text.replace(f":{port}\n", f":{relay.port}\n"))
    assert str(relay.port) in kubeconfig.read_text()
    webhook = start_webhook(
        control_plane,
        folder,
        name="fairlead-stale",
        namespaces=[room.name],
        options=("--kubeconfig", str(kubeconfig)),
    )
    try:
        yield Running(webhook, folder)
    finally:
        stop_webhook(control_plane, webhook)


def test_a_pod_of_a_namespace_that_was_marked_meanwhile_is_placed(
    relay: Relay, behind: Running, room: Room
) -> None:
    """The watch does not tell of the mark: that the pod comes at all does."""
    eventually(
        "the webhook knows the namespace",
        lambda: is_stamped(room.create(pod("marked"), dry_run=True)),
    )
    assert relay.freeze() > 0
    room.kubectl("label", "namespace", room.name, f"{names.PLACE}={names.PLACE_ALL}")

    def placed() -> bool:
        # Until the API server itself knows of the mark, it sends nothing.
        try:
            return is_stamped(room.create(pod("plain", labels={}), dry_run=True))
        except SandboxError:
            return False  # refused: connections that were kept for calls are frozen, too

    eventually("the pod is placed", placed)
    assert is_stamped(room.create(pod("plain", labels={})))
    # None that was sent was let through.
    assert behind.metric("fairlead_admission_requests_total", result="not-a-run") == 0
    assert "last heard of" in behind.readiness()["namespaces"]["reason"]
