"""Policies and capacity classes say something, and only what they may say."""

from typing import Any

import pytest
from pydantic import ValidationError

from tests.wording import Wording, mentions
from webhook import names
from webhook.frameworks.table import FRAMEWORKS
from webhook.placement.schema import Strict
from webhook.policy.match_model import VOLUME_SOURCES, Match
from webhook.policy.model import CapacityClass, PlacementException, PlacementPolicy
from webhook.policy.policy_documents import KNOWN

SPEC: dict[str, Any] = {
    "policies": ["spot"],
    "match": {"namespaces": ["research", "ml"], "roles": ["worker"]},
    "until": "2026-12-01T18:00:00Z",
    "reason": "Anna looks for a leak.",
}


def policy(spec: dict[str, Any]) -> dict[str, Any]:
    """A policy document with this spec."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "PlacementPolicy",
        "metadata": {"name": "p"},
        "spec": spec,
    }


def capacity_class(spec: dict[str, Any]) -> dict[str, Any]:
    """A capacity class `spot` with this spec."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "CapacityClass",
        "metadata": {"name": "spot"},
        "spec": spec,
    }


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


@pytest.mark.parametrize("spec", [{}, {"match": {}}, {"defaults": {}, "overrides": {}}])
def test_a_policy_without_any_of_the_three_parts_is_an_error(
    spec: dict[str, Any], wording: Wording
) -> None:
    """A policy that gives nothing is a slip, most often a wrong indentation."""
    [said] = [said for at, said in errors(PlacementPolicy, policy(spec)) if at == "spec"]
    mentions(said, "at least one", "defaults", "overrides", "requirements")
    wording(said)


def test_nothing_is_rolled_out_of_a_policy_that_is_enforced_nowhere(wording: Wording) -> None:
    """Whoever writes both means one of them, and nobody can tell which."""
    rollout = {"rollout": {"namespaces": ["a"]}, **SOMETHING}
    assert errors(PlacementPolicy, policy(rollout)) == []
    [(at, said)] = errors(PlacementPolicy, policy({"enforcement": "Audit", **rollout}))

    assert at == "spec.rollout"
    mentions(said, "Audit", "one of the two")
    wording(said)


@pytest.mark.parametrize("part", ["defaults", "overrides", "requirements"])
@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_no_part_may_write_what_fairlead_reads(part: str, field: str) -> None:
    """Labels and annotations under fairlead.dev/ are input and stamp: no policy writes them."""
    [(at, said)] = errors(PlacementPolicy, policy({part: {field: {"fairlead.dev/run": "x"}}}))

    assert at == f"spec.{part}.{field}.fairlead.dev/run"
    assert "policies may not write" in said


@pytest.mark.parametrize("block", [{}, {"podSelector": {}}, {"namespaceSelector": {}}])
def test_an_empty_exclude_block_is_an_error(block: dict[str, Any]) -> None:
    """It would exclude every pod, and a selector that selects all is no condition either."""
    assert [at for at, _ in errors(PlacementPolicy, policy({**SOMETHING, "exclude": [block]}))] == [
        "spec.exclude.0"
    ]


def test_an_empty_match_is_every_run() -> None:
    """Nothing asked, nothing refused."""
    assert Match.model_validate({}).is_empty
    assert not Match.model_validate({"coordinator": False}).is_empty


@pytest.mark.parametrize(
    "field",
    [
        *("namespaces", "kinds", "frameworks", "roles", "replicaIndexes", "resources", "volumes"),
        "serviceAccounts",
    ],
)
def test_an_empty_list_of_a_condition_is_an_error(field: str) -> None:
    """A list without items would match nothing, which nobody means."""
    assert [at for at, _ in errors(Match, {field: []})] == [field]


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        ("namespaces", "ml-*", "ML"),
        ("namespaces", "team-?", "a.b"),
        ("kinds", "experiment", "experiments"),
        ("frameworks", "pytorch", "PyTorch"),
        ("roles", "ps", "parameter-server"),
        ("resources", "nvidia.com/gpu", "nvidia.com/"),
        ("volumes", "persistentVolumeClaim", "pvc"),
        ("serviceAccounts", "team.train-*", "ml:trainer"),
        ("serviceAccounts", "a" * 253, "a" * 254),
    ],
)
def test_a_condition_accepts_only_values_that_can_match(field: str, good: str, bad: str) -> None:
    """A misspelt kind, role or volume would match nothing, and silently."""
    assert not errors(Match, {field: [good]})
    assert [at for at, _ in errors(Match, {field: [bad]})] == [f"{field}.0"]


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


def test_a_namespace_is_refused_with_the_reason() -> None:
    """Policies hold for the whole cluster, and a namespace would say otherwise."""
    data = policy(SOMETHING)
    data["metadata"]["namespace"] = "ml"

    [(at, said)] = errors(PlacementPolicy, data)
    assert at == "metadata.namespace"
    assert "whole cluster" in said


def test_a_name_is_one_that_the_api_server_takes() -> None:
    """The same document can be a custom resource."""
    data = policy(SOMETHING)
    data["metadata"]["name"] = "Not_A_Name"

    assert [at for at, _ in errors(PlacementPolicy, data)] == ["metadata.name"]


