"""Kueue itself beside Fairlead: pods that it manages, and a pod that only says so.

They have a control plane of their own, for Kueue's kinds can neither be read nor deleted without
it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cluster.guards import guarded
from tests.cluster.manifests import Json, pod
from tests.cluster.spaces import NewNamespace, Space, is_stamped, stamp
from tests.eventually import eventually
from tests.operators import checks, queues
from tests.operators.queued import job, plain, served
from tests.operators.queues import GPU_TOLERATION, POOL, SYSTEM, URGENT
from tests.wording import mentions
from webhook import names
from webhook.cli import fairlead
from webhook.guards import capacity_guard
from webhook.interception import DEFAULT_SOURCES, select_sources, webhooks
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("queues_of_admins", "running")

POLICIES = f"""
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: on-demand}}
spec:
  match: {{namespaceSelector: {{matchLabels: {{test: kueue}}}}}}
  overrides:
    nodeSelector: {{{POOL}: on-demand}}
    labels: {{team: research}}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: never-gpu}}
spec:
  match: {{namespaceSelector: {{matchLabels: {{test: kueue-required}}}}}}
  requirements: {{nodeSelector: {{{POOL}: on-demand}}}}
"""
KEEPS = {names.KUEUE: names.KUEUE_KEEP}
ADMITTED = {names.KUEUE_PODSET: "main", names.KUEUE_LOCAL_QUEUE: "ml"}
ADMISSION_GATE = {"name": names.KUEUE_ADMISSION_GATE}
MANAGED = f"{names.KUEUE_PREFIX}managed"
HOST = "kubernetes.io/hostname"
PARENT = f"{names.KUEUE_PREFIX}pod-suspending-parent"
ROLE = f"{names.KUEUE_PREFIX}role-hash"


@pytest.fixture
def new_space(new_namespace: NewNamespace) -> NewNamespace:
    """Makes a fresh namespace with these labels and its queues."""

    def make(labels: Mapping[str, str]) -> Space:
        space = new_namespace(labels)
        space.kubectl.create(*queues.of_namespaces())
        return space

    return make


def explained(space: Space, what: str, policies: Path) -> str:
    """What `fairlead explain` prints, with single blanks."""
    where = ("--kubeconfig", str(space.plane.kubeconfig), "-n", space.name)
    done = CliRunner().invoke(fairlead, ["explain", what, "--policies", str(policies), *where])
    return " ".join(done.output.split())


def said(space: Space) -> str:
    """What the Workloads of the namespace say of themselves."""
    found = space.kubectl.json("get", "workloads")["items"]
    conditions = (each.get("status", {}).get("conditions", []) for each in found)
    return " ".join(each["message"] for some in conditions for each in some)


def test_a_job_that_kueue_starts_runs_on_its_flavor(
    new_space: NewNamespace, policy_folder: Path
) -> None:
    """In a namespace that says so the override stands back, and does all that it can beside."""
    space = new_space({"test": "kueue", **KEEPS})
    assert space.create(job("either"))["spec"]["suspend"]
    (seen,) = space.wait_for_pods(1)
    assert seen["metadata"]["labels"][names.KUEUE_PODSET] == "main"
    assert names.KUEUE_QUEUE not in seen["metadata"]["labels"]
    assert seen["spec"]["nodeSelector"] == {POOL: "gpu"}
    assert GPU_TOLERATION in seen["spec"]["tolerations"]
    assert seen["spec"]["nodeName"].startswith("gpu")
    assert seen["metadata"]["labels"]["team"] == "research"
    assert stamp(seen)["policies"] == {"on-demand": ["labels[team]"]}
    told = explained(space, f"pod/{seen['metadata']['name']}", policy_folder)
    kept = f"nodeSelector[{POOL}]: Kueue (queue 'either')"
    mentions(told, f"kept on-demand, overrides {kept}")


def test_elsewhere_the_override_holds_and_both_are_named(
    new_space: NewNamespace, policy_folder: Path
) -> None:
    """The Job's author learns it from explain: who creates the pod is a controller."""
    space = new_space({"test": "kueue"})
    space.create(job("either"))
    (seen,) = space.wait_for_pods(1)
    assert seen["spec"]["nodeSelector"] == {POOL: "on-demand"}
    assert seen["spec"]["nodeName"].startswith("on-demand")
    for what in (f"pod/{seen['metadata']['name']}", "job/train"):
        told = explained(space, what, policy_folder)
        mentions(told, "policy on-demand wants 'on-demand'", "Kueue (queue 'either')")


