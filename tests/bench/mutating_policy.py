"""MutatingAdmissionPolicies that do in the API server what the webhooks' patch does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from webhook import names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.sandbox.control_plane import ControlPlane

Json = dict[str, Any]

_GROUP: Final = "/apis/admissionregistration.k8s.io/v1"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_REQUIRED_PATH: Final = f"/spec/affinity/nodeAffinity/{_REQUIRED}"
_NODES: Final = "Object.spec.affinity.nodeAffinity"
_REQUIRED_TYPE: Final = f"{_NODES}.{_REQUIRED}"
_TERM: Final = f"{_REQUIRED_TYPE}.nodeSelectorTerms"
_SPOT_KEY: Final = '"example.com/capacity"'
_SPOT: Final = f'{_TERM}.matchExpressions{{key: {_SPOT_KEY}, operator: "In", values: ["spot"]}}'


def constant(name: str, namespace: str, patch: Sequence[Json]) -> Json:
    """The least that such a policy can cost: the operations as constants, run once.

    It is right for pods like those measured, and for no others.
    """
    operations = ", ".join(
        f"JSONPatch{{op: {_literal(o['op'])}, path: {_literal(o['path'])}"
        + (f", value: {_literal(o['value'])}}}" if "value" in o else "}")
        for o in patch
    )
    return _policy(name, namespace, f"[{operations}]", "Never")


def equivalent(name: str, namespace: str, stamp: str) -> Json:
    """What the three policies of tests.bench.policies that match mean, for any pod of that kind.

    Keys that are there stay or are set, tolerations join, the expression goes into every term of
    required node affinity. As a webhook with reinvocationPolicy IfNeeded it runs again after a
    change, and changes nothing then. `stamp` is the text of Fairlead's annotation.
    """
    parts = [
        _parent("object.metadata.annotations", "/metadata/annotations"),
        _add("/metadata/annotations/example.com~1cost-centre", '"research"'),
        _add("/metadata/annotations/fairlead.dev~1placement", json.dumps(stamp)),
        _parent("object.spec.nodeSelector", "/spec/nodeSelector"),
        _default("object.spec.nodeSelector", "/spec/nodeSelector", "kubernetes.io/arch", '"amd64"'),
        _default("object.spec.nodeSelector", "/spec/nodeSelector", "pool", '"experiments"'),
        _parent("object.spec.securityContext", "/spec/securityContext"),
        _unset("object.spec.securityContext", "/spec/securityContext", "fsGroup", "1000"),
        _unset("object.spec.securityContext", "/spec/securityContext", "runAsNonRoot", "true"),
        _tolerate('key: "team", value: "research", effect: "NoSchedule"', "team"),
        _tolerate('key: "nvidia.com/gpu", operator: "Exists"', "nvidia.com/gpu"),
        _tolerate(
            'key: "example.com/capacity", operator: "Equal", value: "spot", effect: "NoSchedule"',
            "example.com/capacity",
        ),
        _narrow(),
    ]
    return _policy(name, namespace, " +\n".join(parts), "IfNeeded")


def create(plane: ControlPlane, policy: Json) -> None:
    """Create the policy, and the binding that puts it into effect."""
    name = policy["metadata"]["name"]
    plane.api.create(f"{_GROUP}/mutatingadmissionpolicies", policy)
    binding = {"metadata": {"name": name}, "spec": {"policyName": name}}
    plane.api.create(f"{_GROUP}/mutatingadmissionpolicybindings", binding)


def _policy(name: str, namespace: str, expression: str, reinvocation: str) -> Json:
    here = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace]}
    rule = {
        "operations": ["CREATE"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
        "scope": "Namespaced",
    }
    return {
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": reinvocation,
            "matchConstraints": {
                "namespaceSelector": {"matchExpressions": [here]},
                "objectSelector": {"matchExpressions": [{"key": names.RUN, "operator": "Exists"}]},
                "resourceRules": [rule],
            },
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
        },
    }


def _literal(value: object) -> str:
    """A CEL literal. Members of an object are dyn(): CEL wants those of a map to be of one type."""
    if isinstance(value, dict):
        members = (f"{json.dumps(key)}: dyn({_literal(item)})" for key, item in value.items())
        return f"{{{', '.join(members)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return json.dumps(value)


def _add(path: str, value: str) -> str:
    return f'[JSONPatch{{op: "add", path: "{path}", value: {value}}}]'


def _parent(field: str, path: str) -> str:
    """The object that keys are added to, where there is none."""
    return f"(has({field}) ? [] : {_add(path, '{}')})"


def _default(field: str, path: str, key: str, value: str) -> str:
    """One key of a map, unless it is there."""
    add = _add(f"{path}/{key.replace('/', '~1')}", value)
    return f'(has({field}) && "{key}" in {field} ? [] : {add})'


def _unset(field: str, path: str, name: str, value: str) -> str:
    """One member of an object, unless it is there."""
    return f"(has({field}) && has({field}.{name}) ? [] : {_add(f'{path}/{name}', value)})"


def _tolerate(members: str, key: str) -> str:
    """One toleration, unless one of its key is there. (Every pod has two from the API server.)"""
    add = _add("/spec/tolerations/-", f"Object.spec.tolerations{{{members}}}")
    there = f'object.spec.tolerations.exists(t, has(t.key) && t.key == "{key}")'
    return f"({there} ? [] : {add})"


def _narrow() -> str:
    """The expression of capacity class spot in every term that has no such key."""
    nodes = "object.spec.affinity.nodeAffinity"
    alone = f"{_REQUIRED_TYPE}{{nodeSelectorTerms: [{_TERM}{{matchExpressions: [{_SPOT}]}}]}}"
    node_affinity = f"{_NODES}{{{_REQUIRED}: {alone}}}"
    # A list as the value of an operation, with typed objects in it, makes the API server's handler
    # panic (1.36.3): so the object around the list is the value.
    narrowed = (
        f"{_REQUIRED_TYPE}{{nodeSelectorTerms: {nodes}.{_REQUIRED}.nodeSelectorTerms.map(t, "
        f"{_TERM}{{matchExpressions: {_copied('matchExpressions')} + "
        f"(has(t.matchExpressions) && t.matchExpressions.exists(e, e.key == {_SPOT_KEY}) "
        f"? [] : [{_SPOT}]), matchFields: {_copied('matchFields')}}})}}"
    )
    return (
        f"(!has(object.spec.affinity) "
        f"? {_add('/spec/affinity', f'Object.spec.affinity{{nodeAffinity: {node_affinity}}}')} : "
        f"!has({nodes}) ? {_add('/spec/affinity/nodeAffinity', node_affinity)} : "
        f"{_add(_REQUIRED_PATH, f'has({nodes}.{_REQUIRED}) ? {narrowed} : {alone}')})"
    )


def _copied(name: str) -> str:
    """One of a term's lists of requirements, as values of the operations' types."""
    return (
        f"(has(t.{name}) ? t.{name}.map(e, {_TERM}.{name}{{key: e.key, operator: e.operator, "
        f"values: has(e.values) ? e.values : []}}) : [])"
    )
