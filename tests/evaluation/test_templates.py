"""The pods of workloads that are warned of: those that wait for Kueue may get tolerations yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.admission.reviews import policy_set
from tests.objects import an_object
from tests.wording import mentions
from webhook import names
from webhook.decision.arrival import Arrival, Cluster
from webhook.decision.engine import decide
from webhook.decision.prospects import Prospects
from webhook.errors import InvalidRun
from webhook.evaluation.templates import faults_of, queued_templates
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import Node

Json = dict[str, Any]
QUEUED = {names.KUEUE_QUEUE: "ml"}
NODES = [Node("n", {"pool": "gpu"}, [{"key": "gpu", "effect": "NoSchedule"}])]
# What is said where the taint of the only node keeps the pod out.
TAINTED = ("0 of 1 nodes", "pool=gpu matches 1", "taint gpu")


def workload(kind: str, labels: Json, of_pods: Json, pool: str) -> Json:
    """A Job or Deployment with these labels, and pods with those."""
    spec = {"containers": [{"name": "main", "image": "i"}], "nodeSelector": {"pool": pool}}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "train", "labels": labels},
        "spec": {"template": {"metadata": {"labels": {names.RUN: "r", **of_pods}}, "spec": spec}},
    }


def said(kind: str, labels: Json, of_pods: Json | None = None, pool: str = "gpu") -> str:
    """What is said of nodes to whoever writes such a workload."""
    (pods,) = queued_templates(workload(kind, labels, of_pods or {}, pool))
    pod, policies = pods.pod(0), policy_set()
    decision = decide(Arrival(pod, "ml-team", {}), policies, Cluster())
    return Prospects(NodeGroups(NODES)).unplaceable(pod, decision, policies)


@pytest.mark.parametrize("kind", ["Job", "Deployment"])
def test_a_flavor_may_yet_bring_what_a_taint_wants(kind: str) -> None:
    """Who asks for its nodes in the template needs no toleration; labels stay demanded."""
    mentions(said(kind, {}), *TAINTED)
    assert said(kind, QUEUED) == ""
    mentions(said(kind, QUEUED, pool="none"), "0 of 1 nodes", "pool=none matches none")


def test_a_cron_job_says_the_queue_of_its_jobs() -> None:
    """In the labels that they will have."""
    made = workload("Job", QUEUED, {}, "gpu")
    jobs = {"metadata": made.pop("metadata"), "spec": made["spec"]}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": jobs}}
    (pods,) = queued_templates(cron)
    assert pods.pod(0)["spec"]["schedulingGates"] == [{"name": names.KUEUE_ADMISSION_GATE}]


def test_what_kueue_has_started_has_its_flavor() -> None:
    """Its tolerations are there by then."""
    mentions(said("Job", QUEUED, {names.KUEUE_PODSET: "main"}), *TAINTED)


def delegated(**more: object) -> Json:
    """A Run of two PyTorch pods for the training operator."""
    spec = {
        "backend": "kubeflow",
        "framework": "pytorch",
        "template": {"spec": {"containers": [{"name": "main", "image": "i"}]}},
        "replicas": {"master": {}, "worker": {}},
        **more,
    }
    metadata = {"name": "train", "namespace": "ml", "uid": "u", "resourceVersion": "1"}
    return {"apiVersion": names.API_VERSION, "kind": "Run", "metadata": metadata, "spec": spec}


def test_the_pods_of_a_delegated_run_are_those_of_its_object() -> None:
    """With the operator's labels, by which the webhook knows them."""
    found = {pods.part: pods.pod(0) for pods in queued_templates(delegated())}
    assert {
        pod["metadata"]["labels"]["training.kubeflow.org/replica-type"] for pod in found.values()
    }
    assert sorted(found) == ["master", "worker"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"restartScope": "Run"}, ["spec.restartScope", "native"]),
        (
            {"framework": "mxnet", "replicas": {"scheduler": {}, "server": {}, "worker": {}}},
            ["spec.framework", "mxnet", "native"],
        ),
    ],
)
def test_what_no_engine_can_do_is_told_when_the_run_is_written(
    more: Json, words: list[str]
) -> None:
    """As the controller would say it afterwards."""
    with pytest.raises(InvalidRun) as caught:
        queued_templates(delegated(**more))
    mentions(" ".join(caught.value.problems), *words)


@pytest.mark.parametrize("odd", [None, [], "x", {"schedulingGates": "x"}])
def test_a_workload_of_no_shape_stays_as_it_is(odd: object) -> None:
    """For the look at its pods to name."""
    made = workload("Job", QUEUED, {}, "gpu")
    made["spec"]["template"] = {"metadata": odd, "spec": odd}
    (pods,) = queued_templates(made)
    assert pods.pod(0)["spec"] == odd


def a_job(spec: Json) -> Json:
    """A PyTorchJob whose master has this spec."""
    replicas = {"Master": {"template": {"spec": spec}}}
    return an_object("kubeflow.org/v1", "PyTorchJob", "train", {"pytorchReplicaSpecs": replicas})


def a_run(spec: Json) -> Json:
    return {
        "apiVersion": names.API_VERSION,
        "kind": names.RUN_KIND,
        "metadata": {"name": "train", "namespace": "ml-team", "uid": "u"},
        "spec": {"template": {"spec": spec}},
    }


@pytest.mark.parametrize(
    ("make", "path"),
    [(a_job, "spec.pytorchReplicaSpecs.Master.template.spec"), (a_run, "spec.template.spec")],
)
def test_typos_are_reported_in_templates_that_the_api_server_does_not_validate(
    make: Callable[[Json], Json], path: str
) -> None:
    """Nobody else does."""
    spec = {"containers": [{"name": "main", "image": "i"}], "nodeSelectors": {"a": "b"}}
    (fault,) = faults_of(make(spec))
    mentions(fault, f"{path}.nodeSelectors: ", "'nodeSelector'")
    del spec["nodeSelectors"]
    assert faults_of(make(spec)) == []


def test_nothing_is_reported_of_kinds_that_the_api_server_judges() -> None:
    """Nor of what makes no pods, or of a Run of which none can be made: that is told already."""
    job = workload("Job", {}, {}, "gpu")
    job["spec"]["template"]["spec"]["nodeSelectors"] = {}
    assert faults_of(job) == []
    assert faults_of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}) == []
    assert faults_of(a_run({"containers": [{"name": "main"}], "nodeSelectors": {}})) == []
