"""The pods of JobSets are those that the JobSet controller makes."""

from __future__ import annotations

import pytest

from tests.marked_pods import jobset, who
from tests.workloads.manifests import Json, labels, template, templates
from webhook.identity import identify

# Labels whose values nobody knows beforehand.
_RANDOM = {"jobset.sigs.k8s.io/job-key", "batch.kubernetes.io/controller-uid"}


def replicated(name: str, replicas: int = 1, **job: object) -> Json:
    spec = {"template": {"spec": {**job, "template": template()}}}
    return {"name": name, "replicas": replicas, **spec}


def test_a_job_sets_pods_carry_its_labels() -> None:
    """Those of JobSet and those of the Job that it makes."""
    spec = {"replicatedJobs": [replicated("workers", parallelism=4)]}
    (found,) = templates("jobset.x-k8s.io/v1alpha2", "JobSet", spec, name="llama")
    expected = jobset("workers", pod=3)
    seen = labels(found, 3)
    assert {key: seen[key] for key in expected.keys() - _RANDOM} == {
        key: value for key, value in expected.items() if key not in _RANDOM
    }
    assert found.describe() == "workers × 4"


def test_pods_of_several_jobs_are_counted_job_by_job() -> None:
    """Two jobs of three pods are six pods; the fifth is the second of the second job."""
    jobs = [replicated("head"), replicated("workers", replicas=2, parallelism=3)]
    _, workers = templates("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})
    assert workers.count == 6
    seen = labels(workers, 4)
    assert seen["jobset.sigs.k8s.io/job-index"] == "1"
    assert seen["jobset.sigs.k8s.io/job-global-index"] == "2"
    assert seen["batch.kubernetes.io/job-completion-index"] == "1"
    assert seen["job-name"] == "mnist-workers-1"


def test_the_coordinator_that_the_set_names_leads() -> None:
    """Every pod carries the address of the one."""
    spec = {
        "coordinator": {"replicatedJob": "node", "jobIndex": 0, "podIndex": 1},
        "replicatedJobs": [replicated("node", parallelism=2)],
    }
    (found,) = templates("jobset.x-k8s.io/v1alpha2", "JobSet", spec)
    assert labels(found)["jobset.sigs.k8s.io/coordinator"] == "mnist-node-0-1.mnist"
    assert [who(labels(found, index)).coordinator for index in (0, 1)] == [False, True]


def test_a_runtime_of_trainer_is_a_job_set() -> None:
    """Under the name that stands for any TrainJob."""
    spec = {"template": {"spec": {"replicatedJobs": [replicated("node")]}}}
    (found,) = templates("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", spec)
    identity = who(labels(found))
    assert (identity.run, identity.role) == ("trainjob", "worker")


def test_a_job_set_gives_claims_to_the_pods_that_mount_them() -> None:
    """A pod that mounts none has none."""
    container = {
        "name": "main",
        "image": "i",
        "volumeMounts": [{"name": "data", "mountPath": "/d"}],
    }
    mounting = replicated("workers")
    mounting["template"]["spec"]["template"] = {"spec": {"initContainers": [container]}}
    spec = {
        "replicatedJobs": [replicated("driver"), mounting],
        "volumeClaimPolicies": [{"templates": [{"metadata": {"name": "data"}}]}],
    }
    driver, workers = templates("jobset.x-k8s.io/v1alpha2", "JobSet", spec)
    assert "volumes" not in driver.pod(0)["spec"]
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "data-mnist"}}
    assert workers.pod(0)["spec"]["volumes"] == [claim]


@pytest.mark.parametrize(("beside", "leads"), [("driver", False), ("ps", True)])
def test_worker_0_leads_unless_another_job_of_the_set_does(beside: str, leads: bool) -> None:
    """The labels of a worker do not show it, but the object does."""
    jobs = [replicated(beside), replicated("workers", parallelism=2)]
    other, workers = templates("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})
    assert (other.led, workers.led) == (not leads, not leads)
    found = identify(labels(workers, 0), {}, {}, led=workers.led)
    assert found
    assert found.coordinator is leads
    assert who(labels(workers, 0)).coordinator
    assert who(labels(other)).coordinator is not leads