def test_a_forged_label_changes_nothing_and_its_author_gets_a_warning(
    new_namespace: NewNamespace,
) -> None:
    """Kueue's label can be written by any author, who learns what became of the flavor."""
    space = new_namespace({"test": "kueue"})
    forged = pod("p", labels={names.RUN: "r", **ADMITTED}, nodeSelector={POOL: "gpu"})
    said = space.kubectl.run("create", "-f", "-", stdin=json.dumps(forged)).stderr
    mentions(said, f"nodeSelector[{POOL}]: policy on-demand wants 'on-demand'")
    mentions(said, "Kueue (queue 'ml')", "'gpu'")
    assert space.pods()[0]["spec"]["nodeSelector"] == {POOL: "on-demand"}


def test_a_requirement_rejects_and_names_kueue(new_space: NewNamespace) -> None:
    """It gives way to nobody; the Job's Events say that the flavor is where to look."""
    space = new_space({"test": "kueue-required", **KEEPS})
    space.create(job("gpu"))

    def events() -> str:
        events = space.kubectl.json("get", "events")["items"]
        return " ".join(e["message"] for e in events if e["reason"] == "FailedCreate")

    eventually("the Job's pod is rejected", lambda: "policy never-gpu" in events())
    look = ("admitted the pod", "its flavor", "admission checks")
    mentions(events(), "Kueue (queue 'gpu')", *look)


def test_a_requirement_rejects_where_the_label_is_forged(new_namespace: NewNamespace) -> None:
    """Whatever the namespace keeps; a pod that says its queue is named by it."""
    space = new_namespace({"test": "kueue-required", **KEEPS})
    forged = pod("p", labels={names.RUN: "r", **ADMITTED}, nodeSelector={POOL: "gpu"})
    said = space.kubectl.run("create", "-f", "-", stdin=json.dumps(forged)).stderr
    assert "policy never-gpu" in said
    mentions(said, "Kueue (queue 'ml')", "admitted the pod", "its flavor", "admission checks")


def test_a_template_that_says_what_the_policy_wants_gets_that_flavor(
    new_space: NewNamespace,
) -> None:
    """Kueue judges the template, and takes the first flavor that it allows."""
    space = new_space({"test": "kueue", **KEEPS})
    space.create(job("either", nodeSelector={POOL: "on-demand"}))
    (seen,) = space.wait_for_pods(1)
    assert seen["spec"]["nodeSelector"] == {POOL: "on-demand", SYSTEM: "linux"}
    assert seen["spec"]["nodeName"].startswith("on-demand")


def test_a_job_whose_hosts_kueue_chooses_is_placed_behind_its_gate(new_space: NewNamespace) -> None:
    """It has its flavor by then, which stays; the host comes by an update."""
    space = new_space({"test": "kueue", **KEEPS})
    space.create(job("hosts", {f"{names.KUEUE_PREFIX}podset-required-topology": POOL}))
    (seen,) = space.wait_for_pods(1)
    assert seen["spec"]["nodeSelector"] == {POOL: "gpu", HOST: seen["spec"]["nodeName"]}
    assert stamp(seen)["policies"] == {"on-demand": ["labels[team]"]}
    template = space.kubectl.json("get", "job", "train")["spec"]["template"]["spec"]
    assert template["schedulingGates"] == [{"name": names.KUEUE_TOPOLOGY_GATE}]
    assert HOST not in template["nodeSelector"]


