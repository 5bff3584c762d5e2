"""Pods that Kueue manages, with the labels, annotations and gates that it sets, on the API server.

`starts` and `ungates` do what Kueue does when it starts a Job (podset.Merge into the template) and
when it lets a plain pod go; Kueue itself does not run here.
"""

from __future__ import annotations

import json

import pytest

from tests.cluster.manifests import Json, job_spec, pod
from tests.cluster.rooms import NewNamespace, Room, is_stamped, stamp
from webhook import names

pytest_plugins = ["tests.cluster.webhook_fixtures"]
pytestmark = pytest.mark.usefixtures("running")

POOL = "cloud.google.com/gke-nodepool"
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
metadata: {{name: never-on-demand}}
spec:
  match: {{namespaceSelector: {{matchLabels: {{test: kueue-required}}}}}}
  requirements: {{nodeSelector: {{{POOL}: gpu}}}}
"""
KEEPS = {names.KUEUE: names.KUEUE_KEEP}
ADMITTED = {names.KUEUE_PODSET: "main", names.KUEUE_LOCAL_QUEUE: "ml"}
ADMISSION_GATE = {"name": f"{names.KUEUE_PREFIX}admission"}


def job(name: str) -> Json:
    """A Job as Kueue's webhook leaves it: suspended, with its queue on itself and not its pods."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {names.KUEUE_QUEUE: "ml"}},
        "spec": {**job_spec(), "suspend": True},
    }


def starts(room: Room, name: str, flavor: dict[str, str], *tolerations: Json) -> None:
    """What Kueue does once a workload is admitted: the flavor goes into the template."""
    template = {
        "metadata": {"labels": ADMITTED, "annotations": {names.KUEUE_WORKLOAD: f"job-{name}"}},
        "spec": {"nodeSelector": flavor, "tolerations": list(tolerations)},
    }
    change = {"spec": {"suspend": False, "template": template}}
    room.kubectl("patch", "job", name, "--type=merge", "-p", json.dumps(change))


def test_a_job_that_kueue_starts_runs_on_its_flavor(new_namespace: NewNamespace) -> None:
    """In a namespace that says so the override stands back, and does all that it can beside."""
    room = new_namespace({"test": "kueue", **KEEPS})
    room.create(job("train"))
    starts(room, "train", {POOL: "gpu"}, {"key": "nvidia.com/gpu", "operator": "Exists"})
    (seen,) = room.wait_for_pods(1)
    assert seen["spec"]["nodeSelector"] == {POOL: "gpu"}
    assert seen["spec"]["nodeName"].startswith("gpu")
    assert seen["metadata"]["labels"]["team"] == "research"
    assert stamp(seen)["policies"] == {"on-demand": ["labels[team]"]}


def test_elsewhere_the_override_holds_and_both_are_named(new_namespace: NewNamespace) -> None:
    """Kueue's label can be written by any author, who is told what became of the flavor."""
    room = new_namespace({"test": "kueue"})
    forged = pod("p", labels={names.RUN: "r", **ADMITTED}, nodeSelector={POOL: "gpu"})
    said = room.kubectl.run("create", "-f", "-", stdin=json.dumps(forged)).stderr
    assert (
        f"nodeSelector[{POOL}]: policy on-demand wants 'on-demand', Kueue (queue 'ml') put 'gpu'"
        in said
    )
    assert room.pods()[0]["spec"]["nodeSelector"] == {POOL: "on-demand"}


def test_a_requirement_rejects_and_names_the_queue(new_namespace: NewNamespace) -> None:
    """It gives way to nobody; the pod's author learns that the flavor is where to look."""
    room = new_namespace({"test": "kueue-required", **KEEPS})
    admitted = pod("p", labels={names.RUN: "r", **ADMITTED}, nodeSelector={POOL: "on-demand"})
    said = room.kubectl.run("create", "-f", "-", stdin=json.dumps(admitted)).stderr
    assert "policy never-on-demand" in said
    assert "Kueue (queue 'ml') has admitted the pod: look at its flavor" in said


def test_a_plain_pod_is_placed_before_kueue_chooses(new_namespace: NewNamespace) -> None:
    """It waits behind a gate with what policies say, of which Kueue makes its workload.

    What the flavor adds comes by an update, which the API server takes as long as it changes none
    of the keys that are there.
    """
    room = new_namespace({"test": "kueue", **KEEPS})
    waiting = {names.RUN: "r", names.KUEUE_QUEUE: "ml", f"{names.KUEUE_PREFIX}managed": "true"}
    gated = room.create(pod("p", labels=waiting, schedulingGates=[ADMISSION_GATE]))
    assert is_stamped(gated)
    assert gated["spec"]["nodeSelector"] == {POOL: "on-demand"}
    other = {"spec": {"nodeSelector": {POOL: "gpu"}}}
    refused = room.kubectl.run("patch", "pod", "p", "--type=merge", "-p", json.dumps(other))
    assert "Invalid value" in refused.stderr
    ungated = {
        "metadata": {"labels": ADMITTED},
        "spec": {"nodeSelector": {"kubernetes.io/arch": "amd64"}, "schedulingGates": None},
    }
    room.kubectl("patch", "pod", "p", "--type=merge", "-p", json.dumps(ungated))
    (seen,) = room.wait_for_pods(1)
    assert seen["spec"]["nodeSelector"] == {POOL: "on-demand", "kubernetes.io/arch": "amd64"}
    assert seen["spec"]["nodeName"].startswith("on-demand")
