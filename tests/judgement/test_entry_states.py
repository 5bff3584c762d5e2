"""What was installed is in force or it is said what is not, and why."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import hostile
from webhook import names, validating
from webhook.installation.choices import Choices, adapted
from webhook.installation.manifests import CONTROLLER
from webhook.interception import (
    DEFAULT_SOURCES,
    PATH,
    Record,
    expected_entries,
    read_record,
    record_annotations,
    service,
    webhooks,
)
from webhook.judgement import entry_states
from webhook.judgement.entry_states import (
    as_meant,
    pod_entries,
    untrusted_entries,
    validating_entries,
)
from webhook.sources import SHIPPED, SOURCES
from webhook.suspension import suspend

Json = dict[str, Any]
OTHERS = sorted({each.name for each in SOURCES} - set(DEFAULT_SOURCES))
WHOLE = {"team": {names.PLACE: names.PLACE_ALL}}
FIRST, SECOND = "pods-0.fairlead.dev", "namespaces.fairlead.dev"
subsets = st.lists(st.sampled_from(OTHERS), unique=True)


def recorded(entries: Sequence[Json], *guards: str, **annotations: str) -> Record:
    """The record of an installation, as read from its Deployment."""
    found = record_annotations(
        [each["name"] for each in entries],
        [each["name"] for each in validating.webhooks()],
        guards,
    )
    created = "2026-01-01T00:00:00Z"
    metadata = {"creationTimestamp": created, "annotations": {**found, "x": "y", **annotations}}
    return read_record({"metadata": metadata})


def configured(*entries: Json) -> Json:
    metadata = {"name": "fairlead", "resourceVersion": "1"}
    return {"metadata": metadata, "webhooks": list(entries)}


def reasons(
    record: Record, configuration: Json | None, untrusted: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The reason of each entry for pods that is not in force."""
    found = pod_entries(record, configuration, SHIPPED, WHOLE, untrusted or {})
    return {each.entry: each.reason for each in found if each.reason}


@given(subsets, st.data())
def test_of_any_sources_each_entry_is_missed_by_itself(sources: list[str], data: Any) -> None:
    """What ships is in force; any entries that go are absent, whatever was live before."""
    entries = webhooks({*DEFAULT_SOURCES, *sources})
    record = recorded(entries)
    assert reasons(record, configured(*entries)) == {}
    gone = data.draw(st.sets(st.sampled_from([each["name"] for each in entries])))
    left = [each for each in entries if each["name"] not in gone]
    assert reasons(record, configured(*left)) == dict.fromkeys(gone, entry_states.ABSENT)
    assert reasons(record, None) == {each["name"]: entry_states.ABSENT for each in entries}


@given(subsets, st.data())
def test_any_more_expression_narrows_its_entry_alone(sources: list[str], data: Any) -> None:
    """Unless it is meant, which then does not count as a missing stamp either."""
    entries = webhooks({*DEFAULT_SOURCES, *sources})
    at = data.draw(st.integers(0, len(entries) - 1))
    selector = data.draw(st.sampled_from(["objectSelector", "namespaceSelector"]))
    key, operator, values = data.draw(
        st.sampled_from(
            [
                ("team", "Exists", []),
                ("team", "NotIn", ["a"]),
                (names.NAMESPACE_NAME, "In", ["a"]),
                (names.NAMESPACE_NAME, "NotIn", ["a"]),
                (names.NAMESPACE_NAME, "NotIn", ["team"]),
                ("control-plane", "DoesNotExist", []),
                ("control-plane", "NotIn", ["true"]),
                ("control-plane", "NotIn", ["other"]),
                ("kubernetes.azure.com/managedby", "NotIn", ["aks"]),
            ]
        )
    )
    more = {"key": key, "operator": operator, **({"values": values} if values else {})}
    changed = [dict(each) for each in entries]
    before = changed[at][selector]["matchExpressions"]
    changed[at][selector] = {"matchExpressions": [*before, more]}
    known = ("a", "true", "aks") if operator == "NotIn" else ()
    meant = selector == "namespaceSelector" and (
        (key == names.NAMESPACE_NAME and values == ["a"] and operator == "NotIn")
        or (key == "control-plane" and (operator == "DoesNotExist" or values == ["true"]))
        or (key.startswith("kubernetes.azure.com") and values[0] in known)
    )
    record, live = recorded(entries), configured(*changed)
    wanted = {} if meant else {entries[at]["name"]: entry_states.NARROWED}
    assert reasons(record, live) == wanted
    expected = expected_entries(record)
    counted = as_meant(record, live, SHIPPED, WHOLE)
    differs = [each["name"] for each, own in zip(counted, expected, strict=True) if each != own]
    assert differs == ([entries[at]["name"]] if meant else [])


