"""What is said of the webhook configuration, and of namespaces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.test_added_source import SOURCE
from tests.fast_yaml import load_yaml
from tests.installation.doctor.cluster_states import (
    AUTHORITY,
    NOW,
    by_key,
    configuration,
    days,
    deployment,
    seen,
    text_of,
)
from tests.wording import Wording, mentions
from webhook import names, validating
from webhook.guards import stamp_guard
from webhook.installation.doctor.cluster_state import Finding, ReadKind
from webhook.installation.doctor.interception_checks import (
    interception,
    marked_namespaces,
    selectors,
)
from webhook.installation.doctor.policy_checks import judgement
from webhook.installation.policy_files import FROM_CLUSTER
from webhook.interception import DEFAULT_SOURCES, webhooks
from webhook.sources import SOURCES
from webhook.suspension import suspend

Json = dict[str, Any]


def disabled(**annotations: str) -> Json:
    """A configuration that is disabled for a day, with such annotations instead."""
    found = configuration()
    patch = suspend(found, NOW + days(1))
    kept = {**patch["metadata"]["annotations"], **annotations}
    return {
        "metadata": {**found["metadata"], "annotations": kept},
        "webhooks": patch["webhooks"],
    }


def test_the_entries_of_all_sources_exclude_each_other() -> None:
    """And leave out what the cluster runs on."""
    entries = webhooks([source.name for source in SOURCES])
    found = seen(configuration={**configuration(), "webhooks": entries})
    assert list(selectors(found)) == []


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {names.RUN: "x"}},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
        {},
        None,
    ],
)
def test_selectors_that_one_pod_can_meet_are_reported(
    selector: Json | None, wording: Wording
) -> None:
    """Whatever form they have."""
    entry = {**webhooks()[0], "name": "other.fairlead.dev", "objectSelector": selector}
    entries = [webhooks()[0], entry]
    (finding,) = selectors(seen(configuration={"webhooks": entries}))
    mentions(finding.what, "pods-0.fairlead.dev", "other.fairlead.dev", "both", "twice")
    wording(text_of(finding))


def test_labels_that_exclude_each_other_do_not_overlap() -> None:
    """One value each."""
    entries = [
        {**webhooks()[0], "name": f"{value}.fairlead.dev", "objectSelector": {"matchLabels": pair}}
        for value in ("a", "b")
        for pair in ({"tier": value},)
    ]
    assert list(selectors(seen(configuration={"webhooks": entries}))) == []


@pytest.mark.parametrize("namespace", ["kube-system", "fairlead-system"])
def test_namespaces_that_must_not_wait_for_the_webhook(namespace: str, wording: Wording) -> None:
    """Each by itself."""
    key = "kubernetes.io/metadata.name"
    others = [each for each in ("kube-system", "fairlead-system") if each != namespace]
    only = {"matchExpressions": [{"key": key, "operator": "NotIn", "values": others}]}
    entry = {**webhooks()[0], "namespaceSelector": only}
    (finding,) = selectors(seen(configuration={"webhooks": [entry]}))
    assert finding.severity == "error"
    mentions(finding.what, "pods-0.fairlead.dev", f"pods of {namespace} ")
    wording(text_of(finding))


def test_while_disabled_the_end_is_reported(wording: Wording) -> None:
    """It is no error: somebody wanted it."""
    (finding,) = interception(seen(configuration=disabled()))
    assert finding.severity == "warning"
    mentions(finding.what, "disabled until Mon 02:00:00 UTC")
    wording(text_of(finding))


def test_an_end_that_is_over_is_an_error() -> None:
    """Nobody has put the rules back."""
    (finding,) = interception(seen(configuration=disabled(), now=NOW + days(2)))
    assert finding.severity == "error"
    assert finding.cure == "fairlead enable"


def test_an_end_that_cannot_be_read_is_an_error(wording: Wording) -> None:
    """With what stands there."""
    found = disabled(**{names.DISABLED_UNTIL: "soon"})
    (finding,) = interception(seen(configuration=found))
    assert finding.severity == "error"
    mentions(finding.what, "'soon'")
    wording(text_of(finding))


def test_a_guard_makes_a_fail_open_known() -> None:
    """Without one it is a warning, with one it is worth knowing."""
    found = configuration(failurePolicy="Ignore")
    assert {each.severity for each in interception(seen(configuration=found))} == {
        "note",
        "warning",
    }
    there = by_key(stamp_guard(found["webhooks"], deny=False))
    guarded = seen(configuration=found, guard_objects=there)
    assert {each.severity for each in interception(guarded)} == {"note"}


def test_a_source_without_its_guard_is_named(wording: Wording) -> None:
    """Its component was added, and the guard's beside it was not."""
    found = configuration(failurePolicy="Ignore")
    *_, last = found["webhooks"]
    there = by_key(stamp_guard(found["webhooks"][:-1], deny=True))
    (warned,) = (
        each
        for each in interception(seen(configuration=found, guard_objects=there))
        if each.severity == "warning"
    )
    assert warned.what.startswith(f"{last['name']}: ")
    mentions(warned.what, "failurePolicy", "Ignore", "no guard")
    wording(text_of(warned))


def test_guards_that_could_not_be_read_are_not_missed() -> None:
    """That they could not be read is said by itself."""
    found = configuration(failurePolicy="Ignore")
    unread = seen(configuration=found, unread={ReadKind.GUARDS: "forbidden"})
    assert {each.severity for each in interception(unread)} == {"note"}


