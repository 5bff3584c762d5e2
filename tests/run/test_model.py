"""Runs are read as they were written, and what is wrong between their fields is found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from tests.cluster.rule_cases import LEFT, RUN_CASES, Case
from tests.policy.examples import changed
from tests.run.whole_runs import ALL, HEAD, TENSORFLOW, a_run
from webhook.frameworks.table import ROLES
from webhook.run.model import Run
from webhook.run.run_documents import read_runs

Json = dict[str, Any]


# Of the names that an engine has no room for only the plan knows.
RULES = [
    case
    for case in (*RUN_CASES, *LEFT)
    if case.field != "metadata.name" or "backend" not in case.broken["spec"]
]


def paths(run: Json) -> list[str]:
    """What is wrong with a Run that a file contains."""
    return [each.path for each in read_runs({"x": json.dumps(run).encode()}).findings]


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.field)
def test_a_file_may_not_contain_what_the_api_server_refuses(case: Case) -> None:
    """At the same field, and also what would cost an API server too much to judge."""
    (path,) = paths(case.broken)
    assert path.startswith(case.field.replace("[worker]", ".worker"))
    assert paths(case.kept) == []


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
