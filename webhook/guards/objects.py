"""The shape of a ValidatingAdmissionPolicy and of its bindings, and how CEL writes a value.

Source: k8s.io/api/admissionregistration/v1. Fields that the API server would fill in are written
out, so that what is applied is what is stored.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from webhook import names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.shapes import JsonObject

_API_VERSION: Final = "admissionregistration.k8s.io/v1"


def policy(
    name: str,
    *,
    group: str,
    version: str,
    resource: str,
    operations: Sequence[str],
    validations: Sequence[JsonObject],
    variables: Mapping[str, str] | None = None,
    conditions: Mapping[str, str] | None = None,
    parameter_kind: str = "",
) -> JsonObject:
    """A policy over the objects of one resource, subresources left out.

    `variables` and `conditions` are CEL by name. An expression that fails counts as one that does
    not hold: a guard that cannot tell does not let pass. `parameter_kind` is of this API group.
    """
    rule = {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": [resource],
        "scope": "Namespaced",
    }
    spec: JsonObject = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "matchPolicy": "Equivalent",
            "namespaceSelector": {},
            "objectSelector": {},
            "resourceRules": [rule],
        },
    }
    if parameter_kind:
        spec["paramKind"] = {"apiVersion": _API_VERSION, "kind": parameter_kind}
    if conditions:
        spec["matchConditions"] = _named(conditions)
    if variables:
        spec["variables"] = _named(variables)
    spec["validations"] = list(validations)
    return {
        "apiVersion": _API_VERSION,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": _metadata(name),
        "spec": spec,
    }


def binding(policy_name: str, actions: Sequence[str]) -> JsonObject:
    """The binding of a policy to all that it matches, under the policy's own name."""
    return {
        "apiVersion": _API_VERSION,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": _metadata(policy_name),
        "spec": {"policyName": policy_name, "validationActions": list(actions)},
    }


def bindings(
    policy_name: str,
    entries: Sequence[Mapping[str, Any]],
    actions: Sequence[str],
    parameter: str = "",
) -> list[JsonObject]:
    """One binding for each entry of a MutatingWebhookConfiguration, with that entry's selectors.

    So a guard means the very pods that the webhook is sent, and no pod twice. Without the object
    that is named as `parameter`, if one is, the guard lets everything pass.
    """
    bound = []
    for entry in entries:
        one = binding(policy_name, actions)
        one["metadata"]["name"] = f"{policy_name}-{entry['name'].partition('.')[0]}"
        one["spec"]["matchResources"] = {
            "matchPolicy": "Equivalent",
            "namespaceSelector": entry["namespaceSelector"],
            "objectSelector": entry["objectSelector"],
        }
        if parameter:
            one["spec"]["paramRef"] = {"name": parameter, "parameterNotFoundAction": "Allow"}
        bound.append(one)
    return bound


def literal(value: object) -> str:
    """A string, or a list of strings, as CEL writes it."""
    return json.dumps(value, ensure_ascii=False)


def _metadata(policy_name: str) -> JsonObject:
    """With labels by which kustomize, and whoever uninstalls, find what is the guard's."""
    labels = {
        "app.kubernetes.io/name": names.MANAGER,
        "app.kubernetes.io/part-of": names.MANAGER,
        "app.kubernetes.io/component": policy_name.replace(names.MANAGER, "guard"),
    }
    return {"name": policy_name, "labels": labels}


def _named(expressions: Mapping[str, str]) -> list[JsonObject]:
    return [{"name": name, "expression": text} for name, text in expressions.items()]