def test_a_plain_pod_is_placed_before_kueue_chooses(new_space: NewNamespace) -> None:
    """It waits behind a gate with what policies say, of which Kueue makes its workload.

    The flavor that they allow comes by an update.
    """
    space = new_space({"test": "kueue", **KEEPS})
    gated = space.create(plain("either"))
    assert ADMISSION_GATE in gated["spec"]["schedulingGates"]
    assert gated["metadata"]["labels"][MANAGED] == "true"
    assert names.KUEUE_PODSET not in gated["metadata"]["labels"]
    assert is_stamped(gated)
    assert gated["spec"]["nodeSelector"] == {POOL: "on-demand"}
    (seen,) = space.wait_for_pods(1)
    assert seen["metadata"]["labels"][names.KUEUE_PODSET] == "main"
    assert seen["spec"]["nodeSelector"] == {POOL: "on-demand", SYSTEM: "linux"}
    assert seen["spec"]["nodeName"].startswith("on-demand")


def test_a_plain_pod_that_policies_leave_no_flavor_waits_and_says_why(
    new_space: NewNamespace,
) -> None:
    """Its Workload does."""
    space = new_space({"test": "kueue", **KEEPS})
    space.create(plain("gpu"))

    eventually(
        "Kueue finds no flavor", lambda: "flavor gpu doesn't match node affinity" in said(space)
    )
    assert "nodeName" not in space.pods()[0]["spec"]


def test_the_guard_of_tolerations_lets_kueue_pass(
    control_plane: ControlPlane, new_space: NewNamespace
) -> None:
    """Its account is the one to exempt: it gives a plain pod the tolerations of the flavor."""
    space = new_space({})
    exempt = "system:serviceaccount:kueue-system:kueue-controller-manager"
    marks = [mark for source in select_sources(DEFAULT_SOURCES) for mark in source.marks]
    entries = webhooks(DEFAULT_SOURCES, only_namespaces=[space.name])
    guard = capacity_guard(entries, marks, [exempt])
    space.create(pod("old"))
    added = json.dumps({"spec": {"tolerations": [GPU_TOLERATION]}})

    def refuses() -> bool:
        done = space.kubectl.run("patch", "pod", "old", "--dry-run=server", "-p", added)
        return "cannot be added to an existing pod" in done.stderr

    with guarded(control_plane, guard, refuses):
        space.create(plain("gpu"))
        seen = next(each for each in space.wait_for_pods(2) if each["metadata"]["name"] == "p")
    assert GPU_TOLERATION in seen["spec"]["tolerations"]
    assert seen["spec"]["nodeName"].startswith("gpu")


def test_a_job_that_gave_way_starts_again_on_another_flavor(new_space: NewNamespace) -> None:
    """Its template is its author's again in between, and nothing of the first flavor stays."""
    space = new_space({"test": "kueue", **KEEPS})

    def placed(name: str, selector: Json) -> list[Json]:
        bound = [each for each in space.pods() if "nodeName" in each["spec"]]
        own = [each["spec"] for each in bound if each["metadata"]["labels"]["job-name"] == name]
        return [each for each in own if each.get("nodeSelector") == selector]

    # None of both is to end before the other has moved.
    space.create(job("one", pods=1000))
    eventually("it runs on the first flavor", lambda: bool(placed("train", {POOL: "gpu"})))
    space.create(job("one", name="more-important", priority=URGENT, pods=1000))
    eventually("the other does", lambda: bool(placed("more-important", {POOL: "gpu"})))
    second = {POOL: "on-demand", SYSTEM: "linux"}
    eventually("it runs again on the second", lambda: bool(placed("train", second)))
    again = placed("train", second)[0]
    assert GPU_TOLERATION not in again["tolerations"]
    assert again["nodeName"].startswith("on-demand")
    space.kubectl("delete", "job", "--all", "--wait=false")


