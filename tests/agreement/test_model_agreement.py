"""The API server and the model judge documents alike: what the one refuses the other does."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.cluster.rule_cases import a_class, a_policy, path_of
from tests.examples import examples
from tests.fast_yaml import load_all_yaml
from tests.objects import required_affinity
from tests.policy.examples import EVERYTHING, GONE, with_changes
from tests.run.whole_runs import ALL, TENSORFLOW, a_run
from webhook import names
from webhook.policy.findings import Finding
from webhook.policy.policy_documents import parse
from webhook.run.run_documents import read_runs
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.policy_fixtures", "tests.cluster.run_fixtures"]
pytestmark = pytest.mark.usefixtures("policy_api")

Json = dict[str, Any]
RUNS = f"/apis/{names.API_VERSION}/namespaces/default/{names.RUNS}"
STRICT = "?dryRun=All&fieldValidation=Strict"

# What the API server takes and the model refuses, by path and message, with the reason.
EXCEPTIONS = {
    # Definitions keep what they do not know (decision 100); /validate refuses it.
    "a field of no version": r".*: there is no such field.*",
    "a null is dropped before it is judged": r".*: is null; .*",
    "a pattern cannot count the part of a key before the slash": (
        r".* is not an? (label key|annotation key|resource name): .* before the slash .*"
    ),
    "nor can it tell how many bits a number has": r".*: [GL]t compares whole numbers.*",
}
_ENVIRONMENT = r"spec\.(replicas\..*)?environment\..*"
EXCEPTIONS_OF_RUNS = {
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
        r"(: the term has no expressions.*|values: (Not)?(In|Exists|DoesNotExist|Gt|Lt) .*)"
    ),
}


def errors(whole: Json) -> list[Finding]:
    """What the model finds wrong with an object by itself."""
    read = read_runs if whole["kind"] == names.RUN_KIND else parse
    return list(read({"x.json": json.dumps(whole).encode()}).errors)


def is_excepted(whole: Json, finding: Finding) -> bool:
    """Whether a finding of the model is one that the API server does not make."""
    excepted = EXCEPTIONS_OF_RUNS if whole["kind"] == names.RUN_KIND else EXCEPTIONS
    text = f"{finding.path}: {finding.message}"
    return any(re.fullmatch(pattern, text) for pattern in excepted.values())


def compare(plane: ControlPlane, whole: Json) -> bool:
    """Both take the object, or both refuse it, or the model has a reason that is excepted.

    Whether the API server takes it.
    """
    found = errors(whole)
    collection = RUNS if whole["kind"] == names.RUN_KIND else path_of(whole["kind"])
    status, answer = plane.api.call("POST", f"{collection}{STRICT}", whole)
    if status == 201:
        assert [finding for finding in found if not is_excepted(whole, finding)] == []
        return True
    assert found, answer["message"]
    return False


NUMBERS = [0, 1, -1, 2, 3, 7, 64, 100, 101, 1000, 1001, 10000, 10001, 65536, 1.5, 2**31 - 1, 2**31]
VALUES: st.SearchStrategy[Any] = (
    st.just(GONE)
    | st.none()
    | st.booleans()
    | st.sampled_from([*NUMBERS, 2**53 + 1, 2**63 - 1])
    | st.sampled_from(["", "a", "A", "a b", "-8", "8", "8.5", "a/b", "A.b/c", "x" * 64, "x" * 254])
    | st.sampled_from(["Exists", "Equal", "In", "NotIn", "Gt", "Lt", "DoesNotExist", "Localhost"])
    | st.sampled_from(["NoSchedule", "NoExecute", "ScheduleAnyway", "Prefer", "None", "Audit"])
    | st.sampled_from(["job", "tensorflow", "worker", "spot", "on-demand", "everything", "IsNull"])
    | st.sampled_from([[], {}, ["a"], ["a", "b"], ["a", "a"], {"a": "b"}, [{}], [None], [0, 1]])
)
OF_POLICIES: st.SearchStrategy[Any] = (
    st.sampled_from([f"a/{'x' * 64}", f"{'x' * 254}/a", "fairlead.dev/run", "ml-*", "é", "m.a"])
    | st.sampled_from([{"a b": "c"}, {"fairlead.dev/run": "r"}, {"A.b/C": "c"}, {"a": None}])
    | st.sampled_from(["*", ["*"], ["*", "a"], ["a-*"], {"namespaces": ["*"]}, "\n", "x" * 501])
    | st.sampled_from(["2026-12-01T18:00:00Z", "2026-12-01", "2026-02-30T18:00:00Z"])
    | st.sampled_from(["2026-12-01T18:00:00.5Z", "2026-12-01T24:00:00Z", "2026-12-01T18:00:00"])
    | st.sampled_from([{"labels": {}}, {"podSelector": {}}, {"nodeSelector": {}}, {"x": {}}])
)
OF_RUNS: st.SearchStrategy[Any] = (
    st.sampled_from(["notebook", "pytorch", "jax", "ray", "auto", "1mnist"])
    | st.sampled_from(["500m", "5 GB", "1e3", ".5", "5.", "-1", "+1Gi", "/a:b", "é", "m.a"])
    | st.sampled_from([{"master": {}}, {"worker": {"count": 2}}, {"spec": {}}, {"a b": "c"}])
)
DOCUMENTS: list[Json] = [
    {key: value for key, value in document.items() if key != "status"}
    for document in load_all_yaml(EVERYTHING)
]
(POLICY,) = (each for each in DOCUMENTS if each["kind"] == names.POLICY_KIND)
changed = settings(
    deadline=None,
    max_examples=examples(450),
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
policies = st.sampled_from([*DOCUMENTS, *[POLICY] * len(DOCUMENTS)])
runs = st.sampled_from([*ALL, *[TENSORFLOW] * len(ALL)])


@changed
@given(whole=with_changes(policies, VALUES | OF_POLICIES))
def test_a_policy_that_the_one_refuses_the_other_refuses(
    run_api: ControlPlane, whole: Json
) -> None:
    """Whatever is changed in a document, `fairlead check` says what `kubectl apply` would say."""
    compare(run_api, whole)


@changed
@given(whole=with_changes(runs, VALUES | OF_RUNS))
def test_runs_that_the_one_refuses_the_other_refuses(run_api: ControlPlane, whole: Json) -> None:
    """Whatever is changed in a Run, a preview says what `kubectl apply` would say."""
    compare(run_api, whole)


@pytest.mark.parametrize("whole", [*DOCUMENTS, *ALL], ids=lambda each: each["metadata"]["name"])
def test_both_take_the_documents_that_use_every_field(run_api: ControlPlane, whole: Json) -> None:
    """So that the tests above change something that was good before."""
    assert compare(run_api, whole)
    assert errors(whole) == []


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
def test_both_judge_the_usual_slips_of_a_run_alike(
    run_api: ControlPlane, spec: Json, *, taken: bool
) -> None:
    """Types, ranges, words, quantities, unknown fields and limits."""
    assert compare(run_api, a_run(**spec)) is taken


_LARGE = {"key": "a", "operator": "Gt", "values": ["9" * 20]}


def _beyond(key: str) -> Json:
    return {"tolerations": [{"key": key, "operator": "Exists"}], "labels": {key: "v"}}


@pytest.mark.parametrize(
    "whole",
    [
        a_policy(description=None),
        a_policy(overrides={"nodeSelector": {"a": "b"}, "later": {}}),
        a_policy(defaults={"nodeSelector": {"a": None, "b": "c"}}),
        a_policy(overrides=_beyond(f"{'x' * 254}/a")),
        a_policy(overrides={"affinity": required_affinity({"matchExpressions": [_LARGE]})}),
        a_class(nodes=[{"labels": {"a": "b"}}], complementOf=None),
        a_run(template={"spec": []}),
        a_run(environment={"nodeSelector": {"two words": "x"}}),
        a_run(environment={"labels": {"x" * 64: "x"}}),
        a_run(replicas={"worker": {"resources": {"limits": {"a b": 1}}}}),
    ],
)
def test_exceptions_are_what_they_are(run_api: ControlPlane, whole: Json) -> None:
    """The API server takes them; who reads what it has stored says what is wrong still."""
    assert compare(run_api, whole)
    assert all(is_excepted(whole, each) for each in errors(whole))
    assert errors(whole)
