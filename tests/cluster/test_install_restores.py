"""`fairlead install` over what others have changed since then, on a real API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.paths import path
from tests.cluster.sites import NAMESPACE, Site, build
from tests.control_planes import StartControlPlane
from tests.wording import line_with, mentions
from webhook import names
from webhook.errors import InstallationError
from webhook.installation.apply import Patience
from webhook.installation.choices import Choices, adapted
from webhook.installation.install import Installer
from webhook.installation.manifests import CONTROLLER, every_key
from webhook.installation.stored_options import read_last_time
from webhook.kube.client import connect
from webhook.progress import Progress
from webhook.sandbox.control_plane import Settings
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools

Json = dict[str, Any]
CONFIGURATIONS = "mutatingwebhookconfigurations"
LEGACY = {"key": names.NAMESPACE_NAME, "operator": "NotIn", "values": ["legacy"]}


@pytest.fixture(scope="module")
def site(start_module_plane: StartControlPlane, kubectl_path: Path) -> Site:
    """A cluster for this module's tests, with a webhook that nobody has registered."""
    plane = start_module_plane(Settings(pools=read_pools(SHIPPED_NODES)))
    return build(plane, Kubectl(kubectl_path, plane.kubeconfig))


@pytest.fixture
def installed(site: Site) -> Site:
    """The cluster with Fairlead as it is by default, whatever was there before."""
    site.install()
    return site


def stored(site: Site) -> dict[str, Json]:
    """The objects of the installation, without what changes with each write or by programs."""
    found = {}
    for key in sorted(every_key()):
        status, each = site.plane.api.call("GET", key.path)
        if status == HTTPStatus.OK:
            own = ("labels", "annotations")
            metadata = {field: each["metadata"].get(field) for field in own}
            if metadata["annotations"]:
                metadata["annotations"].pop("deployment.kubernetes.io/revision", None)
            fields = {name: each[name] for name in each if name not in ("metadata", "status")}
            found[str(key)] = {**fields, "metadata": metadata}
    return found


def change(site: Site, resource: str, name: str, *operations: Json) -> None:
    """Change an object of the installation by a JSON Patch, as another client."""
    (key,) = (key for key in every_key() if (key.kind.resource, key.name) == (resource, name))
    status, answer = site.plane.api.call(
        "PATCH", key.path, operations, content_type="application/json-patch+json"
    )
    assert status == HTTPStatus.OK, answer


def add(where: str, value: object, op: str = "add") -> Json:
    return {"op": op, "path": where, "value": value}


# By what was changed: resource, name, operations, and words of the line that names it.
CHANGES: Sequence[tuple[str, str, list[Json], tuple[str, ...]]] = (
    (
        CONFIGURATIONS,
        "fairlead",
        [add("/webhooks/0/matchConditions", [{"name": "none", "expression": "false"}])],
        ("loses webhooks[pods-0.fairlead.dev].matchConditions",),
    ),
    (
        CONFIGURATIONS,
        "fairlead",
        [
            add(
                "/webhooks/1/clientConfig",
                {"service": {"namespace": NAMESPACE, "name": names.WEBHOOK}},
                "replace",
            )
        ],
        ("loses webhooks[namespaces.fairlead.dev].clientConfig.service",),
    ),
    (
        "validatingwebhookconfigurations",
        "fairlead",
        [add("/webhooks/0/objectSelector", {"matchLabels": {"a": "b"}}, "replace")],
        ("objectSelector.matchLabels",),
    ),
    (
        "validatingadmissionpolicybindings",
        names.RUN_AUTHORS_GUARD,
        [
            add(
                "/spec/matchResources",
                {"namespaceSelector": {"matchExpressions": [LEGACY]}},
            )
        ],
        ("loses spec.matchResources",),
    ),
    (
        "services",
        names.WEBHOOK,
        [add("/spec/ports/0/port", 444, "replace")],
        ("spec.ports[port=444,protocol=TCP]",),
    ),
    (
        "networkpolicies",
        names.CONTROLLER,
        [add("/spec/egress/1/ports/-", {"port": 16443, "protocol": "TCP"})],
        ("16443", "spec.egress[1].ports"),
    ),
    (
        "clusterroles",
        names.CONTROLLER,
        [{"op": "remove", "path": "/rules/0"}],
        ("rules has", "again"),
    ),
    (
        "poddisruptionbudgets",
        names.WEBHOOK,
        [add("/spec/maxUnavailable", 3, "replace")],
        ("spec.maxUnavailable changes from 3 to 1",),
    ),
    (
        "deployments",
        names.WEBHOOK,
        [{"op": "remove", "path": "/spec/template/spec/affinity"}],
        ("spec.template.spec.affinity is set again",),
    ),
    (
        "deployments",
        names.WEBHOOK,
        [add("/spec/template/spec/containers/0/resources/limits/memory", "2Gi", "replace")],
        ("containers[webhook].resources.limits.memory changes from 2Gi to 512Mi",),
    ),
    (
        "namespaces",
        NAMESPACE,
        [add("/metadata/labels/pod-security.kubernetes.io~1enforce", "privileged", "replace")],
        ("metadata.labels[pod-security.kubernetes.io/enforce] changes from privileged",),
    ),
    (
        "deployments",
        names.CONTROLLER,
        [
            add("/metadata/annotations/intercepts.fairlead.dev~1nonsense", "mutating"),
            add("/metadata/annotations/fairlead.dev~1intercepted-namespaces", "research"),
        ],
        ("loses metadata.annotations[intercepts.fairlead.dev/nonsense]",),
    ),
)


