"""Pods are no longer sent to the webhook: gauge, condition, Event and doctor say so.

On a real API server, with a real controller that leads and a webhook that answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs.authority import new_authority
from tests.cluster.cures import commands_of
from tests.cluster.manifests import pod
from tests.cluster.paths import path
from tests.cluster.sites import NAMESPACE, Site, build
from tests.cluster.spaces import is_stamped, metric
from tests.control_planes import StartControlPlane
from tests.eventually import eventually
from tests.installation.doctor.cluster_states import bundle
from tests.manifests.kustomize import overlay
from tests.manifests.monitoring import alerts
from tests.objects import an_object
from tests.server.serving import get
from tests.wording import mentions
from webhook import metric_names, names
from webhook.installation.choices import Choices, adapted
from webhook.sandbox.api import definitions
from webhook.sandbox.control_plane import Settings
from webhook.sandbox.fairlead import SandboxController, start_controller
from webhook.sandbox.kubectl import Kubectl

Json = dict[str, Any]
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager")
GUARD_BINDINGS = "app.kubernetes.io/component=guard-stamp"
ALERTS = alerts(overlay("monitoring"))
FIRST, WHOLE = "pods-0.fairlead.dev", "namespaces.fairlead.dev"
FOR_DEFAULT = an_object(
    names.API_VERSION,
    names.POLICY_KIND,
    "for-default",
    {"match": {"namespaces": ["default"]}, "defaults": {"nodeSelector": {"zone": "a"}}},
)
MUTATING, VALIDATING = "mutatingwebhookconfigurations", "validatingwebhookconfigurations"
GUARDS = "validatingadmissionpolicies"


class Watched(Site):
    """A cluster whose controller looks at what intercepts."""

    controller: SandboxController

    def apply_all(self) -> None:
        """Apply what `kubectl apply -k` applies of this: configurations, guards, the record."""
        url = f"https://127.0.0.1:{self.port}/mutate"
        choices = Choices(
            ("default",),
            ("guard-stamp-deny", "guard-tolerations", "guard-node-names", "doctor"),
            sources=("mlrun",),
            url=url,
            authority=self.authority.read_bytes(),
        )
        wanted = [
            each
            for each in adapted(choices).values()
            if each["apiVersion"].startswith("admissionregistration")
            or (each["kind"], each["metadata"]["name"]) == ("Deployment", names.CONTROLLER)
        ]
        text = yaml.safe_dump_all(wanted)
        self.kubectl("apply", "--validate=false", "-f", "-", stdin=text)

    def gauge(self) -> dict[str, str]:
        """The reason for each entry that is not in force; empty text for one that is."""
        text = get(self.controller.health_port, "/metrics")[1].decode()
        found = {}
        for labels, value in re.findall(
            rf"^{metric_names.INTERCEPTING}{{(.*)}} (\S+)", text, re.MULTILINE
        ):
            named = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            assert (value == "1.0") is (named["reason"] == "")
            found[named["entry"]] = named["reason"]
        return found

    def wrong(self) -> dict[str, str]:
        """Of the gauge, what is not in force."""
        return {entry: reason for entry, reason in self.gauge().items() if reason}

    def in_force(self, name: str = "pool") -> tuple[str, str]:
        """Status and message of a policy's condition InForce."""
        stored = self.plane.api.get(path(names.PLACEMENT_POLICIES, name))
        for each in stored.get("status", {}).get("conditions", ()):
            if each["type"] == "InForce":
                return each["status"], each["message"]
        return "", ""

    def told(self, reason: str) -> str:
        """The message of the newest Event about the controller's Deployment, of this reason."""
        found = self.plane.api.get(path("events", namespace=NAMESPACE))["items"]
        own = [
            each
            for each in found
            if each["reason"] == reason and each["involvedObject"]["kind"] == "Deployment"
        ]
        own.sort(key=lambda each: int(each["metadata"]["resourceVersion"]))
        return str(own[-1]["message"]) if own else ""

    def doctor(self, *checks: str) -> tuple[int, str]:
        """Exit code and text of some checks."""
        done = self.run("doctor", *(word for each in checks for word in ("--check", each)))
        return done.exit_code, done.stdout

    def until_wrong(self, **wanted: str) -> None:
        """Wait until exactly these are not in force, as the gauge has it."""
        reasons = {
            name.replace("_", "-") + ".fairlead.dev": reason for name, reason in wanted.items()
        }
        eventually("the gauge says so", lambda: self.wrong() == reasons, explain=self.gauge)

    def until_condition(self, status: str, *words: str) -> None:
        """Wait for the condition, and compare its message."""
        eventually("the condition follows", lambda: self.in_force()[0] == status)
        mentions(self.in_force()[1], *words)

    def until_told(self, reason: str, *words: str) -> None:
        """Wait for the Event."""
        eventually("an Event has it", lambda: all(each in self.told(reason) for each in words))


