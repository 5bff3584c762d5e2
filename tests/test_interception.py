"""Which pods are sent to the webhook."""

from __future__ import annotations

import base64
from itertools import product
from typing import Any

import pytest

from tests.label_selectors import calls
from webhook import names
from webhook.interception import (
    DEFAULT_SOURCES,
    entry_name,
    leads_to,
    read_ca_bundle,
    select_sources,
    service,
    webhooks,
)
from webhook.sources import SOURCES

NAME = "kubernetes.io/metadata.name"
# Sources with a mark that has a value, with several marks, and with one.
SOME = ("fairlead", "nuclio", "mlrun", "polyaxon", "namespace")


def test_every_pod_of_a_run_is_sent_exactly_once() -> None:
    """Entries exclude each other, whatever marks a pod and its namespace carry together."""
    entries = webhooks(SOME)
    marks = [mark for source in select_sources(SOME) for mark in source.marks if not mark.namespace]
    for present in product([None, False, True], repeat=len(marks)):
        # None: the key is absent; False: its value is another, where a mark wants one.
        pod = {
            mark.key: (mark.value or "x") if there or mark.value is None else "other"
            for mark, there in zip(marks, present, strict=True)
            if there is not None
        }
        belongs = any(mark.key in pod and mark.value in (None, pod[mark.key]) for mark in marks)
        for place in ({}, {names.PLACE: "all"}, {names.PLACE: "none"}):
            namespace = {NAME: "research", **place}
            wanted = 1 if belongs or place == {names.PLACE: "all"} else 0
            assert calls(entries, namespace, pod) == wanted


def test_any_two_marks_of_all_sources_are_one_call() -> None:
    """With every source chosen, in a namespace that is placed as a whole."""
    entries = webhooks([source.name for source in SOURCES])
    marks = [mark for source in SOURCES for mark in source.marks if not mark.namespace]
    for one, other in product(marks, repeat=2):
        pod = {mark.key: mark.value or "x" for mark in (one, other)}
        for namespace in ({NAME: "research"}, {NAME: "research", names.PLACE: "all"}):
            assert calls(entries, namespace, pod) == 1


def test_another_source_adds_to_what_is_there() -> None:
    """Each entry gets an expression more; nothing is put between, as a component would have it."""
    before, after = webhooks(), webhooks([*DEFAULT_SOURCES, "mlrun"])
    absent = {"key": "mlrun/class", "operator": "DoesNotExist"}
    for one, other in zip(before, after, strict=False):
        expressions = [*one["objectSelector"]["matchExpressions"], absent]
        assert other == {**one, "objectSelector": {"matchExpressions": expressions}}
    assert after[-1]["name"] == "mlrun-0.fairlead.dev"


def test_by_default_pods_of_other_systems_are_not_sent() -> None:
    """Ours by their own mark, and those of namespaces that are placed as a whole."""
    entries = webhooks()
    assert [entry["name"] for entry in entries] == [
        "pods-0.fairlead.dev",
        "namespaces.fairlead.dev",
    ]
    assert calls(entries, {NAME: "research"}, {"mlrun/class": "job"}) == 0


def test_the_order_of_sources_is_the_tables() -> None:
    """Whatever order they are named in: an upgrade finds the same entries."""
    assert webhooks(SOME) == webhooks(tuple(reversed(SOME)))


def test_entries_have_names_that_the_api_server_takes() -> None:
    """One each, with two dots at least, and the same ones whatever else is chosen."""
    everything = [entry["name"] for entry in webhooks([source.name for source in SOURCES])]
    assert len(set(everything)) == len(everything)
    assert all(name.count(".") >= 2 for name in everything)
    assert {entry["name"] for entry in webhooks(SOME)} < set(everything)
    assert entry_name("mpi-operator", 2) == "mpi-operator-2.fairlead.dev"


def test_a_source_that_is_in_no_row_is_an_error() -> None:
    """With the names that there are."""
    with pytest.raises(ValueError, match=r"unknown source 'mlflow'.*fairlead, mlrun"):
        webhooks([*DEFAULT_SOURCES, "mlflow"])


@pytest.mark.parametrize("namespace", ["kube-system", "fairlead-system"])
def test_what_the_webhook_runs_on_is_never_sent_to_it(namespace: str) -> None:
    """Neither a mark on the pod nor one on the namespace makes an exception."""
    labels = {NAME: namespace, names.PLACE: "all"}
    assert calls(webhooks(), labels, {names.RUN: "x"}) == 0


def test_it_can_be_tried_out_in_one_namespace() -> None:
    """With only_namespaces the rest of the cluster is not touched."""
    entries = webhooks(only_namespaces=["trial"])
    assert calls(entries, {NAME: "trial"}, {names.RUN: "x"}) == 1
    assert calls(entries, {NAME: "other", names.PLACE: "all"}, {names.RUN: "x"}) == 0


def test_every_entry_is_called_for_the_creation_of_pods_alone() -> None:
    """What Fairlead cannot change, and what it must not delay, does not reach it."""
    for entry in webhooks():
        (rule,) = entry["rules"]
        assert (rule["operations"], rule["resources"]) == (["CREATE"], ["pods"])
        assert entry["sideEffects"] == "NoneOnDryRun"
        assert entry["reinvocationPolicy"] == "IfNeeded"
        assert entry["failurePolicy"] == "Fail"
        assert entry["timeoutSeconds"] == 3
        assert entry["admissionReviewVersions"] == ["v1"]


def test_pods_are_sent_to_the_service_or_to_an_address() -> None:
    """Whose authority is written by others, unless it is given here."""
    service = {"name": "fairlead-webhook", "namespace": "fairlead-system", "path": "/mutate"}
    for entry in webhooks():
        assert entry["clientConfig"] == {"service": {**service, "port": 443}}
    for entry in webhooks(url="https://127.0.0.1:8443/mutate", ca_bundle=b"pem"):
        encoded = base64.b64encode(b"pem").decode()
        assert entry["clientConfig"] == {
            "url": "https://127.0.0.1:8443/mutate",
            "caBundle": encoded,
        }


@pytest.mark.parametrize(
    ("entry", "ours"),
    [
        ({"clientConfig": {"service": service("/any")}}, True),
        ({"clientConfig": {"service": {"namespace": "x", "name": names.WEBHOOK}}}, False),
        ({"clientConfig": {"service": {"namespace": names.NAMESPACE, "name": "x"}}}, False),
        ({"clientConfig": {"url": "https://198.18.0.9"}}, False),
        ({"clientConfig": None}, False),
        ({}, False),
    ],
)
def test_an_entry_leads_to_one_service(entry: dict[str, Any], *, ours: bool) -> None:
    """By namespace and name, at whatever path; a url leads to none."""
    assert leads_to(entry, names.NAMESPACE, names.WEBHOOK) == ours


@pytest.mark.parametrize(
    ("client", "bundle"),
    [
        ({"caBundle": "cGVt"}, b"pem"),
        ({"caBundle": "!!!"}, b""),
        ({"caBundle": "c"}, b""),
        ({"caBundle": "é"}, b""),
        ({"caBundle": None}, b""),
        ({}, b""),
        (None, b""),
    ],
)
def test_an_invalid_ca_bundle_is_empty(client: dict[str, Any] | None, bundle: bytes) -> None:
    """Text that is not base64, and a field that is missing."""
    assert read_ca_bundle({"clientConfig": client}) == bundle
