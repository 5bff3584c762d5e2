"""From which template of an object a live pod was made."""

from __future__ import annotations

from typing import Any

import pytest

from tests.objects import an_object
from webhook.evaluation.templates import templates_of as of_live_object
from webhook.questions.live.pod_stamp import likely_templates
from webhook.workloads.object import Object
from webhook.workloads.template import PodTemplate
from webhook.workloads.template_search import pod_templates

Json = dict[str, Any]


def template(**labels: str) -> Json:
    return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main"}]}}


def templates_of(api_version: str, kind: str, spec: Json) -> list[PodTemplate]:
    """The templates of an object named t."""
    value = an_object(api_version, kind, {"name": "t", "namespace": "ml"}, spec)
    return pod_templates(Object("cluster", value))


def likely(templates: list[PodTemplate], labels: dict[str, str]) -> list[str]:
    """The parts whose templates fit the labels best."""
    return [each.part for each in likely_templates(templates, labels)]


def pytorch(worker: Json) -> list[PodTemplate]:
    replicas = {
        "Master": {"replicas": 1, "template": template()},
        "Worker": {"replicas": 3, "template": worker},
    }
    return templates_of("kubeflow.org/v1", "PyTorchJob", {"pytorchReplicaSpecs": replicas})


def test_labels_that_were_added_to_a_template_since_do_not_count() -> None:
    """The operator's own label names the role, whatever else its author has changed."""
    made = {
        each.part: each.pod(each.count - 1 if each.count else 0) for each in pytorch(template())
    }
    later = pytorch(template(a="1", b="2", c="3", d="4", e="5", f="6"))
    for part, pod in made.items():
        assert likely(later, pod["metadata"]["labels"]) == [part]


def ray(**worker: str) -> list[PodTemplate]:
    """The templates of a RayCluster with one group of workers, whose template has these labels."""
    group = {"groupName": "small", "replicas": 2, "template": template(**worker)}
    spec = {"headGroupSpec": {"template": template()}, "workerGroupSpecs": [group]}
    return templates_of("ray.io/v1", "RayCluster", spec)


def test_a_label_of_another_role_in_a_template_does_not_decide_alone() -> None:
    """KubeRay keeps an author's ray.io/node-type; the group still shows the template."""
    edited = {"ray.io/node-type": "head"}
    _, worker = ray(**edited)
    labels = {**worker.pod(0)["metadata"]["labels"], **edited}
    assert likely(ray(**edited), labels) == [worker.part]


def test_a_pod_without_a_sign_of_its_template_fits_all_of_them() -> None:
    """So the caller cannot tell them apart."""
    group = {"ray.io/group": "small", "ray.io/identifier": "t-head"}
    labels = {"ray.io/node-type": "head", **group}
    assert likely(ray(), {"ray.io/cluster": "t"}) == likely(ray(), {}) == ["head", "worker small"]
    assert likely(ray(), labels) == ["head"]


@pytest.mark.parametrize(
    ("labels", "parts"),
    [
        ({"app": "a"}, ["a per call"]),
        ({"app": "b", "more": "x"}, ["b per call"]),
        ({"app": "c"}, ["a per call", "b per call"]),
    ],
)
def test_without_labels_of_the_operator_those_of_the_templates_decide(
    labels: dict[str, str], parts: list[str]
) -> None:
    """Argo adds the same labels to the pods of each template."""
    named = [
        {"name": name, "container": {"name": "main"}, "metadata": {"labels": {"app": name}}}
        for name in ("a", "b")
    ]
    found = templates_of("argoproj.io/v1alpha1", "Workflow", {"templates": named})
    assert likely(found, labels) == parts


RUN = {
    "apiVersion": "fairlead.dev/v1alpha1",
    "kind": "Run",
    "metadata": {"name": "r", "namespace": "ml"},
    "spec": {
        "framework": "pytorch",
        "template": {"spec": {"containers": [{"name": "main", "image": "x"}]}},
        "replicas": {
            "master": {},
            "worker": {
                "count": 4,
                "byIndex": [{"index": 2, "environment": {"nodeSelector": {"pool": "large"}}}],
            },
        },
    },
}


def test_a_replica_with_a_template_of_its_own_is_found_by_its_index() -> None:
    """The other replicas of its role have another template."""
    found = of_live_object(Object("cluster", RUN))
    assert [each.describe() for each in found] == ["master", "worker × 3", "worker 2"]
    for each in found:
        for index in range(each.count or 0):
            labels = each.pod(index)["metadata"]["labels"]
            assert likely_templates(found, labels) == [each]
