"""A Run as the API server stores it means what was written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.run.whole_runs import ALL, a_run
from webhook.run.model import Run
from webhook.sandbox.kubectl import Kubectl

pytest_plugins = ["tests.cluster.run_fixtures"]

Json = dict[str, Any]


@pytest.mark.usefixtures("run_api")
@pytest.mark.parametrize("run", ALL, ids=lambda run: run["spec"].get("framework", "none"))
def test_what_is_stored_is_the_same_run(kubectl: Kubectl, run: Json) -> None:
    """What the API server gives back means what was written."""
    written = Run.model_validate(run, by_alias=True, by_name=False)

    stored = kubectl.json("create", "-f", "-", stdin=json.dumps(run))
    assert Run.model_validate(stored, by_alias=True, by_name=False).spec == written.spec


@pytest.mark.usefixtures("run_api")
def test_only_what_was_written_is_stored(kubectl: Kubectl) -> None:
    """And three defaults that mean the same on every engine."""
    bare = a_run(framework="mpi", replicas={"launcher": {}}, mpi={})
    del bare["spec"]["template"]["metadata"]
    kubectl("create", "-f", "-", stdin=json.dumps(bare))

    spec = kubectl.json("get", "run", "mnist")["spec"]
    del spec["template"]
    assert spec == {
        "kind": "job",
        "framework": "mpi",
        "replicas": {"launcher": {"count": 1}},
        "suspend": False,
        "mpi": {},
    }


@pytest.mark.usefixtures("run_api")
def test_a_name_may_be_generated(kubectl: Kubectl) -> None:
    """As for any object that is created and not applied."""
    run = a_run()
    run["metadata"] = {"generateName": "mnist-"}

    stored = kubectl.json("create", "-f", "-", stdin=json.dumps(run))
    assert Run.model_validate(stored, by_alias=True, by_name=False).name.startswith("mnist-")


@pytest.mark.usefixtures("run_api")
def test_a_null_is_a_field_left_out(kubectl: Kubectl) -> None:
    """As the reader of files has it."""
    run = a_run(framework=None, disruptionLimit=None, kind=None, environment=None)
    run["spec"]["environment"] = {"nodeSelector": {"a": None, "b": "c"}}

    stored = kubectl.json("create", "-f", "-", stdin=json.dumps(run))
    assert stored["spec"]["kind"] == "job"
    assert stored["spec"]["environment"] == {"nodeSelector": {"b": "c"}}
