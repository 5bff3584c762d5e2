"""What is wrong with the templates of each kind, where the object has them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.pod_schema.templates import Json, annotated, mounting, template
from tests.wording import mentions
from tests.workloads.manifests import made_by, templates
from webhook.names import MIRROR_POD
from webhook.pod_schema.field_checks import Fault
from webhook.workloads.object import Object
from webhook.workloads.template_search import pod_templates
from webhook.workloads.workload_faults import is_judged, template_faults

TYPO = template(nodeSelectors={"a": "b"})
TYPO_OF_A_JOB = template(nodeSelectors={"a": "b"}, restartPolicy="Never")


def faults(api_version: str, kind: str, spec: Json) -> list[Fault]:
    """Those of all templates of such an object."""
    found = templates(api_version, kind, spec)
    assert found
    return [fault for each in found for fault in template_faults(each)]


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "path"),
    [
        ("v1", "Pod", TYPO["spec"], ("spec",)),
        ("apps/v1", "Deployment", {"template": TYPO}, ("spec", "template", "spec")),
        (
            "batch/v1",
            "CronJob",
            {"jobTemplate": {"spec": {"template": TYPO_OF_A_JOB}}},
            ("spec", "jobTemplate", "spec", "template", "spec"),
        ),
        (
            "kubeflow.org/v1",
            "TFJob",
            {"tfReplicaSpecs": {"Worker": {"template": TYPO}}},
            ("spec", "tfReplicaSpecs", "Worker", "template", "spec"),
        ),
    ],
)
def test_a_typo_is_an_error_at_its_path_in_the_object(
    api_version: str, kind: str, spec: Json, path: tuple[str, ...]
) -> None:
    """In each kind that is known."""
    (fault,) = faults(api_version, kind, spec)
    assert (fault.path, fault.severity) == ((*path, "nodeSelectors"), "error")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"])
def test_pods_that_are_replaced_have_no_deadline(kind: str) -> None:
    """The API server refuses the template."""
    (fault,) = faults("apps/v1", kind, {"template": template(activeDeadlineSeconds=5)})
    assert fault.path == ("spec", "template", "spec", "activeDeadlineSeconds")
    job = {"template": template(activeDeadlineSeconds=5, restartPolicy="Never")}
    assert faults("batch/v1", "Job", job) == []


def test_texts_that_the_api_server_refuses_are_errors() -> None:
    """An object's own name, and the annotations of its pods."""
    named: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "My_Pod"}, **template()}
    (fault,) = (each for one in pod_templates(Object("f", named)) for each in template_faults(one))
    assert (fault.path, fault.severity) == (("metadata", "name"), "error")
    pods = template(restartPolicy="Never") | {"metadata": {"annotations": {MIRROR_POD: "x"}}}
    (fault,) = faults("batch/v1", "Job", {"template": pods})
    assert fault.path == ("spec", "template", "metadata", "annotations", MIRROR_POD)
    apart = annotated("container.apparmor.security.beta.kubernetes.io/side", "unconfined")
    assert len(faults("apps/v1", "Deployment", {"template": apart})) == 1
    assert faults("kubeflow.org/v1", "TFJob", {"tfReplicaSpecs": {"PS": {"template": apart}}}) == []
    pods["spec"]["nodeName"] = "n"
    assert faults("batch/v1", "Job", {"template": pods}) == []


@pytest.mark.parametrize(
    ("kind", "spec", "path"),
    [
        ("Job", {"template": template()}, ("spec", "restartPolicy")),
        ("Job", {"template": template(restartPolicy="Always")}, ("spec", "restartPolicy")),
        ("Deployment", {"template": template(restartPolicy="Never")}, ("spec", "restartPolicy")),
        (
            "Deployment",
            {"selector": {"matchLabels": {"a": "1"}}, "template": template(labels={"a": "2"})},
            ("metadata", "labels"),
        ),
        ("Deployment", {"template": template(labels={"a": "b c"})}, ("metadata", "labels", "a")),
    ],
)
def test_what_the_kind_does_not_take_is_an_error(
    kind: str, spec: Json, path: tuple[str, ...]
) -> None:
    """As the API server refuses it."""
    version = "batch/v1" if kind == "Job" else "apps/v1"
    (fault,) = faults(version, kind, spec)
    assert (fault.path, fault.severity) == (("spec", "template", *path), "error")