@pytest.fixture(scope="module")
def site(start_module_plane: StartControlPlane, kubectl_path: Path) -> Watched:
    """A cluster without nodes, with a webhook and a controller that leads."""
    plane = start_module_plane(Settings(components=COMPONENTS, definitions=definitions()))
    plane.create_namespace(NAMESPACE)
    made = build(plane, Kubectl(kubectl_path, plane.kubeconfig))
    site = Watched(made.plane, made.kubectl, made.port, made.health_port)
    site.apply_all()
    site.bring_policy()
    options = ("--lease-namespace", NAMESPACE, "--webhook-configuration", "fairlead")
    object.__setattr__(site, "controller", start_controller(plane, options=options))
    return site


@pytest.fixture
def well(site: Watched) -> Iterator[Watched]:
    """The same, all in force at first; after the test, all of it is again, and says so."""
    eventually("all is in force", lambda: site.gauge() and not site.wrong(), explain=site.gauge)
    site.until_condition("True")
    yield site
    site.plane.api.delete(path(MUTATING, "fairlead"))
    site.apply_all()
    site.until_wrong()
    site.until_condition("True")
    eventually("pods are placed", lambda: is_stamped(site.dry_run(run="r")))
    assert site.doctor("interception", "guards", "judgement")[0] == 0
    site.plane.api.delete(f"{path('pods', namespace='default')}?gracePeriodSeconds=0")


def test_all_that_was_installed_is_listed(well: Watched) -> None:
    """Entries for pods, those that validate, and guards."""
    assert set(well.gauge()) == {
        *(FIRST, WHOLE, "mlrun-0.fairlead.dev", "policies.fairlead.dev", "workloads.fairlead.dev"),
        *(names.RUN_AUTHORS_GUARD, names.STAMP_GUARD, names.TOLERATIONS_GUARD),
        *(names.NODE_NAMES_GUARD, names.DOCTOR),
    }


