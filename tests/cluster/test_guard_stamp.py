"""A webhook that may be ignored, and the guard that sees which pods it let through."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.cluster.guards import guarded, type_warnings, until
from tests.cluster.manifests import Json, pod, workload
from tests.cluster.rooms import NewNamespace, Room, is_stamped
from webhook import names
from webhook.guards import stamp
from webhook.interception import webhooks
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.webhook import start_webhook

pytest_plugins = ["tests.cluster.webhook_fixtures"]

POLICIES = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: arch}
spec: {defaults: {nodeSelector: {kubernetes.io/arch: amd64}}}
"""
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/open"


def create(room: Room, manifest: Json, *options: str) -> CompletedProcess[str]:
    """`kubectl create` it."""
    return room.kubectl.run("create", "-f", "-", *options, stdin=json.dumps(manifest))


@contextmanager
def open_webhook(room: Room, policy_folder: Path) -> Iterator[Callable[[], None]]:
    """A webhook for the room under `failurePolicy: Ignore`; what is yielded kills it."""
    webhook = start_webhook(room.plane, policy_folder, name="open", namespaces=[room.name])
    ignore = [
        {"op": "replace", "path": f"/webhooks/{at}/failurePolicy", "value": "Ignore"}
        for at in range(2)
    ]
    room.kubectl(
        *("patch", "mutatingwebhookconfiguration", "open", "--type=json", "-p", json.dumps(ignore))
    )
    try:
        yield lambda: room.plane.stop_component(webhook.name)
    finally:
        room.plane.api.call("DELETE", CONFIGURATION)
        with suppress(KeyError):
            room.plane.stop_component(webhook.name)


def unstamped(room: Room) -> CompletedProcess[str]:
    """What becomes of a pod of a run that nobody stamps. It is not stored."""
    return create(room, pod("probe"), "--dry-run=server")


@pytest.mark.parametrize("deny", [False, True], ids=["warn", "deny"])
def test_a_pod_of_a_run_that_was_let_through_is_seen(
    new_namespace: NewNamespace, policy_folder: Path, deny: bool
) -> None:
    """While the webhook answers nobody hears of the guard; then no pod of a run slips by unsaid.

    No other pod hears of it either way. An author who writes the stamp himself passes: it guards
    against outages.
    """
    room = new_namespace({})
    entries = webhooks(only_namespaces=[room.name])
    guard = guarded(
        room.plane,
        stamp.documents(entries, deny=deny),
        # Before there is a webhook, no pod has a stamp.
        lambda: names.STAMP_GUARD in unstamped(room).stderr,
    )
    with guard, open_webhook(room, policy_folder) as kill:
        assert type_warnings(room.plane, names.STAMP_GUARD) == []
        up = create(room, pod("up"))
        assert (up.returncode, up.stderr) == (0, "")
        # Its pods are left alone, and stamped with the reason.
        room.create(workload("DaemonSet", "agent"))
        room.kubectl("rollout", "status", "daemonset/agent", "--timeout=60s")
        room.kubectl("delete", "daemonset", "agent", "--wait=false")
        kill()
        until("the webhook is gone", lambda: names.STAMP_GUARD in unstamped(room).stderr)
        down = create(room, pod("down"))
        assert "Fairlead's webhook did not answer" in down.stderr
        assert "fairlead doctor" in down.stderr
        assert len(down.stderr) < 400
        assert down.returncode == (1 if deny else 0)
        unmarked = create(room, pod("unmarked", labels={}))
        assert (unmarked.returncode, unmarked.stderr) == (0, "")
        forged = create(room, pod("forged", annotations={names.PLACEMENT: "{}"}))
        assert (forged.returncode, forged.stderr) == (0, "")
    found = {each["metadata"]["name"]: each for each in room.pods()}
    assert ("down" in found) is not deny
    assert is_stamped(found["up"])
    (annotations,) = room.audited("down")
    assert any(key.startswith("failed-open.mutation.webhook") for key in annotations)
    if not deny:
        assert "validation.policy.admission.k8s.io/validation_failure" in annotations


def test_a_namespace_that_is_placed_as_a_whole_is_guarded_too(
    control_plane: ControlPlane, new_namespace: NewNamespace
) -> None:
    """Its pods carry no mark; Fairlead's own namespace and kube-system are never guarded."""
    room = new_namespace({names.PLACE: names.PLACE_ALL})
    entries = webhooks(only_namespaces=[room.name, "kube-system"])
    plain = pod("plain", labels={})
    guard = guarded(
        control_plane,
        stamp.documents(entries, deny=True),
        lambda: names.STAMP_GUARD in create(room, plain, "--dry-run=server").stderr,
    )
    with guard:
        system = Room(room.plane, room.kubectl.within("kube-system"), "kube-system")
        assert create(room, plain).returncode == 1
        until("both bindings are known", lambda: unstamped(room).returncode == 1)
        assert unstamped(system).returncode == 0