def test_a_namespace_is_marked_by_one_value_only() -> None:
    """What is nearly that is told with the cure; what says nothing is nothing."""
    namespaces = {
        "a": {names.PLACE: "all"},
        "b": {names.PLACE: "All"},
        "c": {"team": "x"},
    }
    marked, nearly = marked_namespaces(seen(namespaces=namespaces))
    assert (marked.severity, nearly.severity) == ("note", "warning")
    assert "placed in a (" in marked.what
    assert "fairlead.dev/place=all" in nearly.cure


MARKED = {"team": {names.PLACE: names.PLACE_ALL}, "lab": {}}


def told_of(entries: list[Json], **changes: Any) -> list[Finding]:
    """What is said of a configuration with these entries."""
    found = {**configuration(), "webhooks": entries}
    return list(interception(seen(configuration=found, namespaces=MARKED, **changes)))


def test_an_entry_that_is_gone_is_an_error(wording: Wording) -> None:
    """Of those that are always there, and of the sources that some entry is of."""
    entries = configuration()["webhooks"]
    (finding,) = told_of(entries[:1])
    assert finding.severity == "error"
    mentions(finding.what, "no entry namespaces.fairlead.dev", "not placed")
    wording(text_of(finding))
    sources = (*DEFAULT_SOURCES, "kubeflow-training")
    with_source = webhooks(sources, ca_bundle=AUTHORITY.certificate)
    assert told_of(with_source) == []
    gone = [each for each in with_source if each["name"] != "kubeflow-training-1.fairlead.dev"]
    assert len(gone) < len(with_source)
    assert any("no entry kubeflow-training-1.fairlead.dev" in each.what for each in told_of(gone))


def test_the_entries_of_an_added_source_are_as_they_should_be() -> None:
    """If the webhook's files have it; without it, its entries are told."""
    files = {"acme.yaml": SOURCE.encode()}
    table = seen(policies=files).sources
    sources = (*DEFAULT_SOURCES, "acme")
    entries = webhooks(sources, ca_bundle=AUTHORITY.certificate, table=table)
    writes = validating.webhooks(ca_bundle=AUTHORITY.certificate, policies=False, table=table)
    state = {"policies": files, "judging": {"webhooks": writes}}
    assert told_of(entries, **state) == []
    assert list(judgement(seen(**state))) == []
    gone = [each for each in entries if not each["name"].startswith("acme")]
    assert told_of(gone, **state) != []
    assert told_of(entries) != []


@pytest.mark.parametrize("from_cluster", [False, True])
def test_an_added_source_without_an_entry_is_told_with_the_cure(*, from_cluster: bool) -> None:
    """Nothing adds one by itself; of files and of objects."""
    place = "runsources/acme" if from_cluster else "acme.yaml"
    text = json.dumps(load_yaml(SOURCE)).encode() if from_cluster else SOURCE.encode()
    webhook = deployment(names.WEBHOOK, 3)
    if from_cluster:
        (container,) = webhook["spec"]["template"]["spec"]["containers"]
        container["args"] = ["serve", FROM_CLUSTER]
    deployments = {**seen().deployments, names.WEBHOOK: webhook}
    state = {"policies": {place: text}, "deployments": deployments}
    entries = configuration()["webhooks"]
    (finding,) = told_of(entries, **state)
    assert finding.severity == "warning"
    mentions(finding.what, "RunSource acme", "acme.example.com/job", "not placed")
    mentions(finding.cure, "fairlead install --source acme")
    assert told_of(entries) == []


def test_narrowed_entries_are_reported(wording: Wording) -> None:
    """A pod that is not sent is not placed, and nobody hears of it."""
    first, second = configuration()["webhooks"]
    condition = {"name": "not-x", "expression": "object.metadata.namespace != 'team'"}
    (finding,) = told_of([first, {**second, "matchConditions": [condition]}])
    assert finding.severity == "warning"
    mentions(finding.what, "matchConditions", "not-x")
    mentions(finding.cure, "/webhooks/1/matchConditions")
    wording(text_of(finding))
    selected = [*second["objectSelector"]["matchExpressions"], {"key": "a", "operator": "Exists"}]
    (finding,) = told_of([first, {**second, "objectSelector": {"matchExpressions": selected}}])
    assert finding.severity == "warning"
    mentions(finding.what, "objectSelector", "a Exists")


@pytest.mark.parametrize(
    ("operator", "values", "severity"),
    [("NotIn", ["lab"], "note"), ("NotIn", ["team"], "warning"), ("In", ["lab"], "warning")],
)
def test_namespaces_that_are_left_out_are_reported(
    operator: str, values: list[str], severity: str, wording: Wording
) -> None:
    """Somebody may have meant it; not where a namespace says that all its pods are placed."""
    first, second = configuration()["webhooks"]
    name = {"key": "kubernetes.io/metadata.name", "operator": operator, "values": values}
    selected = [*second["namespaceSelector"]["matchExpressions"], name]
    (finding,) = told_of([first, {**second, "namespaceSelector": {"matchExpressions": selected}}])
    assert finding.severity == severity
    mentions(finding.what, "namespaceSelector", operator, *values)
    wording(text_of(finding))
