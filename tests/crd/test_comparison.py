"""What a cluster's definition lacks of this version's own, and what the API server drops for it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.crd.schemas import nodes
from webhook import names
from webhook.crd.comparison import Comparison, compare, newer_parts
from webhook.crd.definition import KEEPS_UNKNOWN
from webhook.policy.crd.definitions import custom_resource_definitions
from webhook.run.crd import custom_resource_definition

Json = dict[str, Any]
OWN: dict[str, Json] = {
    **custom_resource_definitions(),
    names.RUN_KIND: custom_resource_definition(),
}
POLICY = OWN[names.POLICY_KIND]


def schema_of(definition: Json) -> Json:
    schema: Json = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def without(definition: Json, path: str, *, keeps: bool = True) -> Json:
    """The definition without a field; unless it keeps unknown fields, as of before they did."""
    found = copy.deepcopy(definition)
    parent, _, field = path.rpartition(".")
    by_path = dict(nodes(schema_of(found)))
    by_path[parent]["properties"].pop(field)
    for node in by_path.values():
        if not keeps:
            node.pop(KEEPS_UNKNOWN, None)
    return found


@pytest.mark.parametrize("kind", OWN)
def test_the_own_definition_lacks_nothing(kind: str) -> None:
    assert compare(OWN[kind], copy.deepcopy(OWN[kind])) == Comparison()


@pytest.mark.parametrize("kind", OWN)
def test_other_words_in_descriptions_are_no_difference(kind: str) -> None:
    """Those of another version; nothing of what is stored depends on them."""
    other = copy.deepcopy(OWN[kind])
    for _, node in nodes(schema_of(other)):
        node["description"] = f"{node.pop('description', '')} In the words of before."
    assert compare(OWN[kind], other) == compare(other, OWN[kind]) == Comparison()
    # A field of the name is one, and not a text.
    if kind == names.POLICY_KIND:
        assert compare(OWN[kind], without(other, ".spec.description")).lacking


@pytest.mark.parametrize("kind", OWN)
def test_each_field_of_each_definition_is_missed(kind: str) -> None:
    """Whether it stands in an object, in a list or in a mapping: by its path."""
    fields = [
        path
        for path, _ in nodes(schema_of(OWN[kind]))
        if path.startswith((".spec.", ".status.")) and not path.endswith("[]")
    ]
    assert len(fields) > 10
    for path in fields[:: max(1, len(fields) // 40)]:
        missing = path[1:]
        dropping = compare(OWN[kind], without(OWN[kind], path, keeps=False))
        assert (dropping.lacking, dropping.dropped) == ((missing,), (missing,))
        keeping = compare(OWN[kind], without(OWN[kind], path))
        kept = () if kind != names.RUN_KIND else (missing,)
        assert (keeping.lacking, keeping.dropped) == ((missing,), kept)


def test_what_a_newer_definition_has_is_not_missed() -> None:
    """While an upgrade goes on, definitions are newer than programs."""
    found = compare(without(POLICY, ".spec.rollout"), POLICY)
    assert found == Comparison(differs=True)
    assert found.report("it") == ""


@pytest.mark.parametrize("served", [None, {}, {"spec": {"versions": []}}])
def test_a_definition_that_does_not_serve_this_version_lacks_all(served: Json | None) -> None:
    assert compare(POLICY, served).lacking == ("spec", "status")


def test_a_field_without_a_schema_keeps_what_is_in_it() -> None:
    """Such as one that another tool wrote by hand: nothing of it is dropped."""
    served = copy.deepcopy(POLICY)
    schema_of(served)["properties"]["spec"] = {"type": "object", KEEPS_UNKNOWN: True}
    found = compare(POLICY, served)
    assert not found.dropped
    assert "spec.rollout" in found.lacking


def test_a_report_says_what_becomes_of_the_fields() -> None:
    """Three of them at most."""
    dropped = compare(POLICY, without(POLICY, ".spec.rollout", keeps=False)).report("pp")
    assert "definition pp is older" in dropped
    assert "spec.rollout, and the API server drops that from all objects" in dropped
    kept = compare(POLICY, without(POLICY, ".spec.rollout")).report("pp")
    assert kept.endswith("it lacks spec.rollout, which is stored without its rules")


def test_what_an_older_version_does_not_know_of_an_object_is_named() -> None:
    """Fields and words of the cluster's definition only: what no definition knows is a mistake."""
    spec = {
        "match": {"namespaces": ["a"], "misspelled": 1},
        "rollout": {"namespaces": ["pilot"]},
        "enforcement": "Audit",
        "overrides": {"capacity": [{"class": "spot", "mode": "Prefer"}], "labels": {"a": "b"}},
    }
    document = {"spec": spec}
    assert newer_parts(POLICY, POLICY, document) == []
    older = without(without(POLICY, ".spec.rollout"), ".spec.match.namespaces")
    by_path = dict(nodes(schema_of(older)))
    by_path[".spec.enforcement"]["enum"].remove("Audit")
    del by_path[".spec.overrides.capacity[]"]["properties"]["mode"]
    assert sorted(newer_parts(older, POLICY, document)) == [
        "spec.enforcement: 'Audit'",
        "spec.match.namespaces",
        "spec.overrides.capacity[0].mode",
        "spec.rollout",
    ]
    assert newer_parts(POLICY, older, document) == []
