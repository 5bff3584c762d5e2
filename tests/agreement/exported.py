"""Policy sets as admission policies in a real API server, and pods that went either way."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
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


def apply(plane: ControlPlane, wanted: Sequence[Json], probes: Mapping[str, Json]) -> None:
    """Put the documents in the place of those before; return once they decide on every probe.

    `probes`: a pod by its namespace, one for each binding, because the API server takes the
    bindings up one by one. The mutating policy is known to be in force by its stamp, the validating
    one by its refusal of an annotation, which names the set.
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
    for namespace, pod in probes.items():
        _wait_until_in_force(plane, stamp_of(wanted), namespace, pod)


def _wait_until_in_force(plane: ControlPlane, stamp: str, namespace: str, pod: Json) -> None:
    eventually(
        f"the mutating policy is in force in {namespace}",
        lambda: _stamp(plane, namespace, pod) == stamp,
        explain=lambda: _answer(plane, namespace, pod),
    )
    asking = copy.deepcopy(pod)
    asking["metadata"]["annotations"] = {names.CAPACITY: "spot=Allow"}
    eventually(
        f"the validating policy is in force in {namespace}",
        lambda: f"(set {stamp})" in str(_answer(plane, namespace, asking).get("message")),
        explain=lambda: _answer(plane, namespace, asking),
    )


def withdraw(plane: ControlPlane, documents_: Sequence[Json]) -> None:
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
