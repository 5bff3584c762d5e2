"""Each thing that is wrong between the fields of a Run is said, with its path and its cure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from tests.policy.examples import changed
from tests.run.whole_runs import ALL, HEAD, TENSORFLOW, a_run
from tests.wording import Wording, mentions
from webhook.frameworks.table import ROLES
from webhook.run.model import Run
from webhook.run.run_documents import read_runs

Json = dict[str, Any]


def findings(run: Json) -> list[str]:
    """What is wrong with a Run: path and message of each."""
    found = read_runs({"x": json.dumps(run).encode()})
    return [f"{finding.path}: {finding.message}" for finding in found.findings]


def said(**spec: Any) -> list[str]:
    """What is wrong with a Run of this spec, without `spec.` before it."""
    return [finding.removeprefix("spec.") for finding in findings(a_run(**spec))]


@pytest.mark.parametrize(
    ("spec", "path", "facts"),
    [
        (
            {"framework": "tensorflow", "replicas": {"master": {}, "wroker": {}}},
            "replicas.wroker",
            ("tensorflow", "no role 'wroker'", "did you mean 'worker'?"),
        ),
        (
            {"framework": "jax", "replicas": {"worker": {}, "ps": {}}},
            "replicas.ps",
            ("jax", "no role 'ps'", "roles are worker"),
        ),
        (
            {"replicas": {"master": {}, "driver": {}}},
            "replicas.driver",
            ("without a framework", "no role 'driver'", "master, worker"),
        ),
        (
            {"framework": "mpi", "replicas": {"launcher": {"count": 2}}},
            "replicas.launcher.count",
            ("mpi", "one launcher at most", "not 2"),
        ),
        (
            {"replicas": {"master": {"count": 3}}},
            "replicas.master.count",
            ("without a framework", "one master at most", "not 3"),
        ),
        ({"framework": "jax"}, "replicas", ("required", "jax", "roles are worker")),
        (
            {"framework": "mxnet", "replicas": {"scheduler": {}, "worker": {}}},
            "replicas",
            ("mxnet needs a server",),
        ),
        (
            {"framework": "tensorflow", "replicas": {"ps": {}}},
            "replicas",
            ("tensorflow needs", "master", "chief", "worker"),
        ),
        (
            {"framework": "tensorflow", "replicas": {"master": {}, "chief": {}}},
            "replicas.chief",
            ("chief and master", "one of the two"),
        ),
        (
            {"replicas": {"worker": {"count": 3, "byIndex": [{"index": 3}]}}},
            "replicas.worker.byIndex[0].index",
            ("no replica 3", "count is 3"),
        ),
        (
            {"replicas": {"master": {"byIndex": [{"index": 1}]}}},
            "replicas.master.byIndex[0].index",
            ("no replica 1", "count is 1"),
        ),
        (
            {"replicas": {"worker": {"count": 2, "byIndex": [{"index": 1}, {"index": 1}]}}},
            "replicas.worker.byIndex[1].index",
            ("used by [0]",),
        ),
        (
            {"framework": "pytorch", "tensorflow": {}},
            "tensorflow",
            ("framework tensorflow only",),
        ),
        ({"ray": {}}, "ray", ("framework ray only",)),
        (
            {"ports": [{"port": 80}]},
            "ports",
            ("notebook, tensorboard and service only",),
        ),
        (
            {"kind": "build", "maxAgeSeconds": 5},
            "maxAgeSeconds",
            ("notebook, tensorboard and service only",),
        ),
        (
            {"kind": "notebook", "framework": "pytorch"},
            "framework",
            ("experiment, job and build only",),
        ),
        (
            {"kind": "service", "replicas": {"master": {"count": 2}}},
            "replicas.master",
            ("service", "role master", "remove replicas"),
        ),
        (
            {"kind": "tensorboard", "replicas": {"worker": {}}},
            "replicas.worker",
            ("tensorboard", "role master", "remove replicas"),
        ),
        (
            {"kind": "service", "ports": [{"port": 80, "name": "a"}, {"port": 81}]},
            "ports",
            ("several ports", "name"),
        ),
        (
            {"kind": "service", "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]},
            "ports[1].name",
            ("name", "used by [0]"),
        ),
        (
            {"kind": "service", "ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]},
            "ports[1].port",
            ("port", "used by [0]"),
        ),
        (
            {
                "framework": "pytorch",
                "replicas": {"worker": {"count": 3}},
                "pytorch": {"elastic": {"minReplicas": 4}},
            },
            "pytorch.elastic.minReplicas",
            ("4 exceeds", "3"),
        ),
        (
            {"framework": "pytorch", "pytorch": {"nprocPerNode": "all"}},
            "pytorch.nprocPerNode",
            ("from 1 to 1000", "auto, gpu, cpu", "'all'"),
        ),
        (
            {"template": {"spek": {}}},
            "template.spek",
            ("metadata and spec",),
        ),
        ({"template": {"spec": []}}, "template.spec", ("mapping",)),
        (
            {"replicas": {"worker": {"resources": {"limits": {"cpu": 0.5}}}}},
            "replicas.worker.resources.limits.cpu",
            ("0.5", "500m"),
        ),
        (
            {"replicas": {"worker": {"resources": {"limits": {"cpu": "5 GB"}}}}},
            "replicas.worker.resources.limits.cpu",
            ("'5 GB'", "quantity", "500m"),
        ),
        (
            {"replicas": {"worker": {"resources": {"limits": {"cpu": True}}}}},
            "replicas.worker.resources.limits.cpu",
            ("quantity", "whole number", "500m"),
        ),
        (
            {"replicas": {"worker": {"resources": {"claims": [{"name": "a"}, {"name": "a"}]}}}},
            "replicas.worker.resources.claims[1].name",
            ("name", "used by [0]"),
        ),
        (
            {"environment": {"tolerations": [{"operator": "Exists"}] * 65}},
            "environment.tolerations",
            ("at most 64", "65"),
        ),
        ({"replicas": {}}, "replicas", ("empty", "at least 1")),
    ],
)
def test_each_error_is_reported_with_its_cure(
    spec: Json, path: str, facts: tuple[str, ...], wording: Wording
) -> None:
    """One slip is one finding, at its path."""
    (found,) = said(**spec)
    assert found.startswith(f"{path}: ")
    mentions(found, *facts)
    wording(found)


def test_all_that_is_wrong_is_reported_at_once() -> None:
    """A field that is wrong by itself does not hide what is wrong between others."""
    run = a_run(
        kind="experimnt",
        framework="mpi",
        replicas={"worker": {"count": "many"}, "ps": {}},
        jax={},
        suspend=1,
    )

    assert {finding.partition(":")[0].removeprefix("spec.") for finding in findings(run)} == {
        "kind",
        "replicas.ps",
        "replicas",
        "jax",
        "replicas.worker.count",
        "suspend",
    }


def test_a_run_without_replicas_is_one_master() -> None:
    """That is what most runs are."""
    run = Run.model_validate(a_run())

    assert {role: replica.count for role, replica in run.spec.roles.items()} == {"master": 1}


def test_roles_are_in_the_order_of_their_framework() -> None:
    """However they were written."""
    run = Run.model_validate(
        a_run(framework="tensorflow", replicas={"ps": {}, "worker": {}, "chief": {}})
    )

    assert list(run.spec.roles) == ["chief", "worker", "ps"]


def test_what_the_api_server_stores_is_read_back() -> None:
    """With all that it adds to the metadata, and with a status from another release."""
    stored = changed(TENSORFLOW, ("status",), {"phase": "Running", "newer": {"a": None}})
    stored["metadata"] |= {
        "generateName": "mn",
        "uid": "u",
        "generation": 3,
        "resourceVersion": "17",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 0,
        "finalizers": ["foregroundDeletion"],
        "managedFields": [{"manager": "kubectl"}],
        "ownerReferences": [{"kind": "CronRun"}],
        "selfLink": "/x",
    }

    run = Run.model_validate(stored, by_alias=True, by_name=False)
    assert (run.status.phase, run.metadata.generation, run.name) == ("Running", 3, "mnist")


@pytest.mark.parametrize("run", ALL, ids=lambda run: run["spec"].get("framework", "none"))
def test_a_run_that_is_written_out_is_the_same_run(run: Json) -> None:
    """Nothing is lost on the way to JSON and back."""
    model = Run.model_validate(run, by_alias=True, by_name=False)
    written = model.model_dump(mode="json", by_alias=True, exclude_none=True)

    assert Run.model_validate(written, by_alias=True, by_name=False) == model


def test_every_framework_has_a_run_among_the_examples() -> None:
    """So that no framework is left out by tests that take them all."""
    assert {run["spec"].get("framework") for run in ALL} == set(ROLES)


def test_a_run_is_frozen() -> None:
    """What was read once may be shared."""
    run = Run.model_validate({**HEAD, "metadata": {"name": "a"}, "spec": {"template": {}}})

    with pytest.raises(ValidationError):
        run.spec.suspend = True