def test_what_a_check_asks_for_stays_as_a_flavor_does(
    new_space: NewNamespace, policy_folder: Path
) -> None:
    """Kueue writes it into the template beside the flavor, which has no selector here."""
    space = new_space({"test": "kueue", **KEEPS})
    space.create(job("checked"))
    reserved = {"example.invalid/reserved": "r1"}
    checks.pass_with(
        space,
        nodeSelector={POOL: "gpu"},
        tolerations=[GPU_TOLERATION],
        labels=reserved,
        annotations=reserved,
    )
    (seen,) = space.wait_for_pods(1)
    assert seen["spec"]["nodeSelector"] == {POOL: "gpu"}
    assert seen["spec"]["nodeName"].startswith("gpu")
    assert seen["metadata"]["labels"].items() >= {**reserved, "team": "research"}.items()
    assert seen["metadata"]["annotations"].items() >= reserved.items()
    for what in (f"pod/{seen['metadata']['name']}", "job/train"):
        told = explained(space, what, policy_folder)
        kept = f"nodeSelector[{POOL}]: Kueue (queue 'checked') set 'gpu'"
        mentions(told, f"kept on-demand, overrides {kept}")


def test_a_check_that_contradicts_a_placed_pod_is_kueues_error(new_space: NewNamespace) -> None:
    """It comes after the policies, whose word a pod at a gate has by then; its Workload says so."""
    space = new_space({"test": "kueue", **KEEPS})
    space.create(plain("checked"))
    checks.pass_with(space, nodeSelector={POOL: "gpu"})
    conflict = f"conflict for key={POOL}, value1=on-demand, value2=gpu"
    eventually("Kueue cannot start the pod", lambda: conflict in said(space))
    (seen,) = space.pods()
    assert ADMISSION_GATE in seen["spec"]["schedulingGates"]


def test_a_deployment_is_placed_before_kueue_chooses(new_space: NewNamespace) -> None:
    """Each pod waits at a gate by itself, and gets a flavor that it allows."""
    space = new_space({"test": "kueue", **KEEPS})
    space.create(served("Deployment", "either"))
    for seen in space.wait_for_pods(2):
        assert seen["metadata"]["annotations"][PARENT] == "deployment"
        assert seen["metadata"]["labels"][names.KUEUE_PODSET]
        assert stamp(seen)["policies"] == {"on-demand": ["labels[team]", f"nodeSelector[{POOL}]"]}
        assert seen["spec"]["nodeSelector"] == {POOL: "on-demand", SYSTEM: "linux"}
        assert seen["spec"]["nodeName"].startswith("on-demand")


def test_kueue_judges_the_template_of_a_stateful_set(new_space: NewNamespace) -> None:
    """What its template does not say contradicts the flavor; all of its pods have one role."""
    space = new_space({"test": "kueue", **KEEPS})
    space.create(served("StatefulSet", "either", "silent"))
    told = served("StatefulSet", "either", "told")
    told["spec"]["template"]["spec"]["nodeSelector"] = {POOL: "on-demand"}
    space.create(told)

    def bound() -> list[Json]:
        pods = (each for each in space.pods() if "nodeName" in each["spec"])
        return [each for each in pods if each["metadata"]["name"].startswith("told-")]

    eventually("the pods of the one that says it run", lambda: len(bound()) == 2)
    for seen in bound():
        assert seen["spec"]["nodeSelector"] == {POOL: "on-demand", SYSTEM: "linux"}
        assert seen["metadata"]["annotations"][ROLE] == "main"
    conflict = f"conflict for key={POOL}, value1=on-demand, value2=gpu"
    eventually("Kueue cannot start the other", lambda: conflict in said(space))
    silent = [each for each in space.pods() if each["metadata"]["name"].startswith("silent-")]
    assert all(ADMISSION_GATE in each["spec"]["schedulingGates"] for each in silent)
