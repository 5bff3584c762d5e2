"""A webhook whose watches have gone silent: what it decides on, and what it says of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.manifests import SPOT_CLASS, pod
from tests.cluster.relays import Relay
from tests.cluster.spaces import NewNamespace, Running, Space, is_stamped
from tests.eventually import eventually
from webhook import names
from webhook.errors import SandboxError
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import start_webhook, stop_webhook

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


@pytest.fixture
def relay(control_plane: ControlPlane) -> Iterator[Relay]:
    """Before the API server."""
    with Relay(control_plane) as made:
        yield made


@pytest.fixture
def space(new_namespace: NewNamespace) -> Space:
    """A namespace without a mark."""
    return new_namespace({})


@pytest.fixture
def behind(
    control_plane: ControlPlane,
    relay: Relay,
    space: Space,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Running]:
    """A webhook that reaches the API server by the relay, and is called by it directly.

    It is sent the space's pods alone: the test counts what it lets through.
    """
    folder = tmp_path_factory.mktemp("policies")
    (folder / "policies.yaml").write_text(POLICIES)
    kubeconfig = relay.kubeconfig(tmp_path_factory.mktemp("config"))
    webhook = start_webhook(
        control_plane,
        folder,
        name="fairlead-stale",
        namespaces=[space.name],
        options=("--kubeconfig", str(kubeconfig)),
    )
    try:
        yield Running(webhook, folder)
    finally:
        stop_webhook(control_plane, webhook)


def test_a_pod_of_a_namespace_that_was_marked_meanwhile_is_placed(
    relay: Relay, behind: Running, space: Space
) -> None:
    """The watch does not tell of the mark: that the pod comes at all does."""
    eventually(
        "the webhook knows the namespace",
        lambda: is_stamped(space.create(pod("marked"), dry_run=True)),
    )
    assert relay.freeze() > 0
    space.kubectl("label", "namespace", space.name, f"{names.PLACE}={names.PLACE_ALL}")

    def placed() -> bool:
        # Until the API server itself knows of the mark, it sends nothing.
        try:
            return is_stamped(space.create(pod("plain", labels={}), dry_run=True))
        except SandboxError:
            return False  # refused: connections that were kept for calls are frozen, too

    eventually("the pod is placed", placed)
    assert is_stamped(space.create(pod("plain", labels={})))
    # None that was sent was let through.
    assert behind.metric("fairlead_admission_requests_total", result="not-a-run") == 0
    assert "last update" in behind.readiness()["namespaces"]["reason"]