SHAPE = {"labels": {"spot": "true"}}


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({}, "spec"),
        ({"nodes": [SHAPE], "complementOf": "x"}, "spec"),
        ({"nodes": []}, "spec.nodes"),
        ({"nodes": [{}]}, "spec.nodes.0"),
        ({"nodes": [{"labels": {}}]}, "spec.nodes.0"),
        ({"nodes": [{"taints": [{"key": "a", "effect": "NoSchedule"}]}]}, "spec.nodes.0"),
        ({"complementOf": "spot"}, "spec.complementOf"),
        (
            {"nodes": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}]},
            "spec.nodes.0.matchExpressions.0.operator",
        ),
    ],
)
def test_a_class_is_shapes_or_the_complement_of_another(spec: dict[str, Any], path: str) -> None:
    """Exactly one of the two; each shape with a label or an expression that can be negated."""
    assert [at for at, _ in errors(CapacityClass, capacity_class(spec))] == [path]


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


def test_the_known_kinds_are_the_models() -> None:
    """The table by which documents find their model is complete."""
    assert {kind: model.__name__ for kind, model in KNOWN.items()} == {
        "PlacementPolicy": "PlacementPolicy",
        "CapacityClass": "CapacityClass",
        "PlacementException": "PlacementException",
        "RunSource": "RunSource",
    }


@pytest.mark.parametrize(
    ("spec", "at"),
    [
        ({"exclude": [{"roles": ["ps"]}] * 65, **SOMETHING}, "spec.exclude"),
        ({"defaults": {"labels": {f"k{n}": "v" for n in range(65)}}}, "spec.defaults.labels"),
        ({"overrides": {"tolerations": [{"key": "a"}] * 65}}, "spec.overrides.tolerations"),
    ],
)
def test_a_policy_has_no_more_than_the_api_server_could_judge(
    spec: dict[str, Any], at: str
) -> None:
    """A file and an object have the same limits."""
    [(where, said)] = errors(PlacementPolicy, policy(spec))

    assert (where, said.partition(" not ")[2]) == (at, "65")


def test_a_class_has_64_shapes_at_most() -> None:
    """As many as an object may have."""
    [(where, _)] = errors(CapacityClass, capacity_class({"nodes": [{"labels": {"a": "b"}}] * 65}))

    assert where == "spec.nodes"


def an_exception(**spec: Any) -> dict[str, Any]:
    """An exception document; a field that is None is left out."""
    whole = {**SPEC, **spec}
    return {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "PlacementException",
        "metadata": {"name": "debug-anna"},
        "spec": {key: value for key, value in whole.items() if value is not None},
    }


def problems(**spec: Any) -> list[tuple[str, str]]:
    """Path and message of what is wrong with an exception."""
    return errors(PlacementException, an_exception(**spec))


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"policies": ["*"]},
        {"policies": ["a", "b.c-d"]},
        {"match": {"namespaces": ["*"]}},
        {"match": {"coordinator": False}},
        {"until": "2026-12-01T18:00:00+01:00"},
        {"until": "2028-02-29T00:00:00-23:59"},
        {"reason": "x" * 500},
    ],
)
def test_what_says_everything_is_taken(spec: dict[str, Any]) -> None:
    """By name or all policies; a condition; a moment with its zone; a reason."""
    assert problems(**spec) == []


@pytest.mark.parametrize("field", SPEC)
def test_every_field_is_required(field: str) -> None:
    """Nothing about an exception is a matter of course."""
    assert [where for where, _ in problems(**{field: None})] == [f"spec.{field}"]


@pytest.mark.parametrize(
    ("spec", "where", "says"),
    [
        ({"policies": []}, "policies", "at least 1 item"),
        ({"policies": ["*", "a"]}, "policies", "leave out the others"),
        ({"policies": ["a", "b", "a"]}, "policies.2", "used by [0]"),
        ({"policies": ["spot-*"]}, "policies.0", "'spot-*'"),
        ({"policies": [f"p{n}" for n in range(65)]}, "policies", "at most 64"),
        ({"match": {}}, "match", 'write namespaces: ["*"]'),
        ({"match": {"podSelector": {}, "namespaceSelector": {}}}, "match", "every pod pass"),
        ({"until": "2026-12-01"}, "until", "'2026-12-01' is not a valid timestamp"),
        ({"until": "2026-12-01T18:00:00"}, "until", "zone"),
        ({"until": "2026-12-01 18:00:00Z"}, "until", "such as 2026-12-01T18:00:00Z"),
        ({"until": "2026-12-01T18:00:00.5Z"}, "until", "is not a valid timestamp"),
        ({"until": "2026-02-30T18:00:00Z"}, "until", "is not a valid timestamp"),
        ({"until": "tomorrow"}, "until", "is not a valid timestamp"),
        ({"reason": ""}, "reason", "at least 1 character"),
        ({"reason": " \n\t"}, "reason", "give the reason"),
        ({"reason": "x" * 501}, "reason", "at most 500 characters"),
    ],
)
def test_errors_are_reported_with_the_cure(
    spec: dict[str, Any], where: str, says: str, wording: Wording
) -> None:
    """At its field, and nothing else beside it."""
    [(at, message)] = problems(**spec)
    assert at == f"spec.{where}"
    mentions(message, says)
    if "should have" not in message:  # else it is pydantic's
        wording(message)


@pytest.mark.parametrize("field", ["namespace", "generateName"])
def test_an_exception_is_of_the_whole_cluster_and_has_a_name(field: str) -> None:
    """Stamps and the audit log tell of it by its name."""
    document = an_exception()
    document["metadata"][field] = "x"
    [(at, message)] = errors(PlacementException, document)
    assert at == f"metadata.{field}"
    assert "exception" in message
