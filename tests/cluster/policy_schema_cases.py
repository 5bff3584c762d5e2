"""Objects that the schemas of policies and classes refuse by themselves, without a rule."""

from __future__ import annotations

from typing import Any

from tests.cluster.policy_rule_cases import a_class, a_policy, an_exception, an_object
from tests.cluster.run_placement_cases import near
from webhook import names
from webhook.placement.schema.syntax import MAX_LISTED

Json = dict[str, Any]

_MANY = MAX_LISTED + 1
_CONSTRAINT = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
_NEAR = "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
# Of each form of refusal that the schema itself makes: the object, the field, and what is said.
BY_SCHEMA: list[tuple[Json, str, str]] = [
    (a_policy(enforcement="Enforced"), "spec.enforcement", 'supported values: "Enforce", "Audit"'),
    (a_policy(priority=2**31), "spec.priority", "should be less than or equal to 2147483647"),
    (a_policy(priority="high"), "spec.priority", "must be of type integer"),
    (a_policy(rollout={}), "spec.rollout.namespaces", "Required value"),
    (a_policy(match={"namespaces": []}), "spec.match.namespaces", "at least 1 items"),
    (a_policy(match={"namespaces": ["A"]}), "spec.match.namespaces[0]", "should match"),
    (a_policy(match={"kinds": ["jobs"]}), "spec.match.kinds[0]", "supported values"),
    (a_policy(match={"frameworks": ["torch"]}), "spec.match.frameworks[0]", "supported values"),
    (a_policy(match={"roles": ["boss"]}), "spec.match.roles[0]", "supported values"),
    (a_policy(match={"replicaIndexes": [-1]}), "spec.match.replicaIndexes[0]", "greater than or"),
    (a_policy(match={"resources": ["a b"]}), "spec.match.resources[0]", "should match"),
    (a_policy(match={"volumes": ["pvc"]}), "spec.match.volumes[0]", "supported values"),
    (
        a_policy(match={"serviceAccounts": ["ml/a"]}),
        "spec.match.serviceAccounts[0]",
        "should match",
    ),
    (a_policy(exclude=[{"roles": ["ps"]}] * _MANY), "spec.exclude", "at most 64 items"),
    (
        a_policy(defaults={"patchStrategy": "Replace"}),
        "spec.defaults.patchStrategy",
        'supported values: "PreMerge", "IsNull"',
    ),
    (
        a_policy(defaults={"tolerations": [{"operator": "Exists"}] * _MANY}),
        "spec.defaults.tolerations",
        "at most 64 items",
    ),
    (
        a_policy(overrides={"nodeSelector": {f"k{n}": "v" for n in range(_MANY)}}),
        "spec.overrides.nodeSelector",
        "at most 64 items",
    ),
    (
        a_policy(overrides={"nodeSelector": {"a": "x" * 64}}),
        "spec.overrides.nodeSelector.a",
        "Too long",
    ),
    (
        a_policy(overrides={"capacity": [{"class": "a", "mode": "Never"}]}),
        "spec.overrides.capacity[0].mode",
        "supported values",
    ),
    (
        a_policy(overrides={"capacity": [{"class": "a", "mode": "Allow"}] * 2}),
        "spec.overrides.capacity[1]",
        "Duplicate value",
    ),
    (
        a_policy(requirements={"topologySpreadConstraints": [_CONSTRAINT] * 2}),
        "spec.requirements.topologySpreadConstraints[1]",
        "Duplicate value",
    ),
    (
        a_policy(requirements={"securityContext": {"sysctls": [{"name": "a", "value": "1"}] * 2}}),
        "spec.requirements.securityContext.sysctls[1]",
        "Duplicate value",
    ),
    (
        a_policy(
            requirements=near(labelSelector={}, matchLabelKeys=[f"k{n}" for n in range(_MANY)])
        ),
        f"spec.requirements.{_NEAR}.matchLabelKeys",
        "at most 64 items",
    ),
    (
        a_policy(match={"podSelector": {"matchLabels": {"a": "b c"}}}),
        "spec.match.podSelector.matchLabels.a",
        "should match",
    ),
    (a_class(nodes=[]), "spec.nodes", "at least 1 items"),
    (a_class(nodes=[{"labels": {"a": "b"}}] * _MANY), "spec.nodes", "at most 64 items"),
    (
        a_class(nodes=[{"labels": {"a": "b"}, "taints": [{"key": "a"}]}]),
        "spec.nodes[0].taints[0].effect",
        "Required value",
    ),
    (
        a_class(nodes=[{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}]),
        "spec.nodes[0].matchExpressions[0].operator",
        "supported values",
    ),
    (an_exception(policies=[]), "spec.policies", "at least 1 items"),
    (an_exception(policies=[f"p{n}" for n in range(_MANY)]), "spec.policies", "at most 64 items"),
    (an_exception(policies=["a", "a"]), "spec.policies[1]", "Duplicate value"),
    (an_exception(until="x" * 254), "spec.until", "Too long"),
    (an_exception(reason=""), "spec.reason", "should be at least 1 chars long"),
    (an_exception(reason="x" * 501), "spec.reason", "Too long"),
    (an_object(names.EXCEPTION_KIND, {"policies": ["*"]}), "spec.reason", "Required value"),
]
