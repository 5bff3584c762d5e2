"""What is wrong with a Run's templates, and with its pods, is told where the Run says it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pod_schema.templates import Json, asking, in_main, mounting, template
from tests.run.runs import a_run
from webhook.policy.findings import path_text
from webhook.run.plan import plan
from webhook.run.template_faults import faults

ROLES: Json = {"master": {}, "worker": {"count": 3}}


def told(base: Json, framework: str | None = "pytorch", **replicas: Any) -> list[str]:
    """The paths of the errors of a run with this template."""
    spec: Json = {"template": base}
    if framework:
        spec |= {"framework": framework, "replicas": {**ROLES, **replicas}}
    found = faults(plan(a_run("r", spec)))
    assert {each.severity for each in found} <= {"error"}
    return [path_text(each.path) for each in found]


def test_a_typo_is_told_once_in_each_template_that_has_it() -> None:
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
def test_a_request_above_its_limit_is_told_where_it_is_written(replicas: Json, path: str) -> None:
    """In the template, or in a role's resources."""
    base = asking({"cpu": 2}, {"cpu": 1}) if not replicas else template()
    assert path in told(base, **replicas)


def test_what_the_framework_adds_is_not_judged_as_the_authors() -> None:
    """Variables that the run tells come before the author's own."""
    assert told(in_main(env=[{"name": "A", "value": 5}])) == [
        "spec.template.spec.containers[0].env[0].value"
    ]


def test_the_pod_of_a_notebook_is_judged_too() -> None:
    """It comes of a Deployment."""
    spec = {"kind": "notebook", "template": mounting("data"), "ports": [{"port": 80}]}
    (fault,) = faults(plan(a_run("r", spec)))
    assert path_text(fault.path) == "spec.template.spec.containers[0].volumeMounts[0].name"