def test_a_configuration_that_is_gone_is_missed(well: Watched) -> None:
    """The step of the guide for emergencies. The pods of the gap are found after it is over."""
    site = well
    site.kubectl("delete", "validatingadmissionpolicybinding", "-l", GUARD_BINDINGS)
    site.kubectl("delete", "mutatingwebhookconfiguration", "fairlead")
    eventually("it is missed", lambda: site.wrong().get(FIRST) == "Absent", explain=site.gauge)
    assert site.wrong() == {
        FIRST: "Absent",
        WHOLE: "Absent",
        "mlrun-0.fairlead.dev": "Absent",
        names.STAMP_GUARD: "NotBound",
    }
    site.until_condition("False", FIRST, "fairlead does not exist")
    site.until_told("NotIntercepting", FIRST, "fairlead does not exist")
    site.create_pod("slipped", run="r")
    site.create_pod("of-no-run")
    code, text = site.doctor("interception", "unplaced pods")
    assert code == 1
    mentions(
        text, "there is no webhook configuration", "in default 1 pod of a run has no stamp: slipped"
    )
    site.apply_all()
    site.until_wrong()
    site.until_told("Intercepting", FIRST, names.STAMP_GUARD)
    eventually(
        "the pod of the gap is counted",
        lambda: metric(site.controller.health_port, metric_names.UNPLACED_PODS) == 1,
    )
    code, text = site.doctor("unplaced pods")
    assert code == 1
    mentions(text, "in default 1 pod of a run has no stamp: slipped", "gone")
    # Made again, as in an outage: the installation is older, and the pod is no older for it.
    site.plane.api.delete(path("deployments", names.CONTROLLER, namespace=NAMESPACE))
    site.plane.api.delete(path(MUTATING, "fairlead"))
    eventually("nothing is recorded", lambda: names.STAMP_GUARD not in site.gauge())
    site.apply_all()
    site.until_wrong()
    unplaced = partial(metric, site.controller.health_port, metric_names.UNPLACED_PODS)
    eventually("it is counted again", lambda: names.STAMP_GUARD in site.gauge() and unplaced() == 1)
    assert site.doctor("unplaced pods")[0] == 1


def test_the_guard_that_denies_does_so_without_a_configuration(well: Watched) -> None:
    """Nobody has disabled the webhook, so no pod of a run is created unplaced."""
    site = well
    site.kubectl("delete", "mutatingwebhookconfiguration", "fairlead")
    where = f"{path('pods', namespace='default')}?dryRun=All"

    def message(labels: Json) -> str:
        return str(
            site.plane.api.call("POST", where, pod("probe", labels=labels))[1].get("message", "")
        )

    eventually("it denies", lambda: names.STAMP_GUARD in message({names.RUN: "r"}))
    assert message({}) == ""


def test_a_narrowed_entry_says_by_what(well: Watched) -> None:
    """By an expression, by conditions, by the names of namespaces; not what AKS adds everywhere."""
    site = well
    at = "/webhooks/0/namespaceSelector/matchExpressions/-"
    team = {"key": "team", "operator": "In", "values": ["a"]}
    site.change(MUTATING, "fairlead", {"op": "add", "path": at, "value": team})
    site.until_wrong(pods_0="Narrowed")
    site.until_condition("False", FIRST, "team In a")
    site.until_told("NotIntercepting", FIRST, "team In a")
    code, text = site.doctor("interception")
    assert code == 1
    mentions(text, FIRST, "namespaceSelector has team In a")
    site.apply_all()
    site.until_wrong()
    aks = [
        {"key": "control-plane", "operator": "NotIn", "values": ["true"]},
        {"key": "kubernetes.azure.com/managedby", "operator": "NotIn", "values": ["aks"]},
    ]
    site.change(MUTATING, "fairlead", *({"op": "add", "path": at, "value": each} for each in aks))
    eventually("it is a note", lambda: "AKS" in site.in_force()[1])
    assert site.in_force()[0] == "True"
    assert site.wrong() == {}
    code, text = site.doctor("interception")
    assert code == 0
    mentions(text, "kubernetes.azure.com/managedby", "AKS' admissions enforcer")


def test_pods_of_a_namespace_that_is_left_out_by_name_are_not_missed(well: Watched) -> None:
    """An admin means it: neither doctor nor the metric counts them.

    A policy for no other namespace is not in force; the others are.
    """
    site = well
    assert site.apply(FOR_DEFAULT) == ""
    site.kubectl("delete", "validatingadmissionpolicybinding", "-l", GUARD_BINDINGS)
    left_out = {"key": names.NAMESPACE_NAME, "operator": "NotIn", "values": ["default"]}
    for at in range(3):
        where = f"/webhooks/{at}/namespaceSelector/matchExpressions/-"
        site.change(MUTATING, "fairlead", {"op": "add", "path": where, "value": left_out})
    eventually("it is a note", lambda: "NotIn default" in site.in_force()[1])
    assert site.in_force()[0] == "True"
    eventually("its pods are not sent", lambda: site.in_force("for-default")[0] == "False")
    mentions(site.in_force("for-default")[1], "no entry", "NotIn default")
    site.create_pod("left-out", run="r")
    code, text = site.doctor("unplaced pods")
    assert code == 0, text
    assert metric(site.controller.health_port, metric_names.UNPLACED_PODS) == 0
    site.plane.api.delete(path(names.PLACEMENT_POLICIES, "for-default"))


