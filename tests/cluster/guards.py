"""Admission policies that a test puts into the shared API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.cluster.spaces import Json, Space
from tests.eventually import eventually
from webhook.sandbox.control_plane import ControlPlane

_GROUP = "/apis/admissionregistration.k8s.io/v1"


@contextmanager
def guarded(
    plane: ControlPlane, documents: Sequence[Json], in_effect: Callable[[], bool]
) -> Iterator[None]:
    """The guard's documents are in force: `in_effect` holds. They are gone afterwards."""
    try:
        for document in documents:
            plane.api.create(_collection(document), document)
        eventually("the guard is in effect", in_effect)
        yield
    finally:
        for document in reversed(documents):
            plane.api.call("DELETE", f"{_collection(document)}/{document['metadata']['name']}")


def mutating(space: Space, name: str, expression: str) -> list[Json]:
    """A mutating policy of the namespace: a JSON patch of pods, asked for before webhooks."""
    api_version = "admissionregistration.k8s.io/v1"
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": space.name}}
    named = {"apiVersion": api_version, "metadata": {"name": name}}
    return [
        {
            **named,
            "kind": "MutatingAdmissionPolicy",
            "spec": {
                "matchConstraints": {"resourceRules": [rule]},
                "reinvocationPolicy": "IfNeeded",
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
            },
        },
        {
            **named,
            "kind": "MutatingAdmissionPolicyBinding",
            "spec": {"policyName": name, "matchResources": {"namespaceSelector": here}},
        },
    ]


def type_warnings(plane: ControlPlane, name: str) -> list[Any]:
    """What the API server found amiss in a policy's expressions, once it has looked at them."""
    path = f"{_GROUP}/validatingadmissionpolicies/{name}"
    eventually("types are checked", lambda: "typeChecking" in plane.api.get(path).get("status", {}))
    found: list[Any] = plane.api.get(path)["status"]["typeChecking"].get("expressionWarnings", [])
    return found


def _collection(document: Json) -> str:
    plural = {
        "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
        "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
        "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
        "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    }[document["kind"]]
    return f"{_GROUP}/{plural}"
