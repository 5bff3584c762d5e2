"""Pods of other engines, found by their owners: through Jobs, Deployments and ReplicaSets too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.controller.runs import Api, Json
from webhook.controller.engine_pods import EnginePods, Link, find_root, is_withdrawn
from webhook.kube.watches import Watches
from webhook.run.backends.engines import ENGINES, PodSource
from webhook.run.observed import OwnedPod

JOBSET = ENGINES["jobset/pytorch"].pods
DASK = ENGINES["dask/dask"].pods


def raw(uid: str, parent: str, kind: str = "Job", **metadata: Any) -> Json:
    """An object with a controller."""
    owner = {"kind": kind, "name": parent, "uid": parent, "controller": True}
    named = {"name": uid, "namespace": "lab", "uid": uid, "ownerReferences": [owner]}
    return {"metadata": {**named, **metadata}}


def raw_pod(uid: str, parent: str, source: PodSource = JOBSET, **status: Any) -> Json:
    labels = {source.label: "mnist", source.role: "worker"}
    pod = raw(uid, parent, labels=labels)
    return {**pod, "spec": {"containers": [{"name": "main"}]}, "status": status}


class Stage:
    """The pods of one operator, by what the watches deliver."""

    def __init__(self, source: PodSource = JOBSET) -> None:
        self.notified: list[str] = []
        self.pods = EnginePods(Watches(Api().client), source, "", self.notified.append)

    def put(self, resource: str, whole: Json) -> Stage:
        """An object is created or changed."""
        cache: Any = self.pods.cache if resource == "pods" else self.pods.owners[resource]
        cache.put(f"lab/{whole['metadata']['name']}", cache.keep(whole))
        return self

    def delete(self, resource: str, name: str) -> Stage:
        cache: Any = self.pods.cache if resource == "pods" else self.pods.owners[resource]
        cache.put(f"lab/{name}", None)
        return self

    def of(self, owner: str) -> list[str]:
        """The uids of the pods of an engine's object."""
        return sorted(pod.uid for pod in self.pods.of("lab", owner))


CHAIN = (
    ("daskclusters", raw("cluster", "daskjob")),
    ("daskworkergroups", raw("group", "cluster")),
    ("deployments", raw("deployment", "group")),
    ("replicasets", raw("set", "deployment")),
    ("pods", raw_pod("pod", "set", DASK)),
)


@pytest.mark.parametrize(
    "order", [CHAIN, CHAIN[::-1], (*CHAIN[2:], *CHAIN[:2]), (*CHAIN[::2], *CHAIN[1::2])]
)
def test_a_pod_is_found_through_all_its_owners_in_any_order(
    order: Sequence[tuple[str, Json]],
) -> None:
    """Each watch delivers when it likes."""
    stage = Stage(DASK)
    for resource, whole in order:
        stage.put(resource, whole)
    assert stage.of("daskjob") == ["pod"]
    assert stage.notified[-1] == "daskjob"
    assert [pod.withdrawn for pod in stage.pods.of("lab", "daskjob")] == [False]
    assert stage.pods.of("elsewhere", "daskjob") == ()


def test_labels_alone_lead_to_no_object() -> None:
    """Nor does a Job that something else owns."""
    stage = Stage().put("jobs", raw("job", "jobset")).put("jobs", raw("other", "foreign"))
    stage.put("pods", raw_pod("ours", "job")).put("pods", raw_pod("theirs", "other"))
    stage.put("pods", raw_pod("forged", "jobset-uid-in-a-label"))
    assert stage.of("jobset") == ["ours"]


def test_a_pod_stays_with_its_object_when_the_job_is_deleted_before_it() -> None:
    """The engine deletes it: it is no disruption, and not remembered."""
    stage = Stage().put("jobs", raw("job", "jobset")).put("pods", raw_pod("pod", "job"))
    stage.delete("jobs", "job")
    (pod,) = stage.pods.of("lab", "jobset")
    assert pod.withdrawn
    stage.notified.clear()
    stage.delete("pods", "pod")
    assert stage.notified == ["jobset"]
    assert stage.of("jobset") == []
    assert stage.pods.gone("jobset") == ()


