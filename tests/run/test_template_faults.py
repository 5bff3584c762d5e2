"""What is wrong with a Run's templates, and with its pods, is told where the Run says it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pod_schema.templates import (
    Json,
    annotated,
    asking,
    in_main,
    mounting,
    profiled,
    template,
)
from tests.run.runs import a_run
from tests.wording import mentions
from webhook.policy.findings import path_text
from webhook.run.plan import plan
from webhook.run.template_faults import delegated_faults, faults

ROLES: Json = {"master": {}, "worker": {"count": 3}}


def told(base: Json, framework: str | None = "pytorch", **replicas: Any) -> list[str]:
    """The paths of the errors of a run with this template."""
    spec: Json = {"template": base}
    if framework:
        spec |= {"framework": framework, "replicas": {**ROLES, **replicas}}
    found = faults(plan(a_run("r", spec)))
    assert {each.severity for each in found} <= {"error"}
    return [path_text(each.path) for each in found]


def test_a_typo_is_reported_once_in_each_template_that_has_it() -> None:
    """Not in each pod that comes of it."""
    typo = template(nodeSelectors={"a": "b"})
    assert told(typo) == ["spec.template.spec.nodeSelectors"]
    assert told(typo, None) == ["spec.template.spec.nodeSelectors"]
    worker: Json = {"template": {"spec": {"toleration": []}}}
    assert told(template(), worker=worker) == [
        "spec.replicas.worker.template.spec.toleration",
    ]


def test_a_template_of_a_role_may_say_only_what_differs() -> None:
    """It is judged as part of the pod: the volume that it mounts stands in the run's template."""
    base = mounting(volumes=("data",))
    mount = {"spec": {"containers": [{"name": "main", "volumeMounts": [
        {"name": "data", "mountPath": "/data"}]}]}}  # fmt: skip
    assert told(base, worker={"template": mount}) == []
    assert told(template(), worker={"template": mount}) == [
        "spec.replicas.worker.template.spec.containers[0].volumeMounts[0].name"
    ]


@pytest.mark.parametrize(
    ("replicas", "path"),
    [
        ({}, "spec.template.spec.containers[0].resources.requests.cpu"),
        (
            {"worker": {"resources": {"requests": {"cpu": 4}, "limits": {"cpu": 2}}}},
            "spec.replicas.worker.resources.requests.cpu",
        ),
    ],
)
def test_a_request_above_its_limit_is_reported_where_it_is_written(
    replicas: Json, path: str
) -> None:
    """In the template, or in a role's resources."""
    base = asking({"cpu": 2}, {"cpu": 1}) if not replicas else template()
    assert path in told(base, **replicas)


def test_annotations_and_profiles_that_the_api_server_refuses_are_errors() -> None:
    """Of a template, or of an environment, each where it is written."""
    base = annotated("controller.kubernetes.io/pod-deletion-cost", "high")
    cost = "annotations[controller.kubernetes.io/pod-deletion-cost]"
    assert told(base) == [f"spec.template.metadata.{cost}"]
    environment = {"annotations": base["metadata"]["annotations"]}
    assert told(template(), worker={"environment": environment}) == [
        f"spec.replicas.worker.environment.{cost}"
    ]
    base = annotated("seccomp.security.alpha.kubernetes.io/pod", "unconfined")
    base["spec"]["securityContext"] = {"seccompProfile": {"type": "RuntimeDefault"}}
    assert told(base) == ["spec.template.spec.securityContext.seccompProfile.type"]
    assert told(template(**profiled("seccompProfile", "../p"))) == [
        "spec.template.spec.securityContext.seccompProfile.localhostProfile"
    ]


@pytest.mark.parametrize("labels", [{"a b": "c"}, {"team": "a b"}, {"team": "-"}])
def test_labels_that_the_api_server_refuses_are_errors(labels: Json) -> None:
    """Of each template, where they are written."""
    (key,) = labels
    path = f"metadata.labels{'[a b]' if ' ' in key else '.team'}"
    base = template(labels=labels)
    assert told(base) == told(base, None) == [f"spec.template.{path}"]
    worker: Json = {"template": {"metadata": {"labels": labels}}}
    assert told(template(), worker=worker) == [f"spec.replicas.worker.template.{path}"]


def test_what_the_framework_adds_is_not_judged_as_the_authors() -> None:
    """Variables that the run tells come before the author's own."""
    assert told(in_main(env=[{"name": "A", "value": 5}])) == [
        "spec.template.spec.containers[0].env[0].value"
    ]


@pytest.mark.parametrize("backend", ["kubeflow", "jobset"])
def test_the_pods_of_another_engine_are_judged_like_those_of_a_native_run(backend: str) -> None:
    """Before the engine finds that the API server refuses them."""
    spec = {"backend": backend, "framework": "pytorch", "replicas": ROLES}
    (fault,) = delegated_faults(a_run("r", {**spec, "template": mounting("data")}))
    assert path_text(fault.path) == "spec.template.spec.containers[0].volumeMounts[0].name"
    typo = delegated_faults(a_run("r", {**spec, "template": template(nodeSelectors={"a": "b"})}))
    assert [path_text(each.path) for each in typo] == ["spec.template.spec.nodeSelectors"]


def test_the_pod_of_a_notebook_is_judged_too() -> None:
    """It comes of a Deployment."""
    spec = {"kind": "notebook", "template": mounting("data"), "ports": [{"port": 80}]}
    (fault,) = faults(plan(a_run("r", spec)))
    assert path_text(fault.path) == "spec.template.spec.containers[0].volumeMounts[0].name"


def test_a_deployments_pod_has_no_deadline() -> None:
    """The API server takes none in a Deployment's template."""
    spec = {"kind": "notebook", "template": template(activeDeadlineSeconds=5)}
    (fault,) = faults(plan(a_run("r", {**spec, "ports": [{"port": 80}]})))
    assert path_text(fault.path) == "spec.template.spec.activeDeadlineSeconds"
    mentions(fault.message, "Deployment")
    assert told(template(activeDeadlineSeconds=5)) == []


def test_a_run_is_not_called_as_a_service_that_every_cluster_has() -> None:
    """Its own Service would never be created."""
    spec = {"template": template()}
    (fault,) = faults(plan(a_run("kubernetes", spec, namespace="default")))
    assert path_text(fault.path) == "metadata.name"
    assert not faults(plan(a_run("kubernetes", spec, namespace="ml")))


@pytest.mark.parametrize(
    ("ports", "names"),
    [
        ([{"containerPort": 53}], [None]),
        ([{"containerPort": 53}, {"containerPort": 53, "protocol": "UDP"}],
         ["port-53", "port-53-udp"]),
        ([{"containerPort": 53}, {"containerPort": 80, "name": "port-53"}],
         ["port-53-tcp", "port-53"]),
        ([{"containerPort": 53}, {"containerPort": 53}, {"containerPort": 54}],
         ["port-53", "port-54"]),
    ],
)  # fmt: skip
def test_no_two_ports_of_a_service_are_called_alike(
    ports: list[Json], names: list[str | None]
) -> None:
    """The API server would refuse it, and the notebook would have no address."""
    made = plan(a_run("r", {"kind": "notebook", "template": in_main(ports=ports)}))
    assert [each.get("name") for each in made.service()["spec"]["ports"]] == names
