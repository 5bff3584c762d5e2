"""`fairlead controller --policy-reports`: reports by Kyverno's definition, in a real cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import hostile
from tests.cluster.manifests import pod, template
from tests.cluster.rule_cases import path_of
from tests.cluster.spaces import Json, Space
from tests.control_planes import StartControlPlane
from tests.eventually import eventually
from tests.go_programs import module_source
from tests.objects import an_object
from tests.server.serving import get, readiness
from tests.wording import mentions
from webhook import names
from webhook.audited import Record, records_of_metrics
from webhook.cli.install import reports_notes
from webhook.controller.policies.report_documents import OWNER, collection
from webhook.errors import SandboxError
from webhook.kube.client import connect
from webhook.policy.crd.definitions import custom_resource_definitions
from webhook.questions.policies.audit_records import records_of_cluster
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.api import install_definitions
from webhook.sandbox.binaries import Module
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import (
    SandboxController,
    Webhook,
    start_controller,
    start_webhook,
)
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools
from webhook.times import to_second

POOL = "cloud.google.com/gke-nodepool"
WORKER = {names.RUN: "r", names.ROLE: "worker"}
ANNOTATIONS = (names.PLACEMENT, names.HISTORY, names.LAST_APPLIED)
OPTIONS = ("--no-leader-election", "--policy-reports", "--policy-reports-interval", "0.4")
_OWNERS = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
POLICIES: dict[str, Json] = {
    "pool": {
        "match": {"roles": ["worker"]},
        "defaults": {"nodeSelector": {POOL: "on-demand"}},
    },
    "strict": {
        "enforcement": "Audit",
        "match": {"podSelector": {"matchLabels": {"want": "strict"}}},
        "requirements": {"nodeSelector": {POOL: "gpu"}},
    },
    "tier": {
        "enforcement": "Audit",
        "match": {"podSelector": {"matchLabels": {"want": "tier"}}},
        "overrides": {"labels": {"tier": "batch"}},
    },
    "gone": {
        "enforcement": "Audit",
        "match": {"podSelector": {"matchLabels": {"want": "gone"}}},
        "overrides": {"priorityClassName": "gone"},
    },
    "memory": {
        "enforcement": "Audit",
        "match": {"podSelector": {"matchLabels": {"want": "memory"}}},
        "defaults": {
            "securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}
        },
    },
}


@dataclass
class Site:
    """A cluster whose controller writes policy reports; the webhook places pods in it."""

    plane: ControlPlane
    webhook: Webhook
    controller: SandboxController
    kubectl: Kubectl

    def space(self, name: str) -> Space:
        self.plane.create_namespace(name)
        return Space(self.plane, self.kubectl.within(name), name)

    def report(self, namespace: str) -> Json | None:
        """The report of a namespace; None if there is none."""
        found: Json | None = self.plane.api.get(f"{collection(namespace)}/fairlead")
        return found

    def until(self, namespace: str, **summary: int) -> Json:
        """Wait until the report has these counts, and return it."""

        def counted() -> bool:
            found = (self.report(namespace) or {}).get("summary", {})
            return all(found.get(key.rstrip("_")) == count for key, count in summary.items())

        eventually(f"the report has {summary}", counted, explain=lambda: self.report(namespace))
        found = self.report(namespace)
        assert found is not None
        return found


def policy_report_definition() -> dict[str, Any]:
    """The CustomResourceDefinition that Kyverno installs; its module is downloaded if missing."""
    module = Module("kyverno", "github.com/kyverno/kyverno", Path(__file__).parent / "files")
    folder = module_source(module) / "config" / "crds" / "policyreport"
    found: dict[str, Any] = yaml.safe_load(
        (folder / "wgpolicyk8s.io_policyreports.yaml").read_text()
    )
    return found


@pytest.fixture(scope="module")
def site(
    start_module_plane: StartControlPlane, kubectl_for: Callable[[ControlPlane], Kubectl]
) -> Site:
    """A control plane of the module's own, because the reports are about all namespaces."""
    definitions = [
        *custom_resource_definitions().values(),
        custom_resource_definition(),
        policy_report_definition(),
    ]
    settings = Settings(pools=read_pools(SHIPPED_NODES), definitions=definitions)
    plane = start_module_plane(settings)
    plane.create_namespace(names.NAMESPACE)
    for name, spec in POLICIES.items():
        create(plane, names.POLICY_KIND, name, spec)
    until = to_second(datetime.now(UTC) + timedelta(hours=1))
    create(
        plane,
        names.EXCEPTION_KIND,
        "anna",
        {
            "policies": ["pool"],
            "match": {"podSelector": {"matchLabels": {"want": "free"}}},
            "until": until,
            "reason": "Anna looks for a leak.",
        },
    )
    return Site(plane, start_webhook(plane, None), begin(plane), kubectl_for(plane))