def test_a_pod_of_a_job_that_is_being_deleted_is_withdrawn() -> None:
    """JobSet deletes Jobs in the foreground: the Job goes last."""
    stage = Stage().put("jobs", raw("job", "jobset")).put("pods", raw_pod("pod", "job"))
    stage.put("jobs", raw("job", "jobset", deletionTimestamp="2026-08-01T12:00:00Z"))
    (pod,) = stage.pods.of("lab", "jobset")
    assert pod.withdrawn


def test_a_failed_pod_is_remembered_though_its_job_is_deleted() -> None:
    """Its failure may not be counted yet."""
    stage = Stage().put("jobs", raw("job", "jobset"))
    stage.put("pods", raw_pod("pod", "job", phase="Failed"))
    stage.delete("jobs", "job").delete("pods", "pod")
    assert [pod.uid for pod in stage.pods.gone("jobset")] == ["pod"]


def test_a_live_read_tells_whether_a_deleted_pod_was_withdrawn() -> None:
    """The watch of Jobs may be behind that of pods."""
    stage = Stage().put("jobs", raw("job", "jobset")).put("pods", raw_pod("pod", "job"))
    stage.delete("pods", "pod")
    assert [pod.withdrawn for pod in stage.pods.gone("jobset")] == [False]
    assert [pod.withdrawn for pod in stage.pods.gone("jobset", {})] == [True]
    there = {"job": Link("job", "jobset", deleted=False)}
    assert [pod.withdrawn for pod in stage.pods.gone("jobset", there)] == [False]


def test_what_is_between_an_object_and_its_pods_is_known() -> None:
    """By the watches, or by a live read; the training operator has nothing between."""
    stage = Stage(DASK).put("daskclusters", raw("cluster", "daskjob"))
    assert stage.pods.has_owner("daskjob")
    assert not stage.pods.has_owner("other")
    assert not stage.pods.has_owner("daskjob", {})
    assert Stage(ENGINES["kubeflow/pytorch"].pods).pods.has_owner("any")


def test_owners_in_a_circle_end() -> None:
    """Any author can write owner references."""
    links = {"a": Link("a", "b", deleted=False), "b": Link("b", "a", deleted=False)}
    assert find_root(links, "a", 4) in links
    pod = OwnedPod("pod", "pod", "a", "worker", 0, 0, "Running")
    assert is_withdrawn(links, pod, "object", 4)
    stage = Stage(DASK).put("deployments", raw("a", "b")).put("replicasets", raw("b", "a"))
    stage.put("pods", raw_pod("pod", "a", DASK)).delete("pods", "pod")
    assert stage.of("a") == stage.of("b") == []


def test_the_owners_of_a_nodes_pods_follow_pods_and_owners() -> None:
    """A pod that moves to another owner's chain, is bound, ends or is deleted."""
    stage = Stage()

    def bound(uid: str, parent: str, node: str) -> Json:
        pod = raw_pod(uid, parent)
        return {**pod, "spec": {**pod["spec"], "nodeName": node}}

    stage.put("pods", bound("p", "job", "a")).put("pods", bound("q", "other", "a"))
    assert stage.pods.owners_on("a") == {"job", "other"}
    stage.put("jobs", raw("job", "jobset", "JobSet"))
    assert stage.pods.owners_on("a") == {"jobset", "other"}
    stage.put("pods", bound("q", "other", "b"))
    assert (stage.pods.owners_on("a"), stage.pods.owners_on("b")) == ({"jobset"}, {"other"})
    stage.delete("pods", "p").delete("pods", "q")
    assert (stage.pods.owners_on("a"), stage.pods.owners_on("b")) == (set(), set())


def test_an_owner_of_the_last_link_that_went_owns_none() -> None:
    """Of two links one may go, or change hands."""
    stage = Stage()
    stage.put("jobs", raw("one", "jobset", "JobSet")).put("jobs", raw("two", "jobset", "JobSet"))
    stage.delete("jobs", "one")
    assert stage.pods.has_owner("jobset")
    stage.put("jobs", raw("two", "another", "JobSet"))
    assert (stage.pods.has_owner("jobset"), stage.pods.has_owner("another")) == (False, True)