def test_one_namespace_for_a_trial_is_recorded_or_else_missed(well: Watched) -> None:
    """The record has which namespaces are meant."""
    site = well
    here = {"matchLabels": {names.NAMESPACE_NAME: "research"}}
    for at in range(3):
        change = {"op": "replace", "path": f"/webhooks/{at}/namespaceSelector", "value": here}
        site.change(MUTATING, "fairlead", change)
    reason = "Narrowed"
    site.until_wrong(pods_0=reason, namespaces=reason, mlrun_0=reason)
    assert site.doctor("interception")[0] == 1
    cures = [each["cure"] for each in site.findings("--check", "interception")]
    (cure,) = {command for each in cures for command in commands_of(each)}
    words = cure.split()[1:]
    site.kubectl(*words)
    site.until_wrong()
    assert site.doctor("interception")[0] == 0
    site.kubectl(*[each.replace("=research", "-") for each in words])


def test_a_disabled_webhook_says_until_when(well: Watched) -> None:
    """And is in force again by itself."""
    site = well
    until = json.loads(site.run("webhook", "disable", "--for", "15m", "-o", "json").stdout)[
        "disabledUntil"
    ]
    site.until_wrong(pods_0="Disabled", namespaces="Disabled", mlrun_0="Disabled")
    day = datetime.fromisoformat(until).astimezone(UTC).isoformat(timespec="minutes")[:16]
    site.until_condition("False", f"disabled until {day}")
    site.until_told("NotIntercepting", f"disabled until {day}")
    site.create_pod("meanwhile", run="r")
    assert site.doctor("unplaced pods")[0] == 1
    mentions(site.doctor("interception")[1], "the webhook is disabled until")
    site.run("webhook", "disable", "--for", "1s")
    site.until_wrong()
    site.until_told("Intercepting", FIRST)


def test_an_authority_that_is_not_the_webhooks_is_not_trusted(well: Watched) -> None:
    """The controller compares it with the certificate that the webhook presents."""
    site = well
    other = bundle(new_authority("other", datetime.now(UTC)).certificate)
    where = "/webhooks/0/clientConfig/caBundle"
    site.change(MUTATING, "fairlead", {"op": "replace", "path": where, "value": other})
    site.until_wrong(pods_0="NotTrusted")
    site.until_condition("False", FIRST, "caBundle does not verify")
    site.until_told("NotIntercepting", FIRST, "caBundle does not verify")
    code, text = site.doctor("end to end")
    assert code == 1
    mentions(text, "does not reach the webhook")