def test_only_some_namespaces_are_recorded() -> None:
    """A trial is no fault if it is recorded, and is one if not."""
    entries = webhooks(only_namespaces=["lab", "research"])
    both = {FIRST: entry_states.NARROWED, SECOND: entry_states.NARROWED}
    assert reasons(recorded(entries), configured(*entries)) == both
    annotation = {names.INTERCEPTED_NAMESPACES: "research, lab"}
    assert recorded(entries, **annotation).only_namespaces == ("research", "lab")
    assert reasons(recorded(entries, **annotation), configured(*entries)) == {}


SELECTOR = {
    "matchLabels": {"team": "ml"},
    "matchExpressions": [{"key": "tier", "operator": "Exists"}],
}


def narrowed(selector: Json) -> list[Json]:
    """The entries as the chart narrows them: beside what they select."""
    found = webhooks()
    for each in found:
        own = each["namespaceSelector"]["matchExpressions"]
        each["namespaceSelector"] = {
            "matchLabels": selector["matchLabels"],
            "matchExpressions": [*own, *selector["matchExpressions"]],
        }
    return found


def test_a_selector_of_namespaces_is_recorded() -> None:
    """It is no fault if it is recorded; one expression more is one."""
    entries = narrowed(SELECTOR)
    both = {FIRST: entry_states.NARROWED, SECOND: entry_states.NARROWED}
    annotation = {names.INTERCEPTED_NAMESPACE_SELECTOR: json.dumps(SELECTOR)}
    assert reasons(recorded(entries), configured(*entries)) == both
    assert reasons(recorded(entries, **annotation), configured(*entries)) == {}
    more = narrowed({**SELECTOR, "matchLabels": {"team": "ml", "gpu": "yes"}})
    assert reasons(recorded(more, **annotation), configured(*more)) == both


UNREADABLE: dict[str, Sequence[object]] = {
    "matchLabels": [7, [], {"a": {}}, {"a": None}],
    "matchExpressions": [
        *(7, [7], [{}], {"a": 1}),
        [{"key": "a", "operator": {}, "values": [[]]}],
        [{"key": "a", "operator": [], "values": ["b"]}],
    ],
}


@pytest.mark.parametrize(
    "text",
    [
        *hostile.PLAIN.values(),
        *(json.dumps({key: value}) for key, values in UNREADABLE.items() for value in values),
    ],
)
def test_a_record_that_cannot_be_read_is_no_limit(text: str) -> None:
    """So what is live and narrower is reported, and nothing is raised."""
    entries = narrowed(SELECTOR)
    record = recorded(entries, **{names.INTERCEPTED_NAMESPACE_SELECTOR: text})
    assert set(reasons(record, configured(*entries)).values()) == {entry_states.NARROWED}


def test_without_a_record_what_every_installation_has_is_missed() -> None:
    """An installation of an older version has none."""
    assert read_record(None) == Record({})
    assert reasons(Record({}), None) == {
        FIRST: entry_states.ABSENT,
        SECOND: entry_states.ABSENT,
    }


