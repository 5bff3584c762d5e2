"""The API server refuses what makes no sense, with the cure, and takes what is at the limit."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.cluster.causes import causes, message_with
from tests.cluster.rule_cases import BY_SCHEMA, CASES, LEFT, RUN_CASES, Case, a_policy, path_of
from tests.run.whole_runs import a_run, an_environment
from webhook import names
from webhook.crd.rules import Rule
from webhook.placement.schema.syntax import MAX_LISTED
from webhook.policy.crd.policy_rules import RULES
from webhook.policy.model import PARTS
from webhook.run import crd as run
from webhook.run.crd import FIXED
from webhook.run.model.replica import MAX_OVERRIDES
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.policy_fixtures", "tests.cluster.run_fixtures"]

Json = dict[str, Any]
STRICT = "?dryRun=All&fieldValidation=Strict"
RUNS = f"/apis/{names.API_VERSION}/namespaces/default/{names.RUNS}"
# etcd takes 1.5 MiB, the object's managed fields among it, which name each override.
STORED_BYTES = 500_000
EVERY_RULE = [rule for rules in RULES.values() for rule in rules]
# Rules for updates have their cases in another module.
RULES_AT_CREATION = [rule for name in run.RULES for rule in run.RULES[name] if rule not in FIXED]
pytestmark = pytest.mark.usefixtures("policy_api")


def problems(plane: ControlPlane, whole: Json) -> list[tuple[str, str]]:
    """Field and message of each cause for which the API server refuses the object, if it does."""
    collection = RUNS if whole["kind"] == names.RUN_KIND else path_of(whole["kind"])
    return causes(plane, f"{collection}{STRICT}", whole)


@pytest.mark.parametrize(
    ("cases", "rules"),
    [(CASES, EVERY_RULE), (RUN_CASES, RULES_AT_CREATION)],
    ids=["policies", "runs"],
)
def test_each_rule_has_a_case(cases: Sequence[Case], rules: list[Rule]) -> None:
    """What is not provoked may say anything."""
    provoked = {message_with(each, rules) for each in {case.words for case in cases}}
    assert {rule.message for rule in rules} == provoked


@pytest.mark.parametrize("case", [*CASES, *RUN_CASES], ids=lambda case: case.field)
def test_an_object_that_breaks_a_rule_is_rejected_with_the_rules_message_only(
    run_api: ControlPlane, case: Case
) -> None:
    """With a malformed text itself, and no regular expression; what is just within is taken."""
    rules = RULES_AT_CREATION if case.broken["kind"] == names.RUN_KIND else EVERY_RULE
    message = message_with(case.words, rules)
    # Up to Kubernetes 1.33 the text's type is in the place of the text.
    texts = [f"{json.dumps(case.value)}: {message}", f'"string": {message}']
    ((field, said),) = problems(run_api, case.broken)
    assert field == case.field
    assert said in (texts if case.value else [message])
    assert problems(run_api, case.kept) == []


@pytest.mark.parametrize(("whole", "field", "message"), BY_SCHEMA, ids=lambda each: str(each)[:40])
def test_what_a_schema_can_say_it_says(
    policy_api: ControlPlane, whole: Json, field: str, message: str
) -> None:
    """Types, words, ranges, patterns, lengths, doubles: in the API server's words."""
    found = problems(policy_api, whole)

    assert field in [where for where, _ in found]
    assert message in " ".join(what for _, what in found)


def full(value: Any) -> Any:
    """A placement with as many items in each list of objects, and keys, as there may be."""
    if isinstance(value, list) and isinstance(value[0], dict):
        return [distinct(full(value[0]), number) for number in range(MAX_LISTED)]
    if isinstance(value, dict):
        return {key: full(child) for key, child in value.items()}
    return value


def distinct(item: Json, number: int) -> Json:
    """The item as one of many, where lists have keys."""
    keys = ("class", "topologyKey", "name")
    return {**item, **{key: f"{item[key]}{number}" for key in keys if key in item}}


def test_a_large_policy_is_within_the_budget(policy_api: ControlPlane) -> None:
    """Every list of a placement full, 64 labels to write, and 64 blocks to exclude: taken."""
    placement = full(an_environment())
    for field in ("nodeSelector", "labels", "annotations"):
        placement[field] = {f"{'a' * 60}.example/{n:063}": "v" for n in range(MAX_LISTED)}
    del placement["patchStrategy"]
    placement.pop("nodeName", None)
    block = {"podSelector": {"matchLabels": {f"example.com/{n}": "v" for n in range(MAX_LISTED)}}}
    policy = a_policy(
        exclude=[block] * MAX_LISTED, **{part: copy.deepcopy(placement) for part in PARTS[1:]}
    )

    assert problems(policy_api, policy) == []


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


def test_the_largest_run_is_within_the_budget(run_api: ControlPlane) -> None:
    """Every list of an environment full, and a thousand overrides of each role: taken."""
    assert problems(run_api, largest(full(an_environment()), overridden=200)) == []


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
