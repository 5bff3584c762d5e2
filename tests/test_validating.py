"""Which writes are judged or commented on: what the entries promise to the API server."""

from __future__ import annotations

from typing import Any

from webhook import names, validating
from webhook.interception import EXCLUDED_NAMESPACES
from webhook.workloads.by_kind import KINDS

Json = dict[str, Any]


def entry(name: str, **options: Any) -> Json:
    found: Json = next(e for e in validating.webhooks(**options) if e["name"] == name)
    return found


def test_a_workload_is_never_refused() -> None:
    """Nor made to wait for long, and nothing comes of looking at it."""
    workloads = entry(validating.WORKLOADS)
    assert workloads["failurePolicy"] == "Ignore"
    assert workloads["timeoutSeconds"] <= 2
    assert workloads["sideEffects"] == "None"


def test_only_what_is_written_is_looked_at() -> None:
    """Not scale nor status: both change often, and change no template."""
    for rule in entry(validating.WORKLOADS)["rules"]:
        assert rule["operations"] == ["CREATE", "UPDATE"]
        assert not [each for each in rule["resources"] if "/" in each or "*" in each]


def test_every_kind_of_kubeflow_whose_pods_are_known_is_looked_at() -> None:
    """Kinds that are known are worth a rule: one without a definition matches nothing."""
    (rule,) = (
        r for r in entry(validating.WORKLOADS)["rules"] if r["apiGroups"] == ["kubeflow.org"]
    )
    assert set(rule["resources"]) == {
        f"{kind.lower()}s" for group, kind in KINDS if group == "kubeflow.org"
    }


def test_what_another_workload_has_made_is_left_out() -> None:
    """Its maker was commented on: a Deployment, and not its ReplicaSet as well."""
    condition, _ = entry(validating.WORKLOADS)["matchConditions"]
    assert "o.controller" in condition["expression"]


def test_workloads_are_looked_at_where_pods_are_placed() -> None:
    """Namespaces that are excluded, or not among those chosen, are left in peace."""
    workloads = entry(validating.WORKLOADS, only_namespaces=["ml"])
    selector = workloads["namespaceSelector"]["matchExpressions"]
    assert [(each["operator"], each["values"]) for each in selector] == [
        ("NotIn", [*EXCLUDED_NAMESPACES]),
        ("In", ["ml"]),
    ]


def test_a_policy_that_was_not_validated_is_rejected() -> None:
    """Of the kinds that policies are written in, and of no other."""
    policies = entry(validating.POLICIES)
    assert policies["failurePolicy"] == "Fail"
    (rule,) = policies["rules"]
    assert rule["apiGroups"] == [names.GROUP]
    assert {names.PLACEMENT_POLICIES, names.CAPACITY_CLASSES} <= set(rule["resources"])
    assert validating.webhooks(policies=False) == [entry(validating.WORKLOADS)]