def begin(plane: ControlPlane) -> SandboxController:
    """Start a controller that writes reports."""
    options = (*OPTIONS, "--lease-namespace", names.NAMESPACE)
    return start_controller(plane, name="reports-controller", options=options)


def create(plane: ControlPlane, kind: str, name: str, spec: Json) -> None:
    """Create a policy or an exception."""
    manifest = an_object(names.API_VERSION, kind, name, spec)
    plane.api.create(path_of(kind) + "?fieldValidation=Strict", manifest)


def rows(report: Json) -> set[tuple[str, str, str, str]]:
    """Policy, rule, result and pod of each result."""
    return {
        (each["policy"], each["rule"], each["result"], each["resources"][0]["name"])
        for each in report["results"]
    }


def test_a_report_has_every_kind_of_result(site: Site) -> None:
    """Audit that rejects or changes, an exception, no node; and the pods without any result."""
    space = site.space("research")
    space.create(pod("well", labels=WORKER))
    space.create(pod("refused", labels={**WORKER, "want": "strict"}))
    space.create(pod("changed", labels={**WORKER, "want": "tier"}))
    space.create(pod("free", labels={**WORKER, "want": "free"}))
    space.create(pod("lost", labels=WORKER, nodeSelector={"pool": "typo"}))
    space.create(pod("foreign", labels={"app": "x"}))
    report = site.until("research", pass_=1, fail=2, warn=1, skip=1, error=0)
    assert rows(report) == {
        ("fairlead.dev/no-node", "nodes", "fail", "lost"),
        ("strict", "audit", "fail", "refused"),
        ("tier", "audit", "warn", "changed"),
        ("pool", "exception", "skip", "free"),
    }
    texts = {each["policy"]: each["message"] for each in report["results"]}
    mentions(texts["fairlead.dev/no-node"], "pool=typo", "matches none")
    mentions(texts["strict"], "under Audit", "would reject", POOL, "gpu")
    mentions(texts["tier"], "under Audit", "labels[tier]")
    mentions(texts["pool"], "exception anna", "Anna looks for a leak.")
    assert {each["source"] for each in report["results"]} == {"fairlead"}
    shown = " ".join(site.kubectl("get", "polr", "-A").split())
    mentions(shown, "PASS FAIL WARN ERROR SKIP", "research fairlead", "1 2 1 0 1")