def test_the_alerts_on_calls_that_fail_have_the_api_servers_own_series(well: Watched) -> None:
    """By name and labels, once calls have failed: one is rejected, the other admitted."""
    site = well
    other = bundle(new_authority("other", datetime.now(UTC)).certificate)
    where = "/webhooks/0/clientConfig/caBundle"
    site.change(MUTATING, "fairlead", {"op": "replace", "path": where, "value": other})
    site.kubectl("delete", "validatingadmissionpolicybinding", "-l", GUARD_BINDINGS)
    create = f"{path('pods', namespace='default')}?dryRun=All"
    probe = pod("probe")
    eventually("calls fail", lambda: site.plane.api.call("POST", create, probe)[0] == 500)
    ignore = {"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}
    site.change(MUTATING, "fairlead", ignore)
    eventually("failures are admitted", lambda: site.plane.api.call("POST", create, probe)[0] < 300)
    exposed = site.kubectl("get", "--raw", "/metrics")
    for name in ("FairleadFailsOpen", "FairleadCallsFail"):
        (expression,) = (each["expr"] for each in ALERTS if each["alert"] == name)
        series, matchers = re.findall(r"(apiserver_\w+){([^}]*)}", expression)[0]
        lines = [line for line in exposed.splitlines() if line.startswith(f"{series}{{")]
        for label, operator, value in re.findall(r'(\w+)(=~|=)"([^"]*)"', matchers):
            wanted = value if operator == "=~" else re.escape(value)
            lines = [line for line in lines if re.search(f'[{{,]{label}="{wanted}"', line)]
        assert lines, expression


def test_what_validates_and_what_guards_is_missed_too(well: Watched) -> None:
    """Policies stay in force without it."""
    site = well
    site.kubectl("delete", "validatingwebhookconfiguration", "fairlead")
    site.kubectl("delete", "validatingadmissionpolicy", names.RUN_AUTHORS_GUARD)
    eventually("it is missed", lambda: len(site.wrong()) == 3, explain=site.gauge)
    assert site.wrong() == {
        "policies.fairlead.dev": "Absent",
        "workloads.fairlead.dev": "Absent",
        names.RUN_AUTHORS_GUARD: "Absent",
    }
    site.until_told("NotIntercepting", "policies.fairlead.dev", names.RUN_AUTHORS_GUARD)
    assert site.in_force()[0] == "True"
    assert site.doctor("guards")[0] == 1


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"validations": [{"expression": "true"}]}, "validations"),
        ({"matchConditions": [{"name": "never", "expression": "false"}]}, "matchConditions"),
        ({"failurePolicy": "Ignore"}, "failurePolicy"),
    ],
)
def test_a_guard_that_was_edited_is_not_in_force(well: Watched, spec: Json, words: str) -> None:
    """What the API server fills in is no difference: all guards that ship were in force before."""
    site = well
    patch = ("--type=merge", "-p", json.dumps({"spec": spec}))
    site.kubectl("patch", "validatingadmissionpolicy", names.RUN_AUTHORS_GUARD, *patch)
    eventually(
        "it is reported",
        lambda: site.wrong() == {names.RUN_AUTHORS_GUARD: "Changed"},
        explain=site.gauge,
    )
    site.until_told("NotIntercepting", names.RUN_AUTHORS_GUARD, words)
    code, text = site.doctor("guards")
    assert code == 1
    mentions(text, names.RUN_AUTHORS_GUARD, words, "delete it with kubectl")
    # An apply keeps a condition that another client has added.
    site.plane.api.delete(path("validatingadmissionpolicies", names.RUN_AUTHORS_GUARD))


def test_a_right_to_write_that_is_taken_away_is_reported(well: Watched) -> None:
    """As long as it is, whatever the controller does about it."""
    site = well
    role = "fairlead-controller-policies"
    rules = site.plane.api.get(path("clusterroles", role))["rules"]
    resource = f"{names.PLACEMENT_POLICIES}/status"
    (at,) = (number for number, rule in enumerate(rules) if resource in rule["resources"])
    site.change("clusterroles", role, {"op": "remove", "path": f"/rules/{at}"})

    def failing() -> float:
        of = {"verb": "PATCH", "resource": resource}
        return metric(site.controller.health_port, metric_names.WRITE_FAILING, **of)

    assert site.apply(FOR_DEFAULT) == ""
    eventually("it fails to write a status", lambda: failing() > 0)
    site.change("clusterroles", role, {"op": "add", "path": f"/rules/{at}", "value": rules[at]})
    eventually("it does not fail any more", lambda: failing() == 0)
    eventually("the status is written", lambda: site.in_force("for-default")[0] == "True")
    site.plane.api.delete(path(names.PLACEMENT_POLICIES, "for-default"))
