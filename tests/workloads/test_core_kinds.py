"""The pods of Kubernetes' own kinds are those that its controllers make."""

from __future__ import annotations

import pytest

from tests.workloads.manifests import POD_SPEC, labels, made_by, template, templates
from webhook.admission.arrival import Arrival, keeps_placement
from webhook.placement import pod as pods
from webhook.policy.subject import volumes
from webhook.sources.kind_model import UNKNOWN
from webhook.workloads.template import find_unknown_labels
from webhook.workloads.template_search import pod_templates

TEMPLATE = template(app="a")


def test_a_pod_comes_as_it_is() -> None:
    """A bare pod is the object itself."""
    source = made_by("v1", "Pod", POD_SPEC)
    (found,) = pod_templates(source)
    assert found.is_pod
    assert found.pod(0) is source.value
    assert found.describe() == ""


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("apps/v1", "ReplicaSet"), ("v1", "ReplicationController")],
)
def test_replicas_are_alike(api_version: str, kind: str) -> None:
    """As many pods as the object says, one if it says nothing, with the template's labels."""
    (found,) = templates(api_version, kind, {"replicas": 3, "template": TEMPLATE})
    assert labels(found, 0) == labels(found, 2) == {"app": "a"}
    assert found.describe() == "3 pods"
    (single,) = templates(api_version, kind, {"template": TEMPLATE})
    assert single.count == 1


def test_a_stateful_sets_pods_carry_their_names() -> None:
    """Name and index, from the first ordinal on."""
    spec = {"replicas": 2, "ordinals": {"start": 5}, "template": TEMPLATE}
    (found,) = templates("apps/v1", "StatefulSet", spec)
    assert labels(found, 1) == {
        "app": "a",
        "apps.kubernetes.io/pod-index": "6",
        "statefulset.kubernetes.io/pod-name": "mnist-6",
        "controller-revision-hash": UNKNOWN,
    }


def test_a_daemon_sets_pod_is_left_alone() -> None:
    """It is owned by the DaemonSet, and the engine believes that offline."""
    (found,) = templates("apps/v1", "DaemonSet", {"template": TEMPLATE})
    pod = found.pod(0)
    assert "DaemonSet" in keeps_placement(Arrival(pod, "ml", {}), pods.parse_pod(pod))
    assert found.describe() == "one pod per node"


def test_a_jobs_pods_carry_its_name() -> None:
    """By both labels; the completions are the pods, or the parallelism where there are none."""
    (found,) = templates("batch/v1", "Job", {"completions": 4, "template": TEMPLATE})
    assert labels(found, 3) == {
        "app": "a",
        "batch.kubernetes.io/job-name": "mnist",
        "job-name": "mnist",
        "batch.kubernetes.io/controller-uid": UNKNOWN,
        "controller-uid": UNKNOWN,
    }
    assert found.describe() == "4 pods"
    (queue,) = templates("batch/v1", "Job", {"parallelism": 2, "template": TEMPLATE})
    assert queue.count == 2


@pytest.mark.parametrize("manual", [True, False, None])
def test_a_job_with_a_selector_of_its_author_adds_no_name(manual: bool | None) -> None:
    """The API server adds the labels with the selector that it generates; the index is separate."""
    spec = {"manualSelector": manual, "completionMode": "Indexed", "template": TEMPLATE}
    (found,) = templates("batch/v1", "Job", spec)
    index = "batch.kubernetes.io/job-completion-index"
    assert (labels(found).keys() == {"app", index}) is (manual is True)


@pytest.mark.parametrize(
    ("kind", "added"),
    [
        ("Deployment", {"pod-template-hash"}),
        ("DaemonSet", {"controller-revision-hash", "pod-template-generation"}),
        ("StatefulSet", {"controller-revision-hash"}),
        ("ReplicaSet", set()),
    ],
)
def test_labels_whose_values_only_the_controller_knows_are_there(
    kind: str, added: set[str]
) -> None:
    """With a value that no policy can name, and never in the template."""
    (found,) = templates("apps/v1", kind, {"template": TEMPLATE})
    assert find_unknown_labels(found.pod(0)) == added
    assert found.mutated(0, found.pod(0)) == TEMPLATE


def test_a_stored_job_has_the_value_of_its_uid() -> None:
    """The API server has written it into the template."""
    (found,) = templates("batch/v1", "Job", {"template": template(controller_uid="0df2")})
    assert labels(found)["controller-uid"] == "0df2"
    assert find_unknown_labels(found.pod(0)) == {"batch.kubernetes.io/controller-uid"}


def test_an_indexed_jobs_pods_carry_their_index() -> None:
    """As a label, and as the annotation that was there before."""
    spec = {"completions": 4, "completionMode": "Indexed", "template": TEMPLATE}
    (found,) = templates("batch/v1", "Job", spec)
    pod = found.pod(2)
    assert pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] == "2"
    assert pod["metadata"]["annotations"] == {"batch.kubernetes.io/job-completion-index": "2"}


def test_a_cron_jobs_pods_are_a_jobs() -> None:
    """The template stands deeper, and the Job's name is a stand-in."""
    spec = {"jobTemplate": {"spec": {"parallelism": 2, "template": TEMPLATE}}}
    (found,) = templates("batch/v1", "CronJob", spec)
    assert found.labels_path == "spec.jobTemplate.spec.template.metadata.labels"
    assert labels(found)["job-name"] == "mnist-00000000"
    assert found.count == 2


def test_a_template_without_metadata_is_one() -> None:
    """So is one whose metadata is null, as kubectl prints it."""
    for metadata in ({}, {"metadata": None}, {"metadata": {"creationTimestamp": None}}):
        (found,) = templates("batch/v1", "Job", {"template": {**metadata, "spec": POD_SPEC}})
        assert labels(found)["job-name"] == "mnist"


def test_a_stateful_sets_claims_are_volumes_of_its_pods() -> None:
    """Mounted or not. A claim replaces the volume of its name, which stays in the template."""
    claims = [{"metadata": {"name": each}, "spec": {}} for each in ("data", "logs")]
    written = {**POD_SPEC, "volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp"}]}
    spec = {"template": {"spec": written}, "volumeClaimTemplates": claims}
    (found,) = templates("apps/v1", "StatefulSet", spec)
    pod = found.pod(1)
    assert pod["spec"]["volumes"] == [
        {"name": "tmp"},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-mnist-1"}},
        {"name": "logs", "persistentVolumeClaim": {"claimName": "logs-mnist-1"}},
    ]
    assert found.mutated(1, pod)["spec"] == written
    (bare,) = templates("apps/v1", "StatefulSet", {**spec, "template": TEMPLATE})
    assert volumes(bare.pod(0)["spec"]) == {"persistentVolumeClaim"}
    assert bare.mutated(0, bare.pod(0)) == TEMPLATE
