"""The API server and the model judge Runs alike: what the one refuses the other does."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.policy.examples import GONE, with_changes
from tests.run.whole_runs import ALL, TENSORFLOW, a_run
from webhook import names
from webhook.policy.findings import Finding
from webhook.run.run_documents import read_runs
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.run_fixtures"]

Json = dict[str, Any]
RUNS = f"/apis/{names.API_VERSION}/namespaces/default/{names.RUNS}"
STRICT = "?dryRun=All&fieldValidation=Strict"

# What the API server takes and the model refuses, by path and message, with the reason.
_ENVIRONMENT = r"spec\.(replicas\..*)?environment\..*"
EXCEPTIONS = {
    "what is inside of templates is opaque, even that it is a mapping": (
        r"spec\.(replicas\.\w+\.)?template\.(metadata|spec): want a mapping"
    ),
    "a rule about the form of keys would cost too much, of mappings": (
        r".*\]: .* is not (a label key|an annotation key|a resource name).*"
    ),
    "and a pattern cannot count the part of a key after the slash": (
        rf"{_ENVIRONMENT}: .* is not a label key.*"
    ),
    "a rule about numbers of 64 bits would": rf"{_ENVIRONMENT}: [GL]t compares whole numbers.*",
    "a rule about two lists of label keys would": (
        rf"{_ENVIRONMENT}LabelKeys\[\d+\]: .* is (in|among) .* too"
    ),
    "and rules about expressions of single replicas": (
        r"spec\.replicas\..*byIndex\[\d+\]\.environment\..*"
        r"(: a term without expressions .*|values: (Not)?(In|Exists|DoesNotExist|Gt|Lt) .*)"
    ),
}


def is_excepted(finding: Finding) -> bool:
    """Whether a finding of the model is one that the API server does not make."""
    text = f"{finding.path}: {finding.message}"
    return any(re.fullmatch(pattern, text) for pattern in EXCEPTIONS.values())


def compare(plane: ControlPlane, run: Json) -> None:
    """Both take the Run, or both refuse it, or the model has a reason that is excepted."""
    found = read_runs({"run.json": json.dumps(run).encode()})
    status, answer = plane.api.call("POST", f"{RUNS}{STRICT}", run)

    if status == 201:
        assert [finding for finding in found.errors if not is_excepted(finding)] == []
    else:
        assert found.errors, answer["message"]


VALUES: st.SearchStrategy[Any] = (
    st.just(GONE)
    | st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2, 3, 7, 64, 100, 101, 1000, 1001, 10000, 10001, 65536, 1.5])
    | st.sampled_from([2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1])
    | st.sampled_from(["", "a", "A", "a b", "-8", "8", "8.5", "a/b", "A.b/c", "x" * 64, "x" * 254])
    | st.sampled_from(["Exists", "Equal", "In", "NotIn", "Gt", "Lt", "DoesNotExist", "Localhost"])
    | st.sampled_from(["NoSchedule", "NoExecute", "ScheduleAnyway", "Prefer", "None", "1mnist"])
    | st.sampled_from(["job", "notebook", "tensorflow", "pytorch", "jax", "ray", "auto"])
    | st.sampled_from(["500m", "5 GB", "1e3", ".5", "5.", "-1", "+1Gi", "/a:b", "é", "m.a"])
    | st.sampled_from([[], {}, ["a"], ["a", "b"], ["a", "a"], {"a": "b"}, [{}], [None]])
    | st.sampled_from([{"master": {}}, {"worker": {"count": 2}}, {"spec": {}}, {"a b": "c"}])
)


@settings(
    deadline=None,
    max_examples=examples(500),
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(run=with_changes(st.sampled_from([*ALL, *[TENSORFLOW] * len(ALL)]), VALUES))
def test_what_the_one_refuses_the_other_refuses(run_api: ControlPlane, run: Json) -> None:
    """Whatever is changed in a Run, a preview says what `kubectl apply` would say."""
    compare(run_api, run)


@pytest.mark.parametrize("run", ALL, ids=lambda run: run["spec"].get("framework", "none"))
def test_both_take_the_examples(run_api: ControlPlane, run: Json) -> None:
    """So that the test above changes something that was good before."""
    assert run_api.api.call("POST", f"{RUNS}{STRICT}", run)[0] == 201
    assert not read_runs({"x": json.dumps(run).encode()}).errors


@pytest.mark.parametrize(
    ("spec", "taken"),
    [
        ({"replicas": {"worker": {"count": 10000}}}, True),
        ({"replicas": {"worker": {"count": 10001}}}, False),
        ({"replicas": {"worker": {"resources": {"limits": {"cpu": 0.5}}}}}, False),
        ({"replicas": {"worker": {"resources": {"limits": {"cpu": "0.5"}}}}}, True),
        ({"replicas": {"worker": {"resources": {"claims": [{"name": "a"}] * 2}}}}, False),
        ({"environment": {"tolerations": [{"operator": "Exists"}] * 64}}, True),
        ({"environment": {"tolerations": [{"operator": "Exists"}] * 65}}, False),
        ({"template": {"spec": {"anything": [{"at": "all"}]}}}, True),
        ({"template": {"spek": {}}}, False),
        ({"backofLimit": 3}, False),
        ({"disruptionLimit": None}, True),
        ({"mainContainer": "Main"}, False),
        ({"replicas": {"master": {"environment": {"nodeSelector": {"a": "b c"}}}}}, False),
        ({"framework": "mpi", "replicas": {"launcher": {}}, "mpi": {"port": 0}}, False),
    ],
)
def test_both_judge_the_usual_slips_alike(
    run_api: ControlPlane, spec: Json, *, taken: bool
) -> None:
    """Types, ranges, words, quantities, unknown fields and limits."""
    run = a_run(**spec)

    compare(run_api, run)
    assert (run_api.api.call("POST", f"{RUNS}{STRICT}", run)[0] == 201) is taken


@pytest.mark.parametrize(
    "spec",
    [
        {"template": {"spec": []}},
        {"environment": {"nodeSelector": {"two words": "x"}}},
        {"environment": {"labels": {"x" * 64: "x"}}},
        {"replicas": {"worker": {"resources": {"limits": {"a b": 1}}}}},
    ],
)
def test_exceptions_are_what_they_are(run_api: ControlPlane, spec: Json) -> None:
    """The API server takes them; the controller, which reads with the model, says what is wrong."""
    run = a_run(**spec)

    assert run_api.api.call("POST", f"{RUNS}{STRICT}", run)[0] == 201
    assert [is_excepted(error) for error in read_runs({"x": json.dumps(run).encode()}).errors] == [
        True
    ]
