"""What is wrong with the templates of each kind, where the object has them."""

from __future__ import annotations

import pytest

from tests.pod_schema.templates import Json, annotated, mounting, template
from tests.workloads.manifests import templates
from webhook.names import MIRROR_POD
from webhook.pod_schema.field_checks import Fault
from webhook.workloads.find import pod_templates
from webhook.workloads.object import Object
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
