"""The pods of Ray's kinds are those that KubeRay makes."""

from __future__ import annotations

from tests.marked_pods import who
from tests.workloads.manifests import Json, labels, template, templates
from webhook.sources.kind_model import UNKNOWN

CLUSTER: Json = {
    "headGroupSpec": {"template": template()},
    "workerGroupSpecs": [
        {"groupName": "small", "replicas": 3, "template": template()},
        {"groupName": "large", "minReplicas": 1, "numOfHosts": 4, "template": template()},
    ],
}


def test_a_ray_cluster_has_a_head_and_worker_groups() -> None:
    """Each group is a template; a group of several hosts counts every one."""
    found = templates("ray.io/v1", "RayCluster", CLUSTER)
    assert [each.describe() for each in found] == ["head", "worker small × 3", "worker large × 4"]
    head, worker = who(labels(found[0])), who(labels(found[1]))
    assert (head.run, head.framework, head.role) == ("mnist", "ray", "head")
    assert (worker.role, worker.coordinator) == ("worker", False)
    assert labels(found[1])["ray.io/group"] == "small"


def test_a_ray_job_makes_a_cluster_and_a_submitter() -> None:
    """The cluster's name has a random end; the submitter is a Job's pod and no part of it."""
    spec = {"rayClusterSpec": CLUSTER, "submitterPodTemplate": template(app="submit")}
    found = templates("ray.io/v1", "RayJob", spec)
    assert [each.part for each in found] == ["head", "worker small", "worker large", "submitter"]
    assert who(labels(found[0])).run == "mnist-xxxxx"
    assert labels(found[3]) == {
        "app": "submit",
        "batch.kubernetes.io/job-name": "mnist",
        "job-name": "mnist",
        "batch.kubernetes.io/controller-uid": UNKNOWN,
        "controller-uid": UNKNOWN,
    }


def test_a_ray_job_without_a_template_for_its_submitter_has_one_nonetheless() -> None:
    """A container and nothing else; in other modes no pod of its own submits."""
    *_, found = templates("ray.io/v1", "RayJob", {"rayClusterSpec": CLUSTER})
    assert found.describe() == "submitter"
    assert found.pod(0)["spec"] == {"containers": [{"name": "ray-job-submitter"}]}
    spec = {"rayClusterSpec": CLUSTER, "submissionMode": "HTTPMode"}
    assert len(templates("ray.io/v1", "RayJob", spec)) == 3


def test_a_ray_cron_job_makes_ray_jobs() -> None:
    """Whose names have a random end, and so their clusters'."""
    spec = {"jobTemplate": {"rayClusterSpec": CLUSTER}}
    found = templates("ray.io/v1", "RayCronJob", spec)
    assert [each.part for each in found] == ["head", "worker small", "worker large", "submitter"]
    assert who(labels(found[0])).run == "mnist-xxxxx-xxxxx"
    assert labels(found[3])["job-name"] == "mnist-xxxxx"


def test_a_ray_service_makes_a_cluster() -> None:
    """From another field; KubeRay labels its pods, so they are known to serve."""
    found = templates("ray.io/v1", "RayService", {"rayClusterConfig": CLUSTER})
    assert [each.part for each in found] == ["head", "worker small", "worker large"]
    assert {who(labels(each)).kind for each in found} == {"service"}
    (first, *_) = templates("ray.io/v1", "RayCluster", CLUSTER)
    assert who(labels(first)).kind == "job"
