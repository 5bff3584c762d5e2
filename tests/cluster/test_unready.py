"""A webhook that cannot decide yet: what the API server makes of its 503."""

from __future__ import annotations

import itertools
import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.cluster.manifests import pod, policy_text
from tests.cluster.spaces import NewNamespace, Running, Space, is_stamped
from tests.eventually import eventually
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import Webhook, mutating_webhook_configuration
from webhook.sandbox.processes import free_ports
from webhook.sandbox.rights import account

pytest_plugins = ["tests.cluster.webhook_fixtures"]

GOOD = policy_text("arch", "defaults: {nodeSelector: {kubernetes.io/arch: amd64}}")
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


@dataclass(frozen=True)
class Unready:
    """A webhook whose policies have an error from the beginning."""

    running: Running
    register: Callable[[str, str], None]
    """Register it with this failurePolicy, for one namespace."""

    def refused(self) -> float:
        """How many reviews it has answered with 503."""
        return self.running.metric(
            "fairlead_admission_requests_total", result="not-synced", code="503"
        )

    def mend(self) -> None:
        """Give it policies without an error."""
        fresh = self.running.policies / "fresh"
        fresh.write_text(GOOD)
        # At once: a file that is cut and not yet written is a set of no policies.
        fresh.rename(self.running.policies / "policies.yaml")


@pytest.fixture
def unready(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Unready]:
    """It runs beside the control plane, and is registered for whom the test says."""
    (tmp_path / "policies.yaml").write_text(GOOD.replace("defaults", "default"))
    ports = free_ports(["https", "health"])
    authority = tmp_path / "ca.crt"
    control_plane.start_process(
        "unready",
        [
            *(sys.executable, "-c", "from webhook.cli import main; main()", "serve"),
            *("--policies", tmp_path, "--kubeconfig", account(control_plane, names.WEBHOOK)),
            *("--port", str(ports["https"]), "--health-port", str(ports["health"])),
            *("--self-signed", "--ca-out", authority, "--poll-interval", "0.1"),
        ],
    )
    url = f"https://127.0.0.1:{ports['https']}/mutate"

    def register(failure_policy: str, namespace: str) -> None:
        configuration = mutating_webhook_configuration(
            url,
            authority.read_bytes(),
            failure_policy=failure_policy,
            only_namespaces=[namespace],
            name="unready",
        )
        control_plane.api.create(CONFIGURATIONS, configuration)

    health = f"http://127.0.0.1:{ports['health']}"
    webhook = Webhook("unready", url, health, authority, "")
    try:
        eventually("the webhook has its certificate", authority.exists)
        yield Unready(Running(webhook, tmp_path), register)
    finally:
        control_plane.api.call("DELETE", f"{CONFIGURATIONS}/unready")
        control_plane.stop_component("unready")


def create(space: Space, name: str) -> CompletedProcess[str]:
    """`kubectl create` a pod of a run."""
    return space.kubectl.run("create", "-f", "-", stdin=json.dumps(pod(name)))


def created_once_registered(space: Space, unready: Unready, name: str) -> CompletedProcess[str]:
    """The first creation of which the webhook was asked: the API server hears of it in a moment."""
    numbers = itertools.count()

    def once() -> CompletedProcess[str] | None:
        done = create(space, f"{name}-{next(numbers)}")
        return done if unready.refused() else None

    return eventually("the webhook is asked", once)


def test_with_fail_the_pod_is_refused(unready: Unready, new_namespace: NewNamespace) -> None:
    """No pod goes where no policy wants it; what is missing is told by the webhook's readiness.

    (Not by kubectl: the API server asks again until its time is up, and then says only that.)
    """
    space = new_namespace({})
    unready.register("Fail", space.name)
    done = created_once_registered(space, unready, "p")
    assert done.returncode == 1
    assert 'failed calling webhook "pods-0.fairlead.dev"' in done.stderr
    assert unready.refused() > 1
    assert "policies.yaml:6:3" in unready.running.readiness()["policies"]["reason"]


def test_the_api_server_asks_again_by_itself(unready: Unready, new_namespace: NewNamespace) -> None:
    """503 with Retry-After: if the policies are there a second later, the pod is placed."""
    space = new_namespace({})
    unready.register("Fail", space.name)
    created_once_registered(space, unready, "before")
    before = unready.refused()
    done: list[CompletedProcess[str]] = []
    creation = threading.Thread(target=lambda: done.append(create(space, "p")))
    creation.start()
    eventually("it was asked once", lambda: unready.refused() != before)
    unready.mend()
    creation.join()
    assert done[0].returncode == 0, done[0].stderr
    (seen,) = [one for one in space.pods() if one["metadata"]["name"] == "p"]
    assert is_stamped(seen)
    assert seen["spec"]["nodeSelector"] == {"kubernetes.io/arch": "amd64"}
