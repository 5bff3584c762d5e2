"""The registration of the webhook."""

from __future__ import annotations

import base64
from itertools import product
from typing import Any

import pytest

from webhook import names
from webhook.sandbox.webhook_config import mutating_webhook_configuration

URL = "https://127.0.0.1:8443/mutate"


def holds(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Whether a label selector of matchExpressions matches; the rules of Kubernetes' docs."""
    for expression in selector["matchExpressions"]:
        key, values = expression["key"], expression.get("values")
        met = {
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
            "In": labels.get(key) in (values or ()),
            "NotIn": labels.get(key) not in (values or ()),
        }[expression["operator"]]
        if not met:
            return False
    return True


def calls(configuration: dict[str, Any], namespace: dict[str, str], pod: dict[str, str]) -> int:
    """How many of the entries want to see the pod."""
    return sum(
        holds(entry["namespaceSelector"], namespace) and holds(entry["objectSelector"], pod)
        for entry in configuration["webhooks"]
    )


@pytest.mark.parametrize("labels", [(names.RUN,), (names.RUN, "mlrun/class", "jobset")])
def test_every_pod_of_a_run_is_seen_exactly_once(labels: tuple[str, ...]) -> None:
    """Entries exclude each other, whatever marks a pod and its namespace carry together."""
    configuration = mutating_webhook_configuration(URL, b"", labels=labels)
    for marks in product([True, False], repeat=len(labels)):
        pod = {label: "x" for label, present in zip(labels, marks, strict=True) if present}
        for place in ({}, {names.PLACE: "all"}, {names.PLACE: "none"}):
            namespace = {"kubernetes.io/metadata.name": "research", **place}
            wanted = 1 if pod or place == {names.PLACE: "all"} else 0
            assert calls(configuration, namespace, pod) == wanted


@pytest.mark.parametrize("namespace", ["kube-system", "fairlead-system"])
def test_what_the_webhook_runs_on_is_never_sent_to_it(namespace: str) -> None:
    """Neither a mark on the pod nor one on the namespace makes an exception."""
    configuration = mutating_webhook_configuration(URL, b"")
    labels = {"kubernetes.io/metadata.name": namespace, names.PLACE: "all"}
    assert calls(configuration, labels, {names.RUN: "x"}) == 0


def test_it_can_be_tried_out_in_one_namespace() -> None:
    """With only_namespaces the rest of the cluster is not touched."""
    configuration = mutating_webhook_configuration(URL, b"", only_namespaces=["trial"])
    trial = {"kubernetes.io/metadata.name": "trial"}
    other = {"kubernetes.io/metadata.name": "other", names.PLACE: "all"}
    assert calls(configuration, trial, {names.RUN: "x"}) == 1
    assert calls(configuration, other, {names.RUN: "x"}) == 0


def test_every_entry_is_called_for_the_creation_of_pods_alone() -> None:
    """What Fairlead cannot change, and what it must not delay, does not reach it."""
    for entry in mutating_webhook_configuration(URL, b"pem")["webhooks"]:
        (rule,) = entry["rules"]
        assert (rule["operations"], rule["resources"]) == (["CREATE"], ["pods"])
        assert entry["sideEffects"] == "None"
        assert entry["reinvocationPolicy"] == "IfNeeded"
        assert entry["failurePolicy"] == "Fail"
        assert entry["admissionReviewVersions"] == ["v1"]
        assert entry["clientConfig"]["url"] == URL
        assert base64.b64decode(entry["clientConfig"]["caBundle"]) == b"pem"
