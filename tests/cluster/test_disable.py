"""`fairlead webhook disable` and `enable`, with a real API server and the controller."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.manifests import pod
from tests.cluster.paths import path
from tests.cluster.sites import NAMESPACE, Site, build
from tests.cluster.spaces import is_stamped, metric
from tests.control_planes import StartControlPlane
from tests.eventually import eventually
from tests.wording import mentions
from webhook.errors import InstallationError
from webhook.installation.choices import Choices, adapted
from webhook.sandbox.api import definitions
from webhook.sandbox.control_plane import Settings
from webhook.sandbox.fairlead import start_controller
from webhook.sandbox.kubectl import Kubectl

Json = dict[str, Any]
DRY_RUN = f"{path('pods', namespace='default')}?dryRun=All"
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager")


@pytest.fixture(scope="module")
def site(start_module_plane: StartControlPlane, kubectl_path: Path) -> Site:
    """A cluster without nodes, with a webhook and a controller that leads."""
    settings = Settings(components=COMPONENTS, definitions=definitions())
    plane = start_module_plane(settings)
    plane.create_namespace(NAMESPACE)
    site = build(plane, Kubectl(kubectl_path, plane.kubeconfig))
    lease = ("--lease-namespace", NAMESPACE)
    begun = start_controller(plane, options=(*lease, "--webhook-configuration", "fairlead"))
    # It is ready before it leads.
    eventually("the controller leads", lambda: metric(begun.health_port, "fairlead_leader") == 1)
    return site


@pytest.fixture
def enabled(site: Site) -> Site:
    """With the webhook configuration of the default overlay, applied as by `kubectl apply -k`."""
    site.plane.api.delete(path("mutatingwebhookconfigurations", "fairlead"))
    apply(site, "default")
    eventually("pods are placed", lambda: placed(site))
    return site


def apply(site: Site, overlay: str) -> None:
    """Apply the objects of an overlay that have to do with admission of pods."""
    url = f"https://127.0.0.1:{site.port}/mutate"
    choices = Choices((overlay,), url=url, authority=site.authority.read_bytes())
    objects = adapted(choices).values()
    wanted = [each for each in objects if each["apiVersion"].startswith("admissionregistration")]
    # Unvalidated: kubectl would read the schema of every kind first.
    site.kubectl("apply", "--validate=false", "-f", "-", stdin=yaml.safe_dump_all(wanted))


def placed(site: Site) -> bool:
    """Whether a pod of a run is, by dry run."""
    return is_stamped(site.plane.api.create(DRY_RUN, pod("probe")))


def said(site: Site) -> Json:
    """Those of ours on the configuration."""
    found = site.configuration()["metadata"].get("annotations", {})
    return {key: value for key, value in found.items() if key.startswith("fairlead.dev/disabled")}


def disabled(site: Site, span: str) -> Json:
    """`fairlead webhook disable`, as a program reads it."""
    done = site.run("webhook", "disable", "--for", span, "-o", "json")
    assert done.exit_code == 0, done.output
    found: Json = json.loads(done.stdout)
    return found


def test_pods_are_sent_no_more_and_then_again(enabled: Site) -> None:
    """Whatever else the configuration has stays; who puts the rules back is told."""
    before = enabled.configuration()["webhooks"]
    told = disabled(enabled, "15m")
    assert told["leader"]
    served = datetime.fromisoformat(told["serverTime"])
    assert abs(datetime.now(UTC) - served) < timedelta(minutes=5)
    eventually("pods are placed no more", lambda: not placed(enabled))
    silent = [{key: each[key] for key in each if key != "rules"} for each in before]
    after = enabled.configuration()["webhooks"]
    assert [{key: each[key] for key in each if key != "rules"} for each in after] == silent
    assert json.loads(enabled.run("webhook", "enable", "-o", "json").stdout)["wasDisabled"]
    assert enabled.configuration()["webhooks"] == before
    assert said(enabled) == {}
    eventually("pods are placed", lambda: placed(enabled))
    (line,) = enabled.run("webhook", "enable").stdout.splitlines()
    mentions(line, "enabled already", "nothing to do")


def test_the_controller_puts_the_rules_back_when_the_time_is_over(enabled: Site) -> None:
    """A second disabling moves the end, and keeps the rules that were saved first."""
    before = enabled.configuration()["webhooks"]
    disabled(enabled, "15m")
    assert disabled(enabled, "1s")["disabledUntilBefore"]
    eventually("nothing is disabled", lambda: said(enabled) == {})
    assert enabled.configuration()["webhooks"] == before
    eventually("pods are placed", lambda: placed(enabled))


def test_the_guard_stands_back_meanwhile(enabled: Site) -> None:
    """Who disables the webhook wants pods to be created, unplaced, whatever guards against that."""
    apply(enabled, "fail-open-guarded-deny")

    def created() -> tuple[int, Json]:
        status, answer = enabled.plane.api.call("POST", DRY_RUN, pod("probe"))
        return status, answer

    silent = {"op": "replace", "path": "/webhooks/0/rules", "value": []}
    enabled.change("mutatingwebhookconfigurations", "fairlead", silent)
    # The guard is in force: nothing is sent to the webhook, and nobody has said until when.
    eventually(
        "the guard is in force",
        lambda: "fairlead-stamp" in created()[1].get("message", ""),
    )
    disabled(enabled, "15m")
    eventually("the guard is off", lambda: created()[0] == HTTPStatus.CREATED)
    enabled.run("webhook", "enable")
    eventually("pods are placed", lambda: placed(enabled))
    enabled.kubectl("delete", "validatingadmissionpolicybinding", "--all")


def test_without_a_configuration_there_is_nothing_to_disable(site: Site) -> None:
    """It is said, and where to look."""
    site.plane.api.delete(path("mutatingwebhookconfigurations", "fairlead"))
    for command in (("webhook", "disable", "--for", "15m"), ("webhook", "enable")):
        with pytest.raises(InstallationError, match="no pod is sent"):
            site.run(*command)
