"""`fairlead controller --certificates` as a process, with the rights that it needs and without."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

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

    def begin(name: str = "keeper", *options: str, account: bool = False) -> SandboxController:
        kubeconfig = tmp_path / "account.kubeconfig" if account else None
        if kubeconfig:
            kubectl("create", "serviceaccount", ACCOUNT)
            config = kubectl.json("config", "view", "--raw", "--minify")
            token = kubectl("create", "token", ACCOUNT).strip()
            config["users"][0]["user"] = {"token": token}
            kubeconfig.write_text(json.dumps(config))
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
    controller = launch("keeper", "--no-leader-election", account=True)

    def lacks(verb: str, resource: str) -> None:
        def tells() -> bool:
            reason = said(controller)["reason"]
            return f'cannot {verb} resource "{resource}"' in reason and "Roles" in reason

        eventually(f"it says that it may not {verb} {resource}", tells)
        assert not said(controller)["ready"]

    lacks("get", "mutatingwebhookconfigurations")
    configurations: Json = {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        "resourceNames": [site.place.name],
    }
    grant_cluster(site, {**configurations, "verbs": ["get", "list", "watch"]}, "see")
    lacks("list", "endpointslices")
    slices = {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"]}
    grant(kubectl, "slices", {**slices, "verbs": ["list"]})
    lacks("get", "secrets")
    secrets: Json = {"apiGroups": [""], "resources": ["secrets"]}
    named = {**secrets, "resourceNames": SECRETS}
    grant(kubectl, "secrets", {**named, "verbs": ["get", "list", "watch"]})
    lacks("create", "secrets")
    grant(kubectl, "makes", {**secrets, "verbs": ["create"]})
    lacks("patch", "mutatingwebhookconfigurations")
    grant_cluster(site, {**configurations, "verbs": ["patch"]}, "publish")
    lacks("update", "secrets")
    grant(kubectl, "writes", {**named, "verbs": ["update"]})
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


def grant(kubectl: Kubectl, name: str, rule: Json) -> None:
    """Give the account this right in the namespace."""
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    kubectl.create({**kind, "metadata": {"name": name}, "rules": [rule]})
    account = f"{kubectl.namespace}:{ACCOUNT}"
    kubectl("create", "rolebinding", name, f"--role={name}", f"--serviceaccount={account}")


def grant_cluster(site: Site, rule: Json, name: str) -> None:
    """Give it a right to what has no namespace; its name is the test's own."""
    path = "/apis/rbac.authorization.k8s.io/v1"
    full = f"{name}-{site.installation.namespace}"
    site.plane.api.create(f"{path}/clusterroles", {"metadata": {"name": full}, "rules": [rule]})
    account = {
        "kind": "ServiceAccount",
        "name": ACCOUNT,
        "namespace": site.installation.namespace,
    }
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": full}
    site.plane.api.create(
        f"{path}/clusterrolebindings",
        {"metadata": {"name": full}, "roleRef": role, "subjects": [account]},
    )
