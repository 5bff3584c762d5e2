"""What is done with the template of an object: its replicas are named, and changes go into it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fast_yaml import load_yaml
from webhook.decision.arrival import Arrival, keeps_placement
from webhook.placement import pod as pods
from webhook.workloads.by_kind import KINDS
from webhook.workloads.object import Object
from webhook.workloads.template import PodTemplate
from webhook.workloads.template_search import pod_templates

Json = dict[str, Any]
TRAINER = "trainer.kubeflow.org/v1alpha1"

POD_SPEC = {"containers": [{"name": "main", "image": "i"}]}
TEMPLATE = {"spec": POD_SPEC}


def made_by(api_version: str, kind: str, spec: Json) -> Object:
    about = {"metadata": {"name": "mnist"}, "spec": spec}
    return Object("f.yaml", {"apiVersion": api_version, "kind": kind, **about})


def templates(api_version: str, kind: str, spec: Json) -> list[PodTemplate]:
    return pod_templates(made_by(api_version, kind, spec))


@pytest.mark.parametrize(("group", "kind"), KINDS)
def test_every_known_kind_stands_malformed_objects(group: str, kind: str) -> None:
    """A spec that is missing, or of another shape, gives no templates, and no exception."""
    version = f"{group}/v1" if group else "v1"
    lists = {"replicatedJobs": [1], "workerGroupSpecs": [1]}
    specs: list[Any] = [{}, [], "x", {"template": []}, lists]
    for spec in specs:
        found = templates(version, kind, spec)
        assert found == [] or kind == "Pod"


def test_malformed_runtimes_and_train_jobs_have_no_templates() -> None:
    """Nor an exception."""
    specs: list[Json] = [{}, {"trainer": []}, {"podTemplateOverrides": 3}, {"runtimePatches": [[]]}]
    lists: list[Any] = [[], [1], [{"name": "node"}], [{"template": {"spec": {"template": []}}}]]
    for spec in specs:
        job = made_by(TRAINER, "TrainJob", {"runtimeRef": {"name": "mnist"}, **spec})
        for jobs in lists:
            runtime = {"template": {"spec": {"replicatedJobs": jobs}}}
            broken = made_by(TRAINER, "ClusterTrainingRuntime", runtime)
            assert pod_templates(job, [broken]) == []


def test_a_daemon_sets_pod_keeps_its_placement() -> None:
    """It is owned by the DaemonSet, and the engine believes that offline."""
    (found,) = templates("apps/v1", "DaemonSet", {"template": TEMPLATE})
    pod = found.pod(0)
    assert "DaemonSet" in keeps_placement(Arrival(pod, "ml", {}), pods.parse_pod(pod))


def test_replicas_are_named_by_their_indexes() -> None:
    """All of them by their count, some by which."""
    (found,) = templates("apps/v1", "Deployment", {"replicas": 6, "template": TEMPLATE})
    assert found.describe(range(6)) == "6 pods"
    assert found.describe([0, 2, 3, 4]) == "pods 0, 2-4 of 6"


def test_a_mutated_template_leaves_out_what_the_controller_adds() -> None:
    """What a policy adds stays, in the order of the template; metadata comes first if it is new."""
    (found,) = templates("batch/v1", "Job", {"template": TEMPLATE})
    pod = found.pod(0)
    after = {
        **pod,
        "metadata": {**pod["metadata"], "annotations": {"a": "b"}},
        "spec": {**POD_SPEC, "nodeSelector": {"pool": "ml"}},
    }
    mutated = found.mutated(0, after)
    assert mutated == {"metadata": {"annotations": {"a": "b"}}, "spec": after["spec"]}
    assert list(mutated) == ["metadata", "spec"]


SPARK = """\
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: mnist}
spec: {nodeSelector: {disk: ssd}, driver: {nodeSelector: {pool: steady}, labels: {team: a}}}
"""
ODD = """\
apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: mnist}
spec: {driver: []}
"""
ARGO = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: mnist}
spec: {nodeSelector: {pool: cpu}, templates: [{name: note, script: {image: i}}]}
"""


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        (
            SPARK,
            {
                "nodeSelector": {"disk": "ssd"},
                "driver": {
                    "nodeSelector": {"pool": "steady", "c": "d"},
                    "labels": {"team": "a"},
                    "annotations": {"x": "y"},
                },
            },
        ),
        (
            ARGO,
            {
                "nodeSelector": {"pool": "cpu"},
                "templates": [
                    {
                        "name": "note",
                        "script": {"image": "i"},
                        "nodeSelector": {"pool": "cpu", "c": "d"},
                        "metadata": {"annotations": {"x": "y"}},
                    }
                ],
            },
        ),
        (ODD, {"driver": []}),
    ],
)
def test_what_a_policy_sets_goes_into_the_fields_of_the_object(text: str, spec: Json) -> None:
    """What it adds alone, where others are beside; and nowhere where they have another shape."""
    value = load_yaml(text)
    found = pod_templates(Object("f.yaml", value))[0]
    before = found.template
    metadata = {**before.get("metadata", {}), "annotations": {"x": "y"}}
    selector = {**before["spec"].get("nodeSelector", {}), "c": "d"}
    after = {**before, "metadata": metadata, "spec": {**before["spec"], "nodeSelector": selector}}
    assert found.put(load_yaml(text), after)["spec"] == spec


def test_a_field_of_a_pod_is_found_in_the_object() -> None:
    """For messages about it: in the last of several fields, or beside them."""
    driver = pod_templates(Object("f.yaml", load_yaml(SPARK)))[0]
    at = ("spec", "driver")
    assert driver.path_in_object(("spec", "nodeSelector", "a")) == (*at, "nodeSelector", "a")
    assert driver.path_in_object(("metadata", "labels", "x")) == (*at, "labels", "x")
    assert driver.path_in_object(("spec", "volumes")) == driver.path
