"""The API server refuses a Run that makes no sense, with the cure, and takes one at the limit."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.causes import causes, message_with
from tests.cluster.run_placement_cases import LEFT, PLACEMENT_CASES
from tests.cluster.run_rule_cases import CASES, Case
from tests.run.whole_runs import a_run, an_environment
from webhook import names
from webhook.placement.schema.syntax import MAX_LISTED
from webhook.run.crd import FIXED, RULES, custom_resource_definition
from webhook.run.model.replica import MAX_OVERRIDES
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.run_fixtures"]

Json = dict[str, Any]
RUNS = f"/apis/{names.API_VERSION}/namespaces/default/{names.RUNS}"
STRICT = "?dryRun=All&fieldValidation=Strict"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# etcd takes 1.5 MiB, the object's managed fields among it, which name each override.
STORED_BYTES = 500_000
# What a test of cost has to leave unused, of each rule's budget and of all together.
MARGIN = 2
# Rules for updates have their cases in another module.
RULES_AT_CREATION = [rule for name in RULES for rule in RULES[name] if rule not in FIXED]


def problems(plane: ControlPlane, run: Json) -> list[tuple[str, str]]:
    """Field and message of each cause for which the API server refuses the Run, if it does."""
    return causes(plane, f"{RUNS}{STRICT}", run)


def test_each_rule_has_a_case() -> None:
    """What is not provoked may say anything."""
    words = {case.words for case in (*CASES, *PLACEMENT_CASES)}

    provoked = {message_with(each, RULES_AT_CREATION) for each in words}
    assert {rule.message for rule in RULES_AT_CREATION} == provoked


@pytest.mark.parametrize("case", [*CASES, *PLACEMENT_CASES], ids=lambda case: case.field)
def test_an_object_that_breaks_a_rule_is_rejected_with_the_rules_message_only(
    run_api: ControlPlane, case: Case
) -> None:
    """And what is just within the rule is taken."""
    message = message_with(case.words, RULES_AT_CREATION)

    assert problems(run_api, case.broken) == [(case.field, message)]
    assert problems(run_api, case.kept) == []


@pytest.mark.parametrize("case", LEFT, ids=lambda case: case.field)
def test_what_is_too_deep_for_rules_is_taken(run_api: ControlPlane, case: Case) -> None:
    """The controller refuses it: the price of judging it here would be all other rules'."""
    assert problems(run_api, case.broken) == []


@pytest.mark.parametrize(
    ("run", "field"),
    [
        (
            a_run(replicas={"worker": {"count": 3, "byIndex": [{"index": 2}, {"index": 2}]}}),
            "spec.replicas[worker].byIndex[1]",
        ),
        (
            a_run(kind="service", ports=[{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]),
            "spec.ports[1]",
        ),
        (
            a_run(environment={"capacity": [{"class": "a", "mode": "Allow"}] * 2}),
            "spec.environment.capacity[1]",
        ),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_no_two_of_one_key(run_api: ControlPlane, run: Json, field: str) -> None:
    """Two overrides of one replica, two ports of one number, two settings for one class."""
    ((where, message),) = problems(run_api, run)

    assert where == field
    assert message.startswith("Duplicate value: ")


def doubled(definition: Json) -> Json:
    """The definition in another group, with the cost of each rule so many times over."""
    twice = copy.deepcopy(definition)
    twice["metadata"]["name"] = f"{names.RUNS}.twice.{names.GROUP}"
    twice["spec"]["group"] = f"twice.{names.GROUP}"
    for node in schemas(twice["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
        for rule in node.get("x-kubernetes-validations", ()):
            rule["rule"] = " && ".join(f"({rule['rule']})" for _ in range(MARGIN))
    return twice


def schemas(node: Any) -> Iterator[Json]:
    """Every mapping in a schema."""
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list):
            yield from schemas(child)
    if isinstance(node, dict):
        yield node


def test_rules_cost_half_of_what_the_api_server_allows_at_most(run_api: ControlPlane) -> None:
    """Of each rule's estimated budget and of the whole: it takes every rule twice over."""
    twice = doubled(custom_resource_definition())

    status, answer = run_api.api.call("POST", f"{CRDS}?dryRun=All", twice)
    assert status == 201, answer["message"]
    run_api.api.create(f"{CRDS}?dryRun=All&fieldValidation=Strict", twice)


def largest(environment: Json, overridden: int) -> Json:
    """A Run with this environment and all overrides there may be, some with full tolerations."""
    indexes = range(10000 - MAX_OVERRIDES, 10000)
    run = a_run(
        framework="tensorflow",
        environment=environment,
        replicas={
            **{role: {"environment": an_environment()} for role in ("master", "evaluator")},
            **{
                role: {"count": 10000, "byIndex": [{"index": index} for index in indexes]}
                for role in ("worker", "ps")
            },
        },
    )
    tolerations = [{"key": "k", "operator": "Exists"}, {"key": "k"}] * (MAX_LISTED // 2)
    for override in run["spec"]["replicas"]["worker"]["byIndex"][:overridden]:
        override["environment"] = {"tolerations": tolerations}
    return run


def full_environment() -> Json:
    """An environment with as many items in each list of objects as there may be."""
    environment = an_environment()
    for node in schemas(environment):
        for field, items in node.items():
            if isinstance(items, list) and isinstance(items[0], dict):
                node[field] = [distinct(items[0], number) for number in range(MAX_LISTED)]
    return environment


def distinct(item: Json, number: int) -> Json:
    """The item as one of many, where lists have keys."""
    keys = ("class", "topologyKey", "name")
    return {**item, **{key: f"{item[key]}{number}" for key in keys if key in item}}


def test_the_largest_run_is_within_the_budget(run_api: ControlPlane) -> None:
    """Every list of an environment full, and a thousand overrides of each role: taken."""
    assert problems(run_api, largest(full_environment(), overridden=200)) == []


def test_the_largest_run_that_is_stored_can_be_updated(
    run_api: ControlPlane, namespace: str
) -> None:
    """The rules that compare with what was there are within the budget too."""
    run = largest(an_environment(), overridden=300)
    assert len(json.dumps(run)) > STORED_BYTES
    path = RUNS.replace("default", namespace)
    stored = run_api.api.create(path, run)

    stored["spec"]["suspend"] = True
    status, answer = run_api.api.call("PUT", f"{path}/mnist", stored)
    assert (status, answer.get("message")) == (200, None)
