"""The API server refuses a policy or a class that makes no sense, with the cure."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.causes import causes, message_with
from tests.cluster.policy_form_cases import FORMS, Form
from tests.cluster.policy_rule_cases import CASES, a_policy, path_of
from tests.cluster.policy_schema_cases import BY_SCHEMA
from tests.cluster.run_rule_cases import Case
from tests.run.whole_runs import an_environment
from webhook import names
from webhook.placement.schema.syntax import MAX_LISTED
from webhook.policy.crd.definitions import RESOURCES, custom_resource_definitions
from webhook.policy.crd.policy_rules import RULES
from webhook.policy.model import PARTS
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.policy_fixtures"]

Json = dict[str, Any]
STRICT = "?dryRun=All&fieldValidation=Strict"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# What a test of cost has to leave unused, of each rule's budget and of all together.
MARGIN = 3
EVERY_RULE = [rule for rules in RULES.values() for rule in rules]


def problems(plane: ControlPlane, whole: Json) -> list[tuple[str, str]]:
    """Field and message of each cause for which the API server refuses the object, if it does."""
    return causes(plane, f"{path_of(whole['kind'])}{STRICT}", whole)


def test_each_rule_has_a_case() -> None:
    """What is not provoked may say anything."""
    words = {case.words for case in CASES} | {form.words for form in FORMS}

    provoked = {message_with(each, EVERY_RULE) for each in words}
    assert {rule.message for rule in EVERY_RULE} == provoked


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.field)
def test_an_object_that_breaks_a_rule_is_rejected_with_the_rules_message_only(
    policy_api: ControlPlane, case: Case
) -> None:
    """And what is just within the rule is taken."""
    message = message_with(case.words, EVERY_RULE)

    assert problems(policy_api, case.broken) == [(case.field, message)]
    assert problems(policy_api, case.kept) == []


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.field)
def test_a_malformed_text_is_rejected_with_the_expected_form(
    policy_api: ControlPlane, form: Form
) -> None:
    """With the text itself, and no regular expression for a person to read."""
    message = message_with(form.words, EVERY_RULE)

    ((field, said),) = problems(policy_api, form.broken)
    assert field == form.field
    # Up to Kubernetes 1.33 the text's type is in the place of the text.
    assert said in (f"{json.dumps(form.value)}: {message}", f'"string": {message}')
    assert problems(policy_api, form.kept) == []


@pytest.mark.parametrize(("whole", "field", "message"), BY_SCHEMA, ids=lambda each: str(each)[:40])
def test_what_a_schema_can_say_it_says(
    policy_api: ControlPlane, whole: Json, field: str, message: str
) -> None:
    """Types, words, ranges, patterns, lengths, doubles: in the API server's words."""
    found = problems(policy_api, whole)

    assert field in [where for where, _ in found]
    assert message in " ".join(what for _, what in found)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"matches": {}}, "spec.matches"),
        ({"overrides": {"nodeName": "n"}}, "spec.overrides.nodeName"),
        ({"overrides": {"patchStrategy": "IsNull"}}, "spec.overrides.patchStrategy"),
        ({"defaults": {"capacity": [{"class": "a", "mode": "Allow", "wight": 3}]}}, "wight"),
    ],
)
def test_a_field_that_is_not_there_is_refused(
    policy_api: ControlPlane, spec: Json, field: str
) -> None:
    """kubectl asks for that, unless it is told otherwise."""
    whole = a_policy(**spec)

    status, answer = policy_api.api.call("POST", f"{path_of(whole['kind'])}{STRICT}", whole)
    assert status == 400
    assert f'unknown field "{field}"' in answer["message"] or field in answer["message"]


def schemas(node: Any) -> Iterator[Json]:
    """Every mapping in a schema."""
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list):
            yield from schemas(child)
    if isinstance(node, dict):
        yield node


@pytest.mark.parametrize("kind", RESOURCES)
def test_rules_cost_a_third_of_what_the_api_server_allows_at_most(
    policy_api: ControlPlane, kind: str
) -> None:
    """Of each rule's estimated budget and of the whole: it takes every rule three times over."""
    dear = copy.deepcopy(custom_resource_definitions()[kind])
    dear["metadata"]["name"] = RESOURCES[kind].replace(".", ".dear.", 1)
    dear["spec"]["group"] = f"dear.{names.GROUP}"
    for node in schemas(dear["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
        for rule in node.get("x-kubernetes-validations", ()):
            rule["rule"] = " && ".join(f"({rule['rule']})" for _ in range(MARGIN))

    status, answer = policy_api.api.call("POST", f"{CRDS}?dryRun=All", dear)
    assert status == 201, answer["message"]
    policy_api.api.create(f"{CRDS}?dryRun=All&fieldValidation=Strict", dear)


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
