"""Each thing that is wrong between the fields of a Run is said, with its path and its cure."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from tests.policy.examples import changed
from tests.run.whole_runs import ALL, HEAD, TENSORFLOW, a_run
from webhook.run.model import Run
from webhook.run.roles import ROLES
from webhook.run.source import read

Json = dict[str, Any]


def findings(run: Json) -> list[str]:
    """What is wrong with a Run: path and message of each."""
    found = read({"x": json.dumps(run).encode()})
    return [f"{finding.path}: {finding.message}" for finding in found.findings]


def said(**spec: Any) -> list[str]:
    """What is wrong with a Run of this spec, without `spec.` before it."""
    return [finding.removeprefix("spec.") for finding in findings(a_run(**spec))]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"framework": "tensorflow", "replicas": {"master": {}, "wroker": {}}},
            "replicas.wroker: framework tensorflow has no role 'wroker'; did you mean 'worker'?",
        ),
        (
            {"framework": "jax", "replicas": {"worker": {}, "ps": {}}},
            "replicas.ps: framework jax has no role 'ps'; its roles are worker",
        ),
        (
            {"replicas": {"master": {}, "driver": {}}},
            (
                "replicas.driver: a run without a framework has no role 'driver'; its roles are "
                "master, worker"
            ),
        ),
        (
            {"framework": "mpi", "replicas": {"launcher": {"count": 2}}},
            "replicas.launcher.count: framework mpi has one launcher at most, not 2",
        ),
        (
            {"replicas": {"master": {"count": 3}}},
            "replicas.master.count: a run without a framework has one master at most, not 3",
        ),
        ({"framework": "jax"}, "replicas: is required for framework jax; its roles are worker"),
        (
            {"framework": "mxnet", "replicas": {"scheduler": {}, "worker": {}}},
            "replicas: framework mxnet needs a server",
        ),
        (
            {"framework": "tensorflow", "replicas": {"ps": {}}},
            "replicas: framework tensorflow needs a master or a chief or a worker",
        ),
        (
            {"framework": "tensorflow", "replicas": {"master": {}, "chief": {}}},
            "replicas.chief: is the master by its newer name; keep one of the two",
        ),
        (
            {"replicas": {"worker": {"count": 3, "byIndex": [{"index": 3}]}}},
            (
                "replicas.worker.byIndex[0].index: there is no replica 3: count is 3, and indexes "
                "begin at 0"
            ),
        ),
        (
            {"replicas": {"master": {"byIndex": [{"index": 1}]}}},
            (
                "replicas.master.byIndex[0].index: there is no replica 1: count is 1, and indexes "
                "begin at 0"
            ),
        ),
        (
            {"replicas": {"worker": {"count": 2, "byIndex": [{"index": 1}, {"index": 1}]}}},
            "replicas.worker.byIndex[1].index: the index is that of [0] too; keep one of the two",
        ),
        (
            {"framework": "pytorch", "tensorflow": {}},
            "tensorflow: goes with framework tensorflow only; remove it",
        ),
        ({"ray": {}}, "ray: goes with framework ray only; remove it"),
        (
            {"ports": [{"port": 80}]},
            "ports: goes with the kinds notebook, tensorboard and service only; remove it",
        ),
        (
            {"kind": "build", "maxAgeSeconds": 5},
            "maxAgeSeconds: goes with the kinds notebook, tensorboard and service only; remove it",
        ),
        (
            {"kind": "notebook", "framework": "pytorch"},
            "framework: goes with the kinds experiment, job and build only; remove it",
        ),
        (
            {"kind": "service", "replicas": {"master": {"count": 2}}},
            "replicas.master: a service is one pod, of role master; remove replicas",
        ),
        (
            {"kind": "tensorboard", "replicas": {"worker": {}}},
            "replicas.worker: a tensorboard is one pod, of role master; remove replicas",
        ),
        (
            {"kind": "service", "ports": [{"port": 80, "name": "a"}, {"port": 81}]},
            "ports: where there are several ports, each needs a name",
        ),
        (
            {"kind": "service", "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]},
            "ports[1].name: the name is that of [0] too; keep one of the two",
        ),
        (
            {"kind": "service", "ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]},
            "ports[1].port: the port is that of [0] too; keep one of the two",
        ),
        (
            {
                "framework": "pytorch",
                "replicas": {"worker": {"count": 3}},
                "pytorch": {"elastic": {"minReplicas": 4}},
            },
            "pytorch.elastic.minReplicas: 4 is more than all replicas together, which are 3",
        ),
        (
            {"framework": "pytorch", "pytorch": {"nprocPerNode": "all"}},
            (
                "pytorch.nprocPerNode: want a whole number from 1 to 1000, or auto, gpu, cpu: "
                "not 'all'"
            ),
        ),
        (
            {"template": {"spek": {}}},
            "template.spek: a pod template has metadata and spec; remove this",
        ),
        ({"template": {"spec": []}}, "template.spec: want a mapping"),
        (
            {"replicas": {"worker": {"resources": {"limits": {"cpu": 0.5}}}}},
            (
                "replicas.worker.resources.limits.cpu: 0.5 is written in quotes, or in thousandths"
                ": 500m"
            ),
        ),
        (
            {"replicas": {"worker": {"resources": {"limits": {"cpu": "5 GB"}}}}},
            (
                "replicas.worker.resources.limits.cpu: '5 GB' is not a quantity, such as 4, 500m "
                "or 16Gi"
            ),
        ),
        (
            {"replicas": {"worker": {"resources": {"limits": {"cpu": True}}}}},
            (
                "replicas.worker.resources.limits.cpu: want a quantity: a whole number, or text "
                "such as 500m or 16Gi"
            ),
        ),
        (
            {"replicas": {"worker": {"resources": {"claims": [{"name": "a"}, {"name": "a"}]}}}},
            (
                "replicas.worker.resources.claims[1].name: the name is that of [0] too; keep one "
                "of the two"
            ),
        ),
        (
            {"environment": {"tolerations": [{"operator": "Exists"}] * 65}},
            "environment.tolerations: want at most 64 items, not 65",
        ),
        ({"replicas": {}}, "replicas: is empty; give at least 1 item, or remove the field"),
    ],
)
def test_what_is_wrong_is_said_alone_and_with_its_cure(spec: Json, message: str) -> None:
    """One slip is one finding, at its path."""
    assert said(**spec) == [message]


def test_all_that_is_wrong_is_said_at_once() -> None:
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