def test_an_entry_of_no_known_source_is_missed_by_its_name() -> None:
    """Its RunSource may be gone. A recorded kind that is not known counts as one for pods."""
    annotations = {f"{names.INTERCEPTS}acme-0": "mutating", f"{names.INTERCEPTS}new": "other"}
    record = recorded(webhooks(), **annotations)
    missing = {"acme-0.fairlead.dev": entry_states.ABSENT, "new.fairlead.dev": entry_states.ABSENT}
    assert reasons(record, configured(*webhooks())) == missing


def test_an_entry_whose_source_is_gone_is_not_in_force() -> None:
    """It sends pods that the webhook does not know; the other entries leave these to it."""
    mark = {"key": "acme.example.com/job", "operator": "Exists"}
    absent = {"key": mark["key"], "operator": "DoesNotExist"}
    first, second = webhooks(ca_bundle=b"x")
    acme = {**first, "name": "acme-0.fairlead.dev", "objectSelector": {"matchExpressions": [mark]}}
    beside = [
        {
            **each,
            "objectSelector": {
                "matchExpressions": [*each["objectSelector"]["matchExpressions"], absent]
            },
        }
        for each in (first, second)
    ]
    record = recorded([*beside, acme])
    live = configured(*beside, acme)
    assert reasons(record, live) == {acme["name"]: entry_states.NO_SOURCE}
    # Its pods have to have a stamp too.
    assert [each["name"] for each in as_meant(record, live, SHIPPED, WHOLE)][-1] == acme["name"]
    files = record._replace(names={FIRST: "mutating", acme["name"]: "mutating"})
    assert reasons(files, live) == {}


def test_a_record_that_is_taken_away_is_known_by_the_options_of_the_installation() -> None:
    """What it was about is still looked at."""
    controller = adapted(Choices(sources=("mlrun",)))[CONTROLLER]
    whole = read_record(controller)
    annotations = controller["metadata"]["annotations"]
    taken = {name: text for name, text in annotations.items() if "mlrun" not in name}
    rest = {name: text for name, text in taken.items() if names.RUN_AUTHORS_GUARD not in name}
    assert len(annotations) == len(rest) + 2
    assert read_record({"metadata": {"annotations": rest}}) == whole
    assert whole.names[names.RUN_AUTHORS_GUARD] == "guard"


def test_a_name_that_no_annotation_can_have_is_not_recorded() -> None:
    """The installation would be refused because of it."""
    assert record_annotations([f"{'a' * 70}-0.{names.GROUP}"], (), ()) == {}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"rules": []}, entry_states.NO_RULES),
        ({"clientConfig": {"service": {"name": "x", "namespace": "y"}}}, entry_states.ELSEWHERE),
        ({"clientConfig": {"url": "https://127.0.0.1:1/mutate"}}, entry_states.ELSEWHERE),
        ({"clientConfig": {"service": service("/foresee")}}, entry_states.ELSEWHERE),
        (
            {"clientConfig": {"service": {**service(PATH), "port": 9999}}},
            entry_states.ELSEWHERE,
        ),
        ({"matchConditions": [{"name": "c", "expression": "x"}]}, entry_states.NARROWED),
        ({"failurePolicy": "Ignore"}, entry_states.FAILS_OPEN),
    ],
)
def test_other_changes_of_an_entry_are_reasons(change: Json, reason: str) -> None:
    """Each by itself."""
    first, *rest = webhooks()
    live = configured({**first, **change}, *rest)
    assert reasons(recorded(webhooks()), live) == {FIRST: reason}


