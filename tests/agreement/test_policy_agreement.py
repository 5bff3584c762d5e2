"""The API server and the model judge policies alike: what the one refuses the other does."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.cluster.policy_rule_cases import a_class, a_policy, path_of
from tests.cluster.run_placement_cases import expression, terms
from tests.examples import examples
from tests.fast_yaml import load_all_yaml
from tests.policy.examples import EVERYTHING, GONE, with_changes
from webhook import names
from webhook.policy.findings import Finding
from webhook.policy.policy_documents import parse
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.policy_fixtures"]

Json = dict[str, Any]
STRICT = "?dryRun=All&fieldValidation=Strict"

# What the API server takes and the model refuses, by path and message, with the reason.
EXCEPTIONS = {
    "a null is dropped before it is judged": r".*: is null; .*",
    "a pattern cannot count the part of a key before the slash": (
        r".* is not an? (label key|annotation key|resource name): .* before the slash .*"
    ),
    "nor can it tell how many bits a number has": r".*: [GL]t compares whole numbers.*",
}


def is_excepted(finding: Finding) -> bool:
    """Whether a finding of the model is one that the API server does not make."""
    text = f"{finding.path}: {finding.message}"
    return any(re.fullmatch(pattern, text) for pattern in EXCEPTIONS.values())


def errors(whole: Json) -> list[Finding]:
    """What the model finds wrong with an object by itself."""
    return list(parse({"x.json": json.dumps(whole).encode()}).errors)


def compare(plane: ControlPlane, whole: Json) -> bool:
    """Both take the object, or both refuse it, or the model has a reason that is excepted.

    Whether the API server takes it.
    """
    found = errors(whole)
    status, answer = plane.api.call("POST", f"{path_of(whole['kind'])}{STRICT}", whole)

    if status == 201:
        assert [finding for finding in found if not is_excepted(finding)] == []
        return True
    assert found, answer["message"]
    return False


VALUES: st.SearchStrategy[Any] = (
    st.just(GONE)
    | st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 2, 7, 64, 100, 101, 1.5, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1])
    | st.sampled_from(["", "a", "A", "a b", "-8", "8", "8.5", "a/b", "A.b/c", "x" * 64, "x" * 254])
    | st.sampled_from([f"a/{'x' * 64}", f"{'x' * 254}/a", "fairlead.dev/run", "ml-*", "é", "m.a"])
    | st.sampled_from(["Exists", "Equal", "In", "NotIn", "Gt", "Lt", "DoesNotExist", "Localhost"])
    | st.sampled_from(["NoSchedule", "NoExecute", "ScheduleAnyway", "Prefer", "None", "Audit"])
    | st.sampled_from(["job", "tensorflow", "worker", "spot", "on-demand", "everything", "IsNull"])
    | st.sampled_from([[], {}, ["a"], ["a", "b"], ["a", "a"], {"a": "b"}, [{}], [None], [0, 1]])
    | st.sampled_from([{"a b": "c"}, {"fairlead.dev/run": "r"}, {"A.b/C": "c"}, {"a": None}])
    | st.sampled_from(["*", ["*"], ["*", "a"], ["a-*"], {"namespaces": ["*"]}, "\n", "x" * 501])
    | st.sampled_from(["2026-12-01T18:00:00Z", "2026-12-01", "2026-02-30T18:00:00Z"])
    | st.sampled_from(["2026-12-01T18:00:00.5Z", "2026-12-01T24:00:00Z", "2026-12-01T18:00:00"])
    | st.sampled_from([{"labels": {}}, {"podSelector": {}}, {"nodeSelector": {}}, {"x": {}}])
)
DOCUMENTS: list[Json] = [
    {key: value for key, value in document.items() if key != "status"}
    for document in load_all_yaml(EVERYTHING)
]
(POLICY,) = (each for each in DOCUMENTS if each["kind"] == names.POLICY_KIND)


@settings(
    deadline=None,
    max_examples=examples(400),
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(whole=with_changes(st.sampled_from([*DOCUMENTS, *[POLICY] * len(DOCUMENTS)]), VALUES))
def test_what_the_one_refuses_the_other_refuses(policy_api: ControlPlane, whole: Json) -> None:
    """Whatever is changed in a document, `fairlead check` says what `kubectl apply` would say."""
    compare(policy_api, whole)


@pytest.mark.parametrize("whole", DOCUMENTS, ids=lambda each: each["metadata"]["name"])
def test_both_take_the_documents_that_use_every_field(
    policy_api: ControlPlane, whole: Json
) -> None:
    """So that the test above changes something that was good before."""
    assert compare(policy_api, whole)
    assert errors(whole) == []


def _beyond(key: str) -> Json:
    return {"tolerations": [{"key": key, "operator": "Exists"}], "labels": {key: "v"}}


@pytest.mark.parametrize(
    "whole",
    [
        a_policy(description=None),
        a_policy(defaults={"nodeSelector": {"a": None, "b": "c"}}),
        a_policy(overrides=_beyond(f"{'x' * 254}/a")),
        a_policy(overrides=terms({"matchExpressions": [expression("Gt", "9" * 20)]})),
        a_class(nodes=[{"labels": {"a": "b"}}], complementOf=None),
    ],
)
def test_exceptions_are_what_they_are(policy_api: ControlPlane, whole: Json) -> None:
    """The API server takes them; of what it has stored the webhook says what is wrong still."""
    assert compare(policy_api, whole)
    assert all(is_excepted(each) for each in errors(whole))
    assert errors(whole)
