"""`install` and the keeper of certificates, each with its own fields of one configuration."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.sites import NAMESPACE, Site
from tests.control_planes import StartControlPlane
from webhook import names, validating
from webhook.installation.apply import Patience
from webhook.installation.choices import Choices, adapted
from webhook.installation.manifests import INTERCEPTION, JUDGING
from webhook.installation.object_kinds import CONFIGURATION, VALIDATING
from webhook.installation.webhook_configuration import intercept
from webhook.kube.client import connect
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.api import install_definitions
from webhook.sandbox.control_plane import Settings
from webhook.sandbox.fairlead import start_controller
from webhook.sandbox.kubectl import Kubectl

Json = dict[str, Any]
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager")


@pytest.fixture(scope="module")
def site(start_module_plane: StartControlPlane, kubectl_path: Path) -> Site:
    """A cluster with a controller that keeps certificates, and no webhook: nobody is ever called.

    (There is not even a Service that the API server could call.)
    """
    plane = start_module_plane(Settings(components=COMPONENTS))
    plane.create_namespace(NAMESPACE)
    install_definitions(plane.api, [custom_resource_definition()])
    settle = ("--certificates", "--certificate-settle", "0.5")
    start_controller(plane, options=("--lease-namespace", NAMESPACE, *settle))
    return Site(plane, Kubectl(kubectl_path, plane.kubeconfig), 0, 0)


def have(site: Site, *sources: str, kind: str = CONFIGURATION) -> list[Json]:
    """Bring the configuration for these sources in, and give its entries."""
    key = INTERCEPTION if kind == CONFIGURATION else JUDGING
    found = key, adapted(Choices(sources=sources))[key]

    async def run() -> None:
        async with connect(site.plane.kubeconfig) as client:
            await intercept(client, *found, Patience(120, period=0.1))

    asyncio.run(run())
    entries: list[Json] = site.configuration(kind)["webhooks"]
    return entries


def test_entries_are_added_and_removed_while_the_keeper_runs(site: Site) -> None:
    """Whoever installs says which there are, the keeper whom to trust; neither undoes the other."""
    for sources in ((), ("mlrun", "spark"), ("mlrun",), ("katib",), ()):
        entries = have(site, *sources)
        assert all(entry["rules"] for entry in entries)
        bundles = {entry["clientConfig"]["caBundle"] for entry in entries}
        assert len(bundles) == 1
        assert b"BEGIN CERTIFICATE" in base64.b64decode(bundles.pop())
        found = {entry["name"].partition(".")[0].rpartition("-")[0] for entry in entries}
        assert found - {"pods", ""} == set(sources)


def test_what_judges_policies_waits_for_the_keeper_as_well(site: Site) -> None:
    """Until it is believed it has no rules: no policy is refused on the way."""
    entries = have(site, kind=VALIDATING)
    assert [each["name"] for each in entries] == [validating.POLICIES, validating.WORKLOADS]
    assert all(each["rules"] for each in entries)
    assert all(each["clientConfig"]["caBundle"] for each in entries)
    site.kubectl("delete", VALIDATING, "fairlead")


def test_the_doctor_finds_nothing_wrong_with_certificates(site: Site) -> None:
    """Made by the controller, published by it; what is missing here is all the rest."""
    have(site)
    # The controller publishes its authority first, and then writes the certificate.
    secret = f"secret/{names.SERVING_SECRET}"
    site.kubectl("-n", NAMESPACE, "wait", "--for=create", secret, "--timeout=120s")
    document = json.loads(site.run("doctor", "-o", "json").stdout)
    assert {"certificates", "trust", "leader", "selectors"} <= set(document["ok"]), document
    said = [each["message"] for each in document["findings"] if each["check"] == "end to end"]
    assert len(said) == 1
    assert 'service "fairlead-webhook" not found' in said[0]