def test_of_a_kind_that_is_not_known_only_typos_are_warned_of() -> None:
    """What looks like a pod template may have fields that a pod has not."""
    own = template(nodeSelectors={}, scalingMetric="rps")
    own["spec"]["containers"][0]["volumeMounts"] = [{"name": "elsewhere"}]
    (fault,) = faults("serving.example/v1", "Model", {"template": own})
    assert (fault.path[-1], fault.severity) == ("nodeSelectors", "warning")


def test_claims_of_a_stateful_set_are_volumes() -> None:
    """Its controller mounts them under their names."""
    claims = [{"metadata": {"name": "data"}}]
    spec = {"template": mounting("data"), "volumeClaimTemplates": claims}
    assert faults("apps/v1", "StatefulSet", spec) == []
    (fault,) = faults("apps/v1", "StatefulSet", {"template": mounting("data")})
    assert fault.severity == "error"
    broken: Json = {"template": mounting("data"), "volumeClaimTemplates": {"data": 1}}
    assert faults("apps/v1", "StatefulSet", broken) == [fault]


def test_claims_of_a_job_set_are_volumes() -> None:
    """Those of its volumeClaimPolicies, in a runtime of Trainer's too."""
    job = {"name": "node", "template": {"spec": {"template": mounting("data")}}}
    policies = [{"templates": [{"metadata": {"name": "data"}}]}, {"templates": None}, None]
    spec: Json = {"replicatedJobs": [job], "volumeClaimPolicies": policies}
    assert faults("jobset.x-k8s.io/v1alpha2", "JobSet", spec) == []
    runtime = {"template": {"spec": spec}}
    assert faults("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", runtime) == []
    del spec["volumeClaimPolicies"]
    (fault,) = faults("jobset.x-k8s.io/v1alpha2", "JobSet", spec)
    assert fault.severity == "warning"


def test_other_controllers_may_add_volumes_of_their_own() -> None:
    """As the MPI operator adds its keys; so a mount without one is a warning."""
    spec = {"mpiReplicaSpecs": {"Launcher": {"template": mounting("ssh-auth")}}}
    (fault,) = faults("kubeflow.org/v2beta1", "MPIJob", spec)
    assert fault.severity == "warning"


@pytest.mark.parametrize(
    ("api_version", "kind", "judged"),
    [("v1", "Pod", True), ("apps/v1", "Deployment", True), ("kubeflow.org/v1", "TFJob", False)],
)
def test_the_api_server_judges_its_own_kinds(api_version: str, kind: str, judged: bool) -> None:
    """Of others it takes any template."""
    bare = template()
    spec = bare["spec"] if kind == "Pod" else {"template": bare}
    spec = {"tfReplicaSpecs": {"Worker": spec}} if kind == "TFJob" else spec
    (found,) = templates(api_version, kind, spec)
    assert is_judged(found) is judged


