"""A webhook that may be ignored, and the guard that sees which pods it let through."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.cluster.guards import guarded, type_warnings
from tests.cluster.manifests import Json, pod, policy_text, workload
from tests.cluster.spaces import NewNamespace, Space, is_stamped
from tests.eventually import eventually
from tests.wording import mentions
from webhook import names
from webhook.errors import SandboxError
from webhook.guards import stamp_guard
from webhook.interception import webhooks
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import start_webhook
from webhook.sandbox.processes import free_ports

pytest_plugins = ["tests.cluster.webhook_fixtures"]

POLICIES = policy_text("arch", "defaults: {nodeSelector: {kubernetes.io/arch: amd64}}")
NAME = "may-be-ignored"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


def create(space: Space, manifest: Json, *options: str) -> CompletedProcess[str]:
    return space.kubectl.run("create", "-f", "-", *options, stdin=json.dumps(manifest))


@contextmanager
def nobody_answers(space: Space) -> Iterator[None]:
    """The space's pods are sent where nobody listens, and admitted all the same."""
    (port,) = free_ports(["https"]).values()
    entries = webhooks(
        url=f"https://127.0.0.1:{port}/mutate",
        failure_policy="Ignore",
        only_namespaces=[space.name],
    )
    space.plane.api.create(CONFIGURATIONS, {"metadata": {"name": NAME}, "webhooks": entries})
    try:
        yield
    finally:
        space.plane.api.call("DELETE", f"{CONFIGURATIONS}/{NAME}")


@contextmanager
def somebody_answers(space: Space, policy_folder: Path) -> Iterator[Callable[[], None]]:
    """A webhook serves the space, and may be ignored; what is yielded kills it."""
    webhook = start_webhook(space.plane, policy_folder, name=NAME, namespaces=[space.name])
    ignore = [
        {"op": "replace", "path": f"/webhooks/{at}/failurePolicy", "value": "Ignore"}
        for at in range(2)
    ]
    space.kubectl(
        *("patch", "mutatingwebhookconfiguration", NAME, "--type=json", "-p", json.dumps(ignore))
    )
    try:
        yield lambda: space.plane.stop_component(webhook.name)
    finally:
        space.plane.api.call("DELETE", f"{CONFIGURATIONS}/{NAME}")
        with suppress(KeyError):
            space.plane.stop_component(webhook.name)


def unstamped(space: Space) -> CompletedProcess[str]:
    """What becomes of a pod of a run that nobody stamps. It is not stored."""
    return create(space, pod("probe"), "--dry-run=server")


@pytest.mark.parametrize("deny", [False, True], ids=["warn", "deny"])
def test_a_pod_of_a_run_without_a_stamp_is_reported(
    new_namespace: NewNamespace, policy_folder: Path, deny: bool
) -> None:
    """While nobody answers no pod of a run slips by unsaid; no other pod ever hears of the guard.

    While somebody does, nobody hears of it. It guards against outages: an author who writes the
    stamp himself passes.
    """
    space = new_namespace({})
    entries = webhooks(only_namespaces=[space.name])
    documents = stamp_guard(entries, deny=deny, configuration=NAME)

    def seen() -> bool:
        return names.STAMP_GUARD in unstamped(space).stderr

    with ExitStack() as silence, ExitStack() as stack:
        silence.enter_context(nobody_answers(space))
        stack.enter_context(guarded(space.plane, documents, seen))
        assert type_warnings(space.plane, names.STAMP_GUARD) == []
        down = create(space, pod("down"))
        mentions(down.stderr, "webhook did not answer", "fairlead doctor")
        assert len(down.stderr) < 400
        assert down.returncode == (1 if deny else 0)
        unmarked = create(space, pod("unmarked", labels={}))
        assert (unmarked.returncode, unmarked.stderr) == (0, "")
        forged = create(space, pod("forged", annotations={names.PLACEMENT: "{}"}))
        assert (forged.returncode, forged.stderr) == (0, "")

        silence.close()
        kill = stack.enter_context(somebody_answers(space, policy_folder))
        up = create(space, pod("up"))
        assert (up.returncode, up.stderr) == (0, "")
        # Its pods are left alone, and stamped with the reason.
        space.create(workload("DaemonSet", "agent"))
        space.kubectl("rollout", "status", "daemonset/agent", "--timeout=120s")
        space.kubectl("delete", "daemonset", "agent", "--wait=false")
        kill()
        eventually("the guard is in effect as before", seen)
        # For the worst night: who disables the webhook wants pods created unplaced.
        disabled = f"{names.DISABLED_UNTIL}=2099-01-01T00:00:00Z"
        space.kubectl("annotate", "mutatingwebhookconfiguration", NAME, disabled)
        eventually("pods are created", lambda: unstamped(space).returncode == 0)
        assert seen() is not deny
    found = {each["metadata"]["name"]: each for each in space.pods()}
    assert ("down" in found) is not deny
    assert is_stamped(found["up"])
    assert not is_stamped(found["unmarked"])
    (annotations,) = space.audited("down")
    assert any(key.startswith("failed-open.mutation.webhook") for key in annotations)
    if not deny:
        assert "validation.policy.admission.k8s.io/validation_failure" in annotations


def test_what_cannot_be_read_is_refused_though_the_webhook_may_be_ignored(
    new_namespace: NewNamespace, policy_folder: Path
) -> None:
    """An author makes reviews of any size and depth; the guard believes the stamp that he writes.

    Go writes each < of one byte as six, so a pod of 1.2 MB, which may be stored, is sent as 7 MB.
    """
    space = new_namespace({})
    large, deep = pod("large"), pod("deep")
    large["spec"]["containers"][0]["env"] = [{"name": "E", "value": "<" * 1_200_000}]
    levels = 1_100
    fields = {
        "manager": "author",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": "?",
    }
    deep["metadata"]["managedFields"] = [fields]
    # What Python writes is not as deep.
    text = json.dumps(deep).replace('"?"', '{"f:a":' * levels + "{}" + "}" * levels)
    with somebody_answers(space, policy_folder):
        with pytest.raises(SandboxError) as refused:
            space.create(large)
        mentions(str(refused.value), "denied the request", "make the pod smaller")
        done = space.kubectl.run("create", "-f", "-", stdin=text)
        mentions(done.stderr, "denied the request", "the body is not JSON")


def test_a_namespace_that_is_placed_as_a_whole_is_guarded_too(
    control_plane: ControlPlane, new_namespace: NewNamespace
) -> None:
    """Its pods carry no mark; Fairlead's own namespace and kube-system are never guarded."""
    space = new_namespace({names.PLACE: names.PLACE_ALL})
    entries = webhooks(only_namespaces=[space.name, "kube-system"])
    plain = pod("plain", labels={})
    guard = guarded(
        control_plane,
        stamp_guard(entries, deny=True, configuration=NAME),
        lambda: names.STAMP_GUARD in create(space, plain, "--dry-run=server").stderr,
    )
    with nobody_answers(space), guard:
        system = Space(space.plane, space.kubectl.within("kube-system"), "kube-system")
        assert create(space, plain).returncode == 1
        eventually("both bindings are known", lambda: unstamped(space).returncode == 1)
        assert unstamped(system).returncode == 0
