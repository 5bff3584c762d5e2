"""Policies and capacity classes say something, and only what they may say."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from tests.cluster.rule_cases import BY_SCHEMA, CASES, Case
from tests.objects import an_object
from webhook import names
from webhook.frameworks.table import FRAMEWORKS
from webhook.policy.findings import Finding
from webhook.policy.match_model import VOLUME_SOURCES, Match
from webhook.policy.model import CapacityClass, PlacementPolicy
from webhook.policy.policy_documents import parse
from webhook.strict import Strict

SPEC: dict[str, Any] = {
    "policies": ["spot"],
    "match": {"namespaces": ["research", "ml"], "roles": ["worker"]},
    "until": "2026-12-01T18:00:00Z",
    "reason": "Anna looks for a leak.",
}


def errors_in_file(whole: Any) -> list[Finding]:
    """What is wrong with an object that a file contains."""
    return list(parse({"x.json": json.dumps(whole).encode()}).errors)


def policy(spec: dict[str, Any]) -> dict[str, Any]:
    return an_object(names.API_VERSION, "PlacementPolicy", "p", spec)


def capacity_class(spec: dict[str, Any]) -> dict[str, Any]:
    return an_object(names.API_VERSION, "CapacityClass", "spot", spec)


def errors(model: type[Strict], data: object) -> list[tuple[str, str]]:
    """Path and message of every error, the path with dots; empty if the model takes the data."""
    try:
        model.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        lines = error.errors(include_url=False)
        return [(".".join(map(str, line["loc"])), line["msg"]) for line in lines]
    return []


SOMETHING = {"overrides": {"nodeSelector": {"a": "b"}}}


def test_a_policy_enforces_at_priority_0_for_every_run_unless_it_says_otherwise() -> None:
    """The defaults: Enforce, priority 0, an empty match, nothing excluded."""
    spec = PlacementPolicy.model_validate(policy(SOMETHING)).spec

    assert (spec.enforcement, spec.priority, spec.match, spec.exclude) == ("Enforce", 0, None, [])


def test_an_empty_match_is_every_run() -> None:
    """Nothing asked, nothing refused."""
    assert Match.model_validate({}).is_empty
    assert not Match.model_validate({"coordinator": False}).is_empty


def test_every_value_of_the_tables_is_valid() -> None:
    """What Fairlead knows of kinds, frameworks, roles and volumes, a policy can match."""
    assert not errors(
        Match,
        {
            "kinds": list(names.KINDS),
            "frameworks": list(FRAMEWORKS),
            "roles": list(names.ROLES),
            "volumes": list(VOLUME_SOURCES),
        },
    )


def test_what_the_api_server_adds_is_accepted() -> None:
    """The output of kubectl get -o yaml is a policy file."""
    data = policy(SOMETHING)
    data["metadata"] |= {"uid": "x", "generation": 2, "managedFields": [{}], "labels": {"a": "b"}}
    data["status"] = {"conditions": []}

    assert not errors(PlacementPolicy, data)


def test_a_name_is_one_that_the_api_server_takes() -> None:
    """The same document can be a custom resource."""
    data = policy(SOMETHING)
    data["metadata"]["name"] = "Not_A_Name"

    assert [at for at, _ in errors(PlacementPolicy, data)] == ["metadata.name"]


def test_a_class_may_be_described_by_labels_expressions_and_taints() -> None:
    """The forms of design.md are read."""
    shape = {
        "labels": {"a": "b"},
        "matchExpressions": [{"key": "c", "operator": "DoesNotExist"}],
        "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
    }
    model = CapacityClass.model_validate(capacity_class({"nodes": [shape]}))

    assert model.model_dump(by_alias=True, exclude_none=True)["spec"] == {"nodes": [shape]}
    assert not errors(CapacityClass, capacity_class({"complementOf": "other"}))


@pytest.mark.parametrize(
    ("whole", "field"),
    [*((case.broken, case.field) for case in CASES), *(each[:2] for each in BY_SCHEMA)],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_file_may_not_contain_what_the_api_server_refuses(whole: Any, field: str) -> None:
    """At the same field, though the API server writes the keys of mappings otherwise."""
    paths = [each.path for each in errors_in_file(whole)]
    assert any(path.startswith(field.replace("[a]", ".a")) for path in paths), paths


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.field)
def test_what_just_keeps_a_rule_is_accepted(case: Case) -> None:
    """As the API server accepts it."""
    assert errors_in_file(case.kept) == []


def an_exception(**spec: Any) -> dict[str, Any]:
    """An exception document; a field that is None is left out."""
    whole = {**SPEC, **spec}
    return {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "PlacementException",
        "metadata": {"name": "debug-anna"},
        "spec": {key: value for key, value in whole.items() if value is not None},
    }
