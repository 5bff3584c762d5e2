"""Policy sets as admission policies in a real API server, and pods that went either way."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from tests.eventually import eventually
from webhook import names
from webhook.exported.documents import documents
from webhook.exported.positioned_settings import placed_of
from webhook.interception import webhooks
from webhook.sandbox.control_plane import ControlPlane

Json = dict[str, Any]
_GROUP = "/apis/admissionregistration.k8s.io/v1"
_PLURALS = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


def exported(text: str, namespaces: Iterable[str], default_priority_class: str) -> list[Json]:
    """The documents of a text's policies, for these namespaces."""
    placed, _ = placed_of({"p.yaml": text.encode()}, default_priority_class)
    return documents(placed, webhooks(only_namespaces=sorted(namespaces)))


def apply(plane: ControlPlane, wanted: Sequence[Json], namespace: str, pod: Json) -> None:
    """Put the documents in the place of those before; return once they decide in the namespace.

    `pod` is one of a run, which they admit. The mutating policy is known to be in force by its
    stamp, the validating one by its refusal of an annotation, which names the set.
    """
    for document in wanted:
        path = f"{_GROUP}/{_PLURALS[document['kind']]}"
        name = document["metadata"]["name"]
        there = plane.api.get(f"{path}/{name}")
        if there is None:
            plane.api.create(path, document)
            continue
        document["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"]
        status, body = plane.api.call("PUT", f"{path}/{name}", document)
        assert status == 200, body
    said = stamp_of(wanted)
    eventually(
        "the mutating policy is in force",
        lambda: _stamp(plane, namespace, pod) == said,
        explain=lambda: _answer(plane, namespace, pod),
    )
    asking = copy.deepcopy(pod)
    asking["metadata"]["annotations"] = {names.CAPACITY: "spot=Allow"}
    eventually(
        "the validating policy is in force",
        lambda: f"(set {said})" in str(_answer(plane, namespace, asking).get("message")),
        explain=lambda: _answer(plane, namespace, asking),
    )


def withdraw(plane: ControlPlane, documents_: Sequence[Json]) -> None:
    """Take the documents away."""
    for document in reversed(documents_):
        path = f"{_GROUP}/{_PLURALS[document['kind']]}"
        plane.api.call("DELETE", f"{path}/{document['metadata']['name']}")


def stamp_of(wanted: Sequence[Json]) -> str:
    """The stamp that these documents write."""
    variables = {v["name"]: v["expression"] for v in wanted[0]["spec"]["variables"]}
    return str(variables["set_annotations"].partition('\\"set\\":\\"')[2][:16])


def _answer(plane: ControlPlane, namespace: str, pod: Json) -> Json:
    path = f"/api/v1/namespaces/{namespace}/pods?dryRun=All"
    answer: Json = plane.api.call("POST", path, pod)[1]
    return answer


def _stamp(plane: ControlPlane, namespace: str, pod: Json) -> str:
    answer = _answer(plane, namespace, pod)
    if answer["kind"] != "Pod":
        return ""
    text = answer["metadata"].get("annotations", {}).get(names.PLACEMENT, "")
    return str(text.partition('"set":"')[2][:16])