def test_a_pod_with_any_annotation_has_a_result_and_so_has_the_pod_beside_it(site: Site) -> None:
    """Whoever may patch a pod of theirs ends no report."""
    space = site.space("hostile")
    texts = [text for text in hostile.TEXTS.values() if len(text) < 80_000]
    several = [dict.fromkeys(ANNOTATIONS, text) for text in texts[:: len(texts) // 40]]
    for at, written in enumerate(several):
        space.create(pod(f"p-{at}", labels=WORKER))
        space.patch("pods", f"p-{at}", {"metadata": {"annotations": written}})
    space.create(pod("refused", labels={**WORKER, "want": "strict"}))

    def rejected() -> bool:
        report = site.report("hostile")
        return report is not None and ("strict", "audit", "fail", "refused") in rows(report)

    eventually("the pod beside them is judged", rejected, explain=lambda: site.report("hostile"))
    report = site.report("hostile")
    assert report is not None
    assert sum(report["summary"].values()) == len(several) + 1
    assert report["summary"]["error"] == 0
    assert "unjudged" not in state(site.controller)


def test_the_audit_command_says_the_same_of_pods_now(site: Site) -> None:
    """Also of those that a workload will create, by its template."""
    space = site.space("audited")
    space.create(pod("refused", labels={**WORKER, "want": "strict"}))
    made = template(labels={**WORKER, "want": "tier"}, restartPolicy="Never")
    space.create(
        an_object(
            "batch/v1", "Job", "train", {"parallelism": 3, "completions": 3, "template": made}
        )
    )

    async def evaluated() -> list[Record]:
        async with connect(site.plane.kubeconfig) as client:
            found = await records_of_cluster(client, [])
        assert found is not None
        return [each for each in found if each.namespace == "audited"]

    strict, tier = sorted(asyncio.run(evaluated()), key=lambda each: each.policy)
    assert strict[:5] == ("audited", "strict", "rejects", 1, "Pod/refused")
    mentions(strict.reason, POOL, "gpu")
    assert tier[:5] == ("audited", "tier", "changes", 3, "Job/train")


def test_what_the_api_server_refuses_once_it_is_enforced_counts_as_rejected(site: Site) -> None:
    """In the report, the webhook's metric and the command: a class that is not there, and sysctls
    beside hostIPC. Of a DaemonSet's pods, on the nodes that a requirement excludes."""
    space = site.space("refusing")
    space.create(pod("gone", labels={**WORKER, "want": "gone"}))
    space.create(pod("memory", labels={**WORKER, "want": "memory"}, hostIPC=True))
    report = site.until("refusing", fail=2)
    assert rows(report) == {
        ("gone", "audit", "fail", "gone"),
        ("memory", "audit", "fail", "memory"),
    }
    texts = {each["policy"]: each["message"] for each in report["results"]}
    mentions(texts["gone"], "would reject", "PriorityClass 'gone'")
    mentions(texts["memory"], "would reject", "securityContext[sysctls]")
    port = int(site.webhook.health_url.rpartition(":")[2])
    metrics = get(port, "/metrics")[1].decode()
    counted = {
        each.policy: each.outcome
        for each in records_of_metrics(metrics)
        if each.namespace == "refusing"
    }
    assert counted == {"gone": "rejects", "memory": "rejects"}
    labels = {**WORKER, "want": "strict"}
    selector = {"matchLabels": {"want": "strict"}}
    made = template(labels=labels, tolerations=[{"operator": "Exists"}])
    agent = {"selector": selector, "template": made}
    space.create(an_object("apps/v1", "DaemonSet", "agent", agent))

    async def evaluated() -> list[Record]:
        async with connect(site.plane.kubeconfig) as client:
            found = await records_of_cluster(client, [])
        assert found is not None
        return [each for each in found if each.namespace == "refusing"]

    found = {(each.policy, each.outcome): each.pods for each in asyncio.run(evaluated())}
    rejected = found.pop(("strict", "rejects"))
    assert found.pop(("strict", "changes")) > 0
    assert rejected > 0
    assert found == {("gone", "rejects"): 1, ("memory", "rejects"): 1}
    for name in ("gone", "memory"):
        path = f"{path_of(names.POLICY_KIND)}/{name}"
        site.plane.api.patch(path, {"spec": {"enforcement": "Enforce"}})
    texts = {
        "gone": "no PriorityClass with name gone was found",
        "memory": "kernel.shm_rmid_forced",
    }
    for name, text in texts.items():
        again = pod(f"{name}-again", labels={**WORKER, "want": name}, hostIPC=name == "memory")
        why = partial(refusal_of, space, again)
        refused = f"enforcing {name} refuses the pod"
        eventually(refused, partial(_is_in, text, why), explain=why)
    for name in ("gone", "memory"):
        path = f"{path_of(names.POLICY_KIND)}/{name}"
        site.plane.api.patch(path, {"spec": {"enforcement": "Audit"}})


def _is_in(text: str, found: Callable[[], str]) -> bool:
    return text in found()


def refusal_of(space: Space, made: Json) -> str:
    """Why the API server refuses the pod; empty if it takes it."""
    try:
        space.create(made, dry_run=True)
    except SandboxError as error:
        return str(error)
    return ""


def test_what_others_add_to_a_report_stays_and_what_they_change_is_restored(site: Site) -> None:
    """Labels of others are kept; edited counts are not."""
    site.space("edited").create(pod("well", labels=WORKER))
    site.until("edited", pass_=1)
    labels = {"team": "a", "app.kubernetes.io/part-of": None}
    edit = {"metadata": {"labels": labels}, "summary": {"pass": 7}}
    site.plane.api.patch(f"{collection('edited')}/fairlead", edit)
    report = site.until("edited", pass_=1)
    assert report["metadata"]["labels"]["team"] == "a"
    assert report["metadata"]["labels"]["app.kubernetes.io/part-of"] == "fairlead"


def test_a_report_ends_with_the_last_pod_of_a_run_or_the_namespace(site: Site) -> None:
    """No trouble is left behind by either."""
    space = site.space("short")
    space.create(pod("well", labels=WORKER))
    site.until("short", pass_=1)
    space.delete("pods", "well", now=True)
    eventually("the report is gone", lambda: site.report("short") is None)
    site.space("gone").create(pod("well", labels=WORKER))
    site.until("gone", pass_=1)
    site.plane.api.delete("/api/v1/namespaces/gone")
    eventually(
        "the namespace is gone", lambda: site.plane.api.get("/api/v1/namespaces/gone") is None
    )
    site.space("next").create(pod("well", labels=WORKER))
    site.until("next", pass_=1)
    mentions(state(site.controller), "policy reports")
    assert "policy reports are not written" not in state(site.controller)


def test_another_s_report_of_that_name_stays_and_is_named(site: Site) -> None:
    """Reports of other namespaces are written as before."""
    space = site.space("foreign")
    theirs = an_object("wgpolicyk8s.io/v1alpha2", "PolicyReport", "fairlead")
    site.plane.api.create(collection("foreign"), theirs)
    space.create(pod("well", labels=WORKER))
    eventually("it is named", lambda: "not Fairlead's" in state(site.controller))
    site.space("beside").create(pod("well", labels=WORKER))
    site.until("beside", pass_=1)
    assert (site.report("foreign") or {}).get("results") is None
    site.plane.api.delete(f"{collection('foreign')}/fairlead")
    site.until("foreign", pass_=1)


def state(controller: SandboxController) -> str:
    """What the controller says at /readyz of statuses and reports; it is ready whatever that is."""
    status, detail = readiness(controller.health_port)
    assert status == 200
    return str(detail["conditions"]["policy-status"]["reason"])


def test_removing_the_component_removes_the_reports(site: Site) -> None:
    """Its ClusterRole owns them; the garbage collector deletes them without Fairlead."""
    site.space("owned").create(pod("well", labels=WORKER))
    report = site.until("owned", pass_=1)
    assert [each["name"] for each in report["metadata"]["ownerReferences"]] == [OWNER]
    site.controller.process.stop()
    site.plane.api.delete(f"{_OWNERS}/{OWNER}")
    eventually("no report is left", lambda: not site.plane.api.get(collection())["items"])
    site.controller = begin(site.plane)
    site.until("owned", pass_=1)


async def noted(plane: ControlPlane) -> list[str]:
    """What `fairlead install --policy-reports` notes of the cluster."""
    async with connect(plane.kubeconfig) as client:
        return await reports_notes(client)


def test_without_the_definition_the_cure_is_named_and_statuses_are_written(
    start_control_plane: StartControlPlane,
) -> None:
    """And once it is there, reports are written without a restart."""
    definitions = [*custom_resource_definitions().values(), custom_resource_definition()]
    small = Settings(components=("etcd", "kube-apiserver"), definitions=definitions)
    plane = start_control_plane(small)
    plane.create_namespace(names.NAMESPACE)
    create(plane, names.POLICY_KIND, "pool", POLICIES["pool"])
    controller = begin(plane)
    eventually("the cure is named", lambda: "does not serve policyreports" in state(controller))
    mentions(state(controller), "Kyverno's chart", "remove --policy-reports")

    (note,) = asyncio.run(noted(plane))
    assert note in state(controller)

    def accepted() -> bool:
        stored = plane.api.get(f"{path_of(names.POLICY_KIND)}/pool")
        return bool((stored.get("status") or {}).get("conditions"))

    eventually("the policy has a status", accepted)
    install_definitions(plane.api, [policy_report_definition()])
    assert asyncio.run(noted(plane)) == []
    eventually("the trouble is over", lambda: "does not serve" not in state(controller))