def test_what_others_changed_is_listed_asked_for_and_restored(installed: Site) -> None:
    """Each kind of change: without an answer nothing is written, and then all is as rendered."""
    site = installed
    before = stored(site)
    for resource, name, operations, _ in CHANGES:
        change(site, resource, name, *operations)
    changed = stored(site)
    assert changed != before
    shown = site.run("install", "--dry-run")
    with pytest.raises(InstallationError, match="nothing has been changed"):
        site.run("install")
    assert stored(site) == changed
    for _, _, _, words in CHANGES:
        line_with(shown.stderr, *words)
    done = site.run("install", "--yes")
    assert done.exit_code == 0, done.output
    for _, _, _, words in CHANGES:
        line_with(done.stderr, *words)
    assert stored(site) == before
    # And nothing is left to be asked for.
    again = site.run("install")
    assert again.exit_code == 0
    assert "takes away" not in again.stderr


def test_what_others_may_add_stays(installed: Site) -> None:
    """Labels, entries and replicas' places of others are no part of the installation."""
    site = installed
    site.kubectl("-n", NAMESPACE, "label", "service", names.WEBHOOK, "team=platform")
    own = {**site.configuration()["webhooks"][0], "name": "audit.example.invalid", "rules": []}
    change(site, CONFIGURATIONS, "fairlead", add("/webhooks/-", own))
    change(
        site,
        "deployments",
        names.WEBHOOK,
        add("/spec/template/spec/priorityClassName", "system-node-critical", "replace"),
        add("/spec/template/metadata/annotations", {"kubectl.kubernetes.io/restartedAt": "now"}),
    )
    before = stored(site)
    done = site.run("install", "--yes")
    assert done.exit_code == 0
    after = stored(site)
    service = f"Service {NAMESPACE}/{names.WEBHOOK}"
    assert after[service] == before[service]
    assert site.configuration()["webhooks"][-1]["name"] == "audit.example.invalid"
    template = after[f"Deployment {NAMESPACE}/{names.WEBHOOK}"]["spec"]["template"]
    assert template["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] == "now"
    site.plane.api.delete(path(CONFIGURATIONS, "fairlead"))


def test_what_an_admin_leaves_out_on_purpose_is_kept(installed: Site) -> None:
    """An exclusion by name, and the trial in one namespace, also for a source that is added."""
    site = installed
    site.plane.create_namespace("research", {})
    change(
        site,
        CONFIGURATIONS,
        "fairlead",
        add("/webhooks/0/namespaceSelector/matchExpressions/-", LEGACY),
    )
    before = site.configuration()["webhooks"]
    done = site.run("install")
    assert done.exit_code == 0, done.output
    line_with(done.stderr, "kept", "pods-0.fairlead.dev", "legacy")
    assert site.configuration()["webhooks"] == before
    trial = {"matchLabels": {names.NAMESPACE_NAME: "research"}}
    for at in range(2):
        change(
            site,
            CONFIGURATIONS,
            "fairlead",
            add(f"/webhooks/{at}/namespaceSelector", trial, "replace"),
        )
    site.kubectl(
        *("-n", NAMESPACE, "annotate", "deployment", names.CONTROLLER),
        f"{names.INTERCEPTED_NAMESPACES}=research",
    )
    before = site.configuration()["webhooks"]
    done = site.run("install")
    assert done.exit_code == 0, done.output
    line_with(done.stderr, "kept", "only pods of some namespaces", "research")
    assert site.configuration()["webhooks"] == before
    assert site.run("install", "--source", "mlrun").exit_code == 0
    added = site.configuration()["webhooks"][-1]
    only = {"key": names.NAMESPACE_NAME, "operator": "In", "values": ["research"]}
    assert added["name"] == "mlrun-0.fairlead.dev"
    assert only in added["namespaceSelector"]["matchExpressions"]
    # Without what was recorded, it is the whole cluster again.
    with pytest.raises(InstallationError, match="nothing has been changed"):
        site.run("install", *site.at_its_address, "--reset")
    site.install()
    metadata = site.plane.api.get(CONTROLLER.path)["metadata"]
    assert names.INTERCEPTED_NAMESPACES not in metadata["annotations"]


def test_an_emergency_of_another_admin_is_not_ended_unasked(installed: Site) -> None:
    """The rules come back only with an answer."""
    site = installed
    assert site.run("webhook", "disable", "--for", "10m").exit_code == 0
    line_with(site.run("install", "--dry-run").stderr, "it is disabled until", "is enabled")
    with pytest.raises(InstallationError, match="nothing has been changed"):
        site.run("install")
    assert not any(each.get("rules") for each in site.configuration()["webhooks"])
    assert site.run("install", "--yes").exit_code == 0
    assert all(each["rules"] for each in site.configuration()["webhooks"])


def test_what_another_admin_installs_before_the_answer_is_not_taken_away(installed: Site) -> None:
    """Nor what is installed between the options that were read and the objects."""
    site = installed
    change(site, "deployments", names.WEBHOOK, add("/spec/replicas", 5, "replace"))
    options = Choices(url=site.at_its_address[1], authority=site.authority.read_bytes())

    async def run(agree: Any, *, first: Any = lambda: None) -> None:
        async with connect(site.plane.kubeconfig) as client:
            before = await read_last_time(client, reset=False)
            await asyncio.to_thread(first)
            installer = Installer(client, Patience(60), Progress(), agree)
            await installer.install(adapted(options), before=before)

    def other() -> None:
        done = site.run("install", "--source", "mlrun", "--yes")
        assert done.exit_code == 0, done.output

    def agree(_: Sequence[str]) -> None:
        change(
            site, "poddisruptionbudgets", names.WEBHOOK, add("/spec/maxUnavailable", 2, "replace")
        )

    with pytest.raises(InstallationError, match=r"PodDisruptionBudget .*has been changed by"):
        asyncio.run(run(agree))
    assert (
        site.plane.api.get(path("deployments", names.WEBHOOK, namespace=NAMESPACE))["spec"][
            "replicas"
        ]
        == 5
    )
    with pytest.raises(InstallationError, match="another installation has changed the options"):
        asyncio.run(run(lambda _: None, first=other))
    assert "mlrun-0.fairlead.dev" in json.dumps(site.configuration())


def test_a_namespace_that_admits_no_pod_does_not_stop_the_installation(installed: Site) -> None:
    """It is said that nothing was tried, and elsewhere it is tried."""
    site = installed
    site.plane.create_namespace("open", {})
    site.kubectl("-n", "default", "create", "quota", "none", "--hard=pods=0")
    site.plane.api.delete(path("validatingwebhookconfigurations", "fairlead"))
    try:
        done = site.run("install", "--yes", "--timeout", "60s")
        assert done.exit_code == 0, done.output
        mentions(done.output, "could not be tried in default", "exceeded quota")
        assert "comes back placed" not in done.stdout
        assert site.configuration("validatingwebhookconfiguration")["webhooks"]
        assert site.run("doctor", "--check", "end to end").exit_code == 2
        elsewhere = site.run("install", "--namespace", "open")
        assert elsewhere.exit_code == 0
        mentions(elsewhere.stdout, "comes back placed")
    finally:
        site.kubectl("-n", "default", "delete", "quota", "none")
