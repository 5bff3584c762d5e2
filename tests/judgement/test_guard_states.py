"""A guard that rejects less than this version's is not in force, however that came to be."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from webhook import names
from webhook.controller.owned_objects import created_for_runs
from webhook.guards import (
    capacity_guard,
    doctor_guard,
    node_name_guard,
    run_author_guard,
    stamp_guard,
)
from webhook.interception import DEFAULT_SOURCES, select_sources, webhooks
from webhook.judgement.entry_states import ABSENT, NARROWED
from webhook.judgement.guard_states import CHANGED, NOT_BOUND, guard_states

Json = dict[str, Any]
SOURCES = (*DEFAULT_SOURCES, "mlrun", "kubeflow-training")
ENTRIES = webhooks(SOURCES)
MARKS = [mark for source in select_sources(SOURCES) for mark in source.marks]
USERS = ["system:serviceaccount:queues:a", "b"]
GUARDS: Mapping[str, list[Json]] = {
    names.RUN_AUTHORS_GUARD: run_author_guard(created_for_runs()),
    names.STAMP_GUARD: stamp_guard(ENTRIES, deny=True),
    f"{names.STAMP_GUARD} warns": stamp_guard(ENTRIES, deny=False),
    names.TOLERATIONS_GUARD: capacity_guard(ENTRIES, MARKS),
    f"{names.TOLERATIONS_GUARD} exempts": capacity_guard(ENTRIES, MARKS, USERS),
    names.NODE_NAMES_GUARD: node_name_guard(ENTRIES),
    f"{names.NODE_NAMES_GUARD} exempts": node_name_guard(ENTRIES, USERS),
    names.DOCTOR: doctor_guard(),
}
OF_PODS = [each for each in GUARDS if not each.startswith((names.RUN_AUTHORS_GUARD, names.DOCTOR))]


def judged(policy: Json | None, *bindings: Json) -> tuple[str, str]:
    """The reason and message of one guard; its name is that of its bindings, too."""
    name = (policy or {"metadata": {"name": bindings[0]["spec"]["policyName"]}})["metadata"]["name"]
    stored = {} if policy is None else {name: policy}
    authors = GUARDS[names.RUN_AUTHORS_GUARD][0]
    (found,) = guard_states([name], stored, bindings, ENTRIES, {}, authors)
    assert (found.entry, found.kind) == (name, "guard")
    return found.reason, found.message


def changed(policy: Json, **spec: Any) -> Json:
    return {**policy, "spec": {**policy["spec"], **spec}}


@pytest.mark.parametrize("guard", GUARDS)
def test_what_ships_is_in_force(guard: str) -> None:
    assert judged(*GUARDS[guard]) == ("", "")


@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_that_is_gone_or_has_no_binding_that_acts_is_missed(guard: str) -> None:
    policy, *bindings = GUARDS[guard]
    assert judged(None, *bindings)[0] == ABSENT
    assert judged(policy)[0] == NOT_BOUND
    assert (
        judged(policy, *(changed(each, validationActions=["Audit"]) for each in bindings))[0]
        == NOT_BOUND
    )


@pytest.mark.parametrize("guard", [each for each in GUARDS if names.STAMP_GUARD not in each])
def test_a_guard_that_denies_does_not_only_warn(guard: str) -> None:
    """That of the stamp may."""
    policy, *bindings = GUARDS[guard]
    warning = [changed(each, validationActions=["Warn"]) for each in bindings]
    assert judged(policy, *warning)[0] == NOT_BOUND


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("validations", lambda _: []),
        ("validations", lambda found: found[1:]),
        ("validations", lambda found: [{**found[0], "expression": "true"}, *found[1:]]),
        (
            "validations",
            lambda found: [
                *found[:-1],
                {**found[-1], "expression": f"{found[-1]['expression']} || true"},
            ],
        ),
        ("matchConditions", lambda found: [*(found or []), {"name": "x", "expression": "false"}]),
        (
            "matchConditions",
            lambda found: [*(found or []), {"name": "not-exempt", "expression": "false"}],
        ),
        ("failurePolicy", lambda _: "Ignore"),
        ("paramKind", lambda _: {"apiVersion": "v1", "kind": "ConfigMap"}),
        ("matchConstraints", lambda found: {**found, "resourceRules": []}),
        (
            "matchConstraints",
            lambda found: {**found, "objectSelector": {"matchLabels": {"a": "b"}}},
        ),
        (
            "matchConstraints",
            lambda found: {
                **found,
                "resourceRules": [
                    {**each, "operations": ["DELETE"]} for each in found["resourceRules"]
                ],
            },
        ),
        (
            "matchConstraints",
            lambda found: {
                **found,
                "resourceRules": [
                    {**each, "resourceNames": ["x"]} for each in found["resourceRules"]
                ],
            },
        ),
        (
            "matchConstraints",
            lambda found: {**found, "excludeResourceRules": found["resourceRules"]},
        ),
    ],
)
def test_each_part_that_rejects_less_is_named(guard: str, part: str, change: Any) -> None:
    policy, *bindings = copy.deepcopy(GUARDS[guard])
    edited = changed(policy, **{part: change(policy["spec"].get(part))})
    reason, message = judged(edited, *bindings)
    assert (reason, part in message) == (CHANGED, True)


def test_a_variable_that_is_changed_is_named() -> None:
    policy, *bindings = copy.deepcopy(GUARDS[names.TOLERATIONS_GUARD])
    policy["spec"]["variables"][0]["expression"] = "[]"
    reason, message = judged(policy, *bindings)
    assert (reason, "variables" in message) == (CHANGED, True)


@pytest.mark.parametrize("guard", GUARDS)
def test_what_the_api_server_fills_in_or_rejects_more_is_no_change(guard: str) -> None:
    """And other texts of messages, as another version has them."""
    policy, *bindings = copy.deepcopy(GUARDS[guard])
    spec = policy["spec"]
    del spec["failurePolicy"]
    spec["auditAnnotations"] = [{"key": "a", "valueExpression": "''"}]
    for each in spec["validations"]:
        each.pop("messageExpression", None)
        each["message"] = "other"
    spec["validations"] = [{"expression": "more", "reason": "Invalid"}, *spec["validations"]]
    spec["matchConstraints"]["resourceRules"][0]["operations"] = ["*"]
    assert judged(policy, *bindings) == ("", "")


@pytest.mark.parametrize("guard", GUARDS)
def test_a_binding_that_selects_less_is_named(guard: str) -> None:
    """Also if others of the guard select all that they should. Namespaces may be left out."""
    policy, first, *rest = copy.deepcopy(GUARDS[guard])
    title = first["metadata"]["name"]

    def less(**change: Any) -> tuple[str, str]:
        return judged(policy, changed(first, **change), *rest)

    selected = first["spec"].get("matchResources") or {}
    selector = selected.get("namespaceSelector") or {}
    for key, operator, wrong in (("team", "Exists", True), (names.NAMESPACE_NAME, "NotIn", False)):
        more = {"key": key, "operator": operator, **({} if wrong else {"values": ["lab"]})}
        narrower = {"matchExpressions": [*selector.get("matchExpressions", ()), more]}
        reason, message = less(matchResources={**selected, "namespaceSelector": narrower})
        assert (reason, title in message) == ((NARROWED, True) if wrong else ("", False))
    for each in ("resourceRules", "excludeResourceRules"):
        rules = policy["spec"]["matchConstraints"]["resourceRules"]
        assert less(matchResources={**selected, each: rules})[0] == NARROWED
    if "paramRef" in first["spec"]:
        parameter = {"name": "fairlead", "parameterNotFoundAction": "Allow"}
        assert less(paramRef=parameter)[0] == NARROWED


def test_the_guard_of_the_stamp_has_a_binding_for_each_entry() -> None:
    """Or one for all pods."""
    policy, first, *rest = GUARDS[names.STAMP_GUARD]
    reason, message = judged(policy, *rest)
    assert (reason, "pods-0.fairlead.dev" in message) == (NARROWED, True)
    everything = {"policyName": names.STAMP_GUARD, "validationActions": ["Deny"]}
    of_all = {"metadata": {"name": "all"}, "spec": everything}
    assert judged(policy, of_all) == ("", "")
    assert judged(policy, first, of_all) == ("", "")


def test_a_mark_that_is_not_kept_any_more_is_a_change() -> None:
    """Without the label a pod escapes the guard."""
    _, *bindings = GUARDS[names.TOLERATIONS_GUARD]
    fewer, *_ = capacity_guard(ENTRIES, [mark for mark in MARKS if mark.key != names.RUN])
    assert judged(fewer, *bindings)[0] == CHANGED
    assert judged(
        fewer, *(each for each in bindings if "pods-0" not in each["metadata"]["name"])
    ) == (
        "",
        "",
    )


def test_a_guard_of_an_admin_only_has_to_act() -> None:
    """This version does not know what it is to reject."""
    policy, binding = copy.deepcopy(GUARDS[names.DOCTOR])
    policy["metadata"]["name"] = binding["spec"]["policyName"] = "fairlead-own"
    assert judged(changed(policy, validations=[]), binding) == ("", "")
    assert judged(policy, changed(binding, validationActions=["Warn"])) == ("", "")
    assert judged(None, binding)[0] == ABSENT
