"""`fairlead controller --certificates` as a process, with the rights that it needs and without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cluster.accounts import account, grant, grant_everywhere
from tests.cluster.keepers import Site
from tests.cluster.spaces import Json, metric
from tests.eventually import eventually
from tests.server.serving import readiness
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import SandboxController, start_controller
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.run_fixtures"]

ACCOUNT: Final = "fairlead-controller"
WATCH: Final = ["get", "list", "watch"]
SECRETS: Final = [names.AUTHORITY_SECRET, names.SERVING_SECRET]


@pytest.fixture
def site(run_api: ControlPlane, namespace: str) -> Iterator[Site]:
    """An installation without certificates."""
    site = Site.of(run_api, namespace)
    site.configure()
    yield site
    site.unconfigure()


@pytest.fixture
def launch(site: Site, kubectl: Kubectl, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Runs controllers for the site, as an account without rights or as the administrator."""
    started: list[str] = []

    def begin(name: str = "keeper", *options: str, alone: bool = False) -> SandboxController:
        # The manifests' rights are for one configuration, and each test has another.
        administrator = site.plane.kubeconfig
        kubeconfig = account(kubectl, ACCOUNT, tmp_path / "account") if alone else administrator
        ours = (
            *("--namespace", site.installation.namespace),
            *("--webhook-configuration", site.place.name),
            *("--certificates", "--certificate-settle", "0.2"),
        )
        # A log of its own.
        process = f"{name}-of-{site.installation.namespace}"
        started.append(process)
        options = (*ours, *options)
        return start_controller(
            site.plane, name=process, kubeconfig=kubeconfig, options=options, wait=False
        )

    yield begin
    for name in started:
        with suppress(KeyError):
            site.plane.stop_component(name)


def said(controller: SandboxController) -> Json:
    """What /readyz says of certificates; nothing while nobody listens."""
    with suppress(OSError):
        found: Json = readiness(controller.health_port)[1]["conditions"]["certificates"]
        return found
    return {"ready": False, "reason": ""}


def is_steady(controller: SandboxController) -> bool:
    """Whether nothing is due."""
    reason: str = said(controller)["reason"]
    return reason.startswith("steady: nothing is due")


def test_a_wiped_bundle_and_a_deleted_secret_are_noticed_at_once(
    site: Site, launch: Callable[..., SandboxController]
) -> None:
    """By a watch: nothing else would look for a minute."""
    controller = launch("keeper", "--no-leader-election")
    eventually("certificates are there", lambda: is_steady(controller))
    site.is_sound()
    bundle = site.published()
    looks = metric(controller.health_port, "fairlead_api_requests_total", verb="GET")
    site.wipe()
    eventually("the bundle is back", lambda: site.published() == bundle)
    site.delete(site.installation.serving)
    eventually("the leaf is back", lambda: site.serving() is not None)
    eventually("nothing is due", lambda: is_steady(controller))
    assert metric(controller.health_port, "fairlead_api_requests_total", verb="GET") > looks


def test_it_goes_on_where_a_killed_leader_was(
    site: Site, launch: Callable[..., SandboxController]
) -> None:
    """Only the leader keeps certificates; another follows, and takes over in the middle."""
    election = ("--lease-duration", "9", "--renew-deadline", "7", "--retry-period", "0.3")
    slow = (*election, "--certificate-settle", "600")
    first = launch("first", *slow)
    eventually("the first keeps them", lambda: is_steady(first))
    second = launch("second", *election)
    eventually("the second follows", lambda: said(second)["reason"] == "done by the leader")
    site.ask_to_rotate(site.installation.authority)
    eventually(
        "it waits for clients", lambda: "waiting until every client" in said(first)["reason"]
    )
    site.plane.stop_component(first.name)
    eventually("the second is through", lambda: is_steady(second))
    site.is_sound()


def test_without_rights_it_says_which_is_missing(
    site: Site, kubectl: Kubectl, launch: Callable[..., SandboxController]
) -> None:
    """One after the other, as it comes to need them; granted later, they are enough."""
    controller = launch("keeper", "--no-leader-election", alone=True)

    def lacks(verb: str, resource: str) -> None:
        def tells() -> bool:
            reason = said(controller)["reason"]
            return f"may not {verb} {resource}" in reason and "Roles" in reason

        eventually(f"it says that it may not {verb} {resource}", tells)
        assert not said(controller)["ready"]

    lacks("get", "mutatingwebhookconfigurations")
    configurations: Json = {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        "resourceNames": [site.place.name],
    }
    grant_everywhere(kubectl, ACCOUNT, f"see-{site.place.name}", {**configurations, "verbs": WATCH})
    lacks("list", "endpointslices")
    slices = {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"]}
    grant(kubectl, ACCOUNT, "slices", {**slices, "verbs": ["list"]})
    lacks("get", "secrets")
    secrets: Json = {"apiGroups": [""], "resources": ["secrets"]}
    named = {**secrets, "resourceNames": SECRETS}
    grant(kubectl, ACCOUNT, "secrets", {**named, "verbs": WATCH})
    lacks("create", "secrets")
    grant(kubectl, ACCOUNT, "makes", {**secrets, "verbs": ["create"]})
    lacks("patch", "mutatingwebhookconfigurations")
    publish = {**configurations, "verbs": ["patch"]}
    grant_everywhere(kubectl, ACCOUNT, f"publish-{site.place.name}", publish)
    lacks("update", "secrets")
    grant(kubectl, ACCOUNT, "writes", {**named, "verbs": ["update"]})
    eventually("certificates are there", lambda: is_steady(controller))
    site.is_sound()
    assert said(controller)["ready"]


def test_nothing_that_it_logs_is_a_key(
    site: Site, launch: Callable[..., SandboxController]
) -> None:
    """From the first start to the end of a rotation, with everything logged."""
    controller = launch("keeper", "--no-leader-election", "--log-level", "debug")
    eventually("certificates are there", lambda: is_steady(controller))
    keys = [pair.private_key for pair in pairs(site)]
    site.ask_to_rotate(site.installation.authority)
    eventually("it is on its way", lambda: not is_steady(controller))
    eventually("it is over", lambda: is_steady(controller))
    keys += [pair.private_key for pair in pairs(site)]
    assert len(set(keys)) == 4
    log = controller.process.log.read_text()
    written = "authority written: a new authority was requested"
    assert any(written in line for line in log.splitlines())
    for key in keys:
        for line in key.decode().splitlines()[1:-1]:
            assert line not in log
    assert "PRIVATE KEY" not in log


def pairs(site: Site) -> list[Any]:
    """The authority that signs, and the leaf."""
    authority, serving = site.authority(), site.serving()
    assert authority
    assert serving
    return [authority.signing, serving.leaf]