def test_what_was_chosen_is_in_force() -> None:
    """To fail open, to call a webhook outside the cluster, to limit namespaces by their labels."""
    outside = f"https://example.invalid:8443{PATH}"
    options = json.dumps({"url": outside, "sources": ["mlrun"]})
    limit = [{"key": "team", "operator": "Exists"}]
    sources = {*DEFAULT_SOURCES, "mlrun"}
    entries = webhooks(sources, url=outside, failure_policy="Ignore", namespace_labels=limit)
    record = recorded(
        webhooks(),
        **{
            names.INSTALL_OPTIONS: options,
            names.FAILS_OPEN: "true",
            names.INTERCEPTED_NAMESPACE_SELECTOR: json.dumps({"matchExpressions": limit}),
        },
    )
    assert reasons(record, configured(*entries)) == {}
    # A source of the options is missed without an annotation of its own.
    assert reasons(record, configured(*entries[:2])) == {
        each["name"]: entry_states.ABSENT for each in entries[2:]
    }
    judging = validating.webhooks(url="https://example.invalid:8443", namespace_labels=limit)
    states = validating_entries(record, configured(*judging), SHIPPED, {})
    assert [each.reason for each in states] == ["", ""]


def test_a_disabled_webhook_says_until_when() -> None:
    """Also if somebody has garbled the end."""
    live = configured(*webhooks())
    patch = suspend(live, datetime(2026, 12, 1, 2, tzinfo=UTC))
    disabled = {**patch, "metadata": {**live["metadata"], **patch["metadata"]}}
    first, second = pod_entries(recorded(webhooks()), disabled, SHIPPED, {}, {})
    assert (first.reason, second.reason) == (entry_states.DISABLED, entry_states.DISABLED)
    assert first.message == "disabled until 2026-12-01T02:00:00+00:00"
    disabled["metadata"]["annotations"][names.DISABLED_UNTIL] = "soon"
    first, _ = pod_entries(recorded(webhooks()), disabled, SHIPPED, {}, {})
    assert "soon" in first.message


def test_an_authority_is_trusted_by_what_it_verifies() -> None:
    """Without a certificate to compare with, only an empty bundle is a reason."""
    published = {"a": b"good", "b": b"", "c": b"bad"}
    assert set(untrusted_entries(published, None)) == {"b"}
    found = untrusted_entries(published, lambda bundle: bundle == b"good")
    assert set(found) == {"b", "c"}
    live = configured(*webhooks())
    assert reasons(recorded(webhooks()), live, {FIRST: "x"}) == {FIRST: entry_states.NOT_TRUSTED}


def test_entries_that_validate_have_all_their_rules() -> None:
    """More is no reason, less is one."""
    policies, workloads = validating.webhooks()

    def found(*entries: Json) -> dict[str, str]:
        states = validating_entries(recorded(()), configured(*entries), SHIPPED, {})
        return {each.entry: each.reason for each in states}

    good = {policies["name"]: "", workloads["name"]: ""}
    assert found(policies, workloads) == good
    absent = dict.fromkeys(good, entry_states.ABSENT)
    states = validating_entries(recorded(()), None, SHIPPED, {})
    assert {each.entry: each.reason for each in states} == absent
    assert found(policies) == {**good, workloads["name"]: entry_states.ABSENT}
    less = [{**rule, "operations": ["CREATE"]} for rule in policies["rules"]]
    narrowed = {**good, policies["name"]: entry_states.NARROWED}
    assert found({**policies, "rules": less}, workloads) == narrowed
    of_others = {"matchLabels": {"a": "b"}}
    assert found({**policies, "objectSelector": of_others}, workloads) == narrowed
    never = {"name": "x", "expression": "false"}
    assert found({**policies, "matchConditions": [never]}, workloads) == narrowed
    more = {**workloads, "matchConditions": [*workloads["matchConditions"], never]}
    assert found(policies, more) == {**good, workloads["name"]: entry_states.NARROWED}
    # Policies are in no namespace.
    assert found({**policies, "namespaceSelector": of_others}, workloads) == good
    open_ = {**good, policies["name"]: entry_states.FAILS_OPEN}
    assert found({**policies, "failurePolicy": "Ignore"}, workloads) == open_
    silent = {**good, policies["name"]: entry_states.NO_RULES}
    assert found({**policies, "rules": []}, workloads) == silent