# Of each kind a spec, and where its number of pods is.
COUNTS: list[tuple[str, str, Json, str]] = [
    ("apps/v1", "Deployment", {"template": template()}, "replicas"),
    ("batch/v1", "Job", {"template": template(restartPolicy="Never")}, "parallelism"),
    ("kubeflow.org/v1", "TFJob", {"tfReplicaSpecs": {"Worker": {"template": template()}}}, "*"),
    (
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": template()}}}]},
        "replicatedJobs.0.template.spec.parallelism",
    ),
    (
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        {"leaderWorkerTemplate": {"workerTemplate": template()}},
        "leaderWorkerTemplate.size",
    ),
    (
        "ray.io/v1",
        "RayCluster",
        {"workerGroupSpecs": [{"groupName": "w", "template": template()}]},
        "workerGroupSpecs.0.replicas",
    ),
    (
        "kubernetes.dask.org/v1",
        "DaskCluster",
        {"worker": {"spec": template()["spec"]}},
        "worker.replicas",
    ),
    (
        "sparkoperator.k8s.io/v1beta2",
        "SparkApplication",
        {"driver": {}, "executor": {}},
        "executor.instances",
    ),
    (
        "batch.volcano.sh/v1alpha1",
        "Job",
        {"tasks": [{"name": "w", "template": template()}]},
        "tasks.0.replicas",
    ),
    (
        "serving.kserve.io/v1beta1",
        "InferenceService",
        {"predictor": template()["spec"]},
        "predictor.minReplicas",
    ),
]


def with_count(spec: Json, where: str, value: object) -> tuple[Json, tuple[str | int, ...]]:
    """The spec with a number of pods, and the number's path in the object."""
    path = "tfReplicaSpecs.Worker.replicas" if where == "*" else where
    steps = [int(step) if step.isdecimal() else step for step in path.split(".")]
    made: Json = copy.deepcopy(spec)
    holder: Any = made
    for step in steps[:-1]:
        holder = holder[step]
    holder[steps[-1]] = value
    return made, ("spec", *steps)


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "where"), COUNTS, ids=[each[1] for each in COUNTS]
)
@pytest.mark.parametrize("value", ["4", "four", -1, 2.5, [3], True, {"a": 1}])
def test_a_number_of_pods_that_is_none_is_an_error(
    api_version: str, kind: str, spec: Json, where: str, value: object
) -> None:
    """With its path and its value: nobody else says what it is taken for."""
    made, path = with_count(spec, where, value)
    found = [each for each in faults(api_version, kind, made) if each.path == path]

    assert {each.severity for each in found} == {"error"}
    mentions(found[0].message, json.dumps(value), "whole number that is 0 or more")


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "where"), COUNTS, ids=[each[1] for each in COUNTS]
)
@pytest.mark.parametrize("value", [None, 0, 3, 3.0])
def test_a_whole_number_of_pods_is_no_error(
    api_version: str, kind: str, spec: Json, where: str, value: object
) -> None:
    """Nor is null; kubectl sends 3.0 as 3."""
    made, _ = with_count(spec, where, value)
    found = templates(api_version, kind, made)

    assert not [each for each in found if each.miscounted]
    if value == 3:
        # A group of LeaderWorkerSet has a leader beside its workers.
        assert (2 if kind == "LeaderWorkerSet" else 3) in [each.count for each in found]


def test_a_number_of_an_unknown_kind_is_a_warning() -> None:
    """What looks like a template may be something else; it says what the number is taken for."""
    spec = {"replicas": "4", "template": template()}
    (fault,) = faults("example.com/v1", "Thing", spec)

    assert (fault.path, fault.severity) == (("spec", "replicas"), "warning")
    mentions(fault.message, '"4"', "taken for 1")


def test_the_number_of_nodes_of_a_trainjob_is_checked_in_its_runtime_too() -> None:
    """The runtime's is reported where the job names it."""
    jobs = [{"name": "node", "template": {"spec": {"template": template()}}}]
    spec = {"mlPolicy": {"numNodes": "2"}, "template": {"spec": {"replicatedJobs": jobs}}}
    runtime = made_by("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", spec)
    own = {"runtimeRef": {"name": "mnist"}, "trainer": {"numNodes": -3}}
    job = made_by("trainer.kubeflow.org/v1alpha1", "TrainJob", own)
    (found,) = pod_templates(job, [runtime])
    by_path = {each.path: each.message for each in template_faults(found)}

    mentions(by_path["spec", "trainer", "numNodes"], "-3")
    mentions(by_path["spec", "runtimeRef"], "mlPolicy.numNodes", "Runtime/mnist", '"2"')
