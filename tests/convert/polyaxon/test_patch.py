"""Polyaxon's four strategies do to a component what it says they do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from webhook.convert.polyaxon.components.compose import STRATEGIES, patched
from webhook.convert.polyaxon.item import Item, plain, to_item
from webhook.policy.yaml_text import trees

Json = dict[str, Any]
VALUES = st.sampled_from([1, "a", ["a"], ["b", "a"], {"x": 1}, {"x": 2, "y": {"z": 1}}])
CONTAINERS = st.dictionaries(st.sampled_from(["image", "args", "env"]), VALUES, max_size=3)
ENVIRONMENTS = st.dictionaries(st.sampled_from(["nodeSelector", "nodeName"]), VALUES, max_size=2)
RUNS = st.fixed_dictionaries({}, optional={"container": CONTAINERS, "environment": ENVIRONMENTS})


def item(value: Any) -> Item:
    """A value as if it stood in a file."""
    return to_item(next(iter(trees(json.dumps(value)))).root, "f.json")


def outcome(current: Json, patch: Json, strategy: str) -> Json:
    """What the patch makes of the object."""
    result: Json = plain(patched(item(current), item(patch), strategy))
    return result


@pytest.mark.parametrize(
    ("strategy", "out"),
    [
        ("post_merge", {"a": 2, "m": {"x": 2, "y": 1, "z": 2}, "l": [1, 2, 3], "n": 2}),
        ("pre_merge", {"a": 1, "m": {"x": 1, "y": 1, "z": 2}, "l": [2, 3, 1], "n": 2}),
        ("replace", {"a": 2, "m": {"x": 2, "z": 2}, "l": [2, 3], "n": 2}),
        ("isnull", {"a": 1, "m": {"x": 1, "y": 1}, "l": [1, 2], "n": 2}),
    ],
)
def test_a_strategy_decides_value_by_value(strategy: str, out: Json) -> None:
    """Scalars, maps, lists, and a field of which the component says nothing."""
    current = {"a": 1, "m": {"x": 1, "y": 1}, "l": [1, 2], "n": None}
    patch = {"a": 2, "m": {"x": 2, "z": 2}, "l": [2, 3], "n": 2}
    assert outcome(current, patch, strategy) == out


def test_an_object_is_patched_field_by_field_whatever_the_strategy() -> None:
    """An environment that replaces another keeps the fields that it does not name."""
    current = {"environment": {"nodeName": "n", "nodeSelector": {"a": "b"}}}
    patch = {"environment": {"nodeSelector": {"c": "d"}}}
    assert outcome(current, patch, "replace") == {
        "environment": {"nodeName": "n", "nodeSelector": {"c": "d"}}
    }


@pytest.mark.parametrize("strategy", ["replace", "post_merge"])
def test_null_clears_a_field(strategy: str) -> None:
    """Under the strategies in which the patch wins."""
    assert outcome({"a": 1}, {"a": None}, strategy) == {"a": None}


@pytest.mark.parametrize("strategy", ["isnull", "pre_merge"])
def test_null_leaves_a_field_alone_where_the_component_wins(strategy: str) -> None:
    """Under the other two."""
    assert outcome({"a": 1}, {"a": None}, strategy) == {"a": 1}


def test_groups_of_workers_are_changed_and_never_added() -> None:
    """Ray's, which have names of their own."""
    current = {"workers": {"g": {"replicas": 1}}}
    patch = {"workers": {"g": {"replicas": 2}, "h": {"replicas": 3}}}
    assert outcome(current, patch, "post_merge") == {"workers": {"g": {"replicas": 2}}}


@settings(max_examples=examples(100), deadline=None)
@given(RUNS, RUNS, st.sampled_from(STRATEGIES))
def test_a_patch_loses_no_field_and_patching_again_changes_nothing(
    current: Json, patch: Json, strategy: str
) -> None:
    """Nor does a patch invent one; and neither of the two is changed."""
    one, two = item(current), item(patch)
    once = patched(one, two, strategy)
    assert plain(patched(once, two, strategy)) == plain(once)
    assert (plain(one), plain(two)) == (current, patch)
    for name in {*current, *patch}:
        fields = {*current.get(name, {}), *patch.get(name, {})}
        assert set(plain(once)[name]) == fields


@settings(max_examples=examples(100), deadline=None)
@given(RUNS, RUNS)
def test_isnull_keeps_what_there_is_and_replace_takes_what_is_given(
    current: Json, patch: Json
) -> None:
    """Field by field of each object."""
    kept, taken = outcome(current, patch, "isnull"), outcome(current, patch, "replace")
    for name, fields in current.items():
        assert {key: kept[name][key] for key in fields} == fields
    for name, fields in patch.items():
        assert {key: taken[name][key] for key in fields} == fields
