"""JSON Patch operations: what is added, in which order, and nothing where nothing changes."""

from __future__ import annotations

from typing import Any

import jsonpatch
import pytest

from webhook.placement import patch, pod
from webhook.placement.fields import SCALARS, Field
from webhook.placement.shapes import Term

Json = dict[str, Any]
SPOT: list[Term] = [{"matchExpressions": [{"key": "spot", "operator": "Exists"}]}]


def raw(metadata: Json | None = None, **spec: Any) -> Json:
    return {"metadata": metadata or {}, "spec": {"containers": [], **spec}}


def operations(what: Json, **changes: Any) -> list[patch.Operation]:
    """The patch that makes the changes to the pod's placement, checked to apply."""
    old = pod.parse_pod(what)
    new = old._replace(**changes)
    made = patch.operations(what, old, new)
    after = jsonpatch.apply_patch(what, list(made))
    assert pod.parse_pod(after) == new
    return made


def test_nothing_changes_gives_no_operation() -> None:
    """Equal values are no change, whoever made them."""
    what = raw({"labels": {"a": "b"}}, nodeSelector={"x": "y"}, tolerations=[{"key": "t"}])
    assert operations(what, labels={"a": "b"}, tolerations=[{"key": "t"}]) == []


def test_a_missing_parent_is_added_whole() -> None:
    """In one operation, also where the pod says null."""
    expected = [{"op": "add", "path": "/spec/nodeSelector", "value": {"a": "b"}}]
    assert operations(raw(), node_selector={"a": "b"}) == expected
    assert operations(raw(nodeSelector=None), node_selector={"a": "b"}) == expected


def test_members_are_added_one_by_one_where_the_parent_is_there() -> None:
    """And what goes is removed."""
    what = raw(nodeSelector={"old": "1", "kept": "2"})
    assert operations(what, node_selector={"kept": "2", "new": "3"}) == [
        {"op": "add", "path": "/spec/nodeSelector/new", "value": "3"},
        {"op": "remove", "path": "/spec/nodeSelector/old"},
    ]


def test_keys_are_escaped() -> None:
    """By RFC 6901: ~ before /."""
    what = raw({"annotations": {"x": "y"}})
    (made,) = operations(what, annotations={"x": "y", "a/b~c": "d"})
    assert made["path"] == "/metadata/annotations/a~1b~0c"


def test_a_list_that_grows_at_its_end_is_appended_to() -> None:
    """Any other change sets it whole."""
    what = raw(tolerations=[{"key": "a"}])
    (made,) = operations(what, tolerations=[{"key": "a"}, {"key": "b"}])
    assert made == {"op": "add", "path": "/spec/tolerations/-", "value": {"key": "b"}}
    (made,) = operations(what, tolerations=[{"key": "b"}, {"key": "a"}])
    assert made["path"] == "/spec/tolerations"
    (made,) = operations(what, tolerations=[])
    assert made == {"op": "remove", "path": "/spec/tolerations"}


def test_affinity_is_changed_at_its_deepest_part() -> None:
    """What the pod says beside it stays, fields that are not known included."""
    own = {"podAffinity": {"x": 1}, "nodeAffinity": {"unknown": True, pod.PREFERRED: []}}
    (made,) = operations(raw(affinity=own), required=SPOT)
    assert made == {
        "op": "add",
        "path": f"/spec/affinity/nodeAffinity/{pod.REQUIRED}",
        "value": {"nodeSelectorTerms": SPOT},
    }


@pytest.mark.parametrize("field", SCALARS.values(), ids=lambda field: field.name)
def test_another_value_clears_what_a_plugin_derived_from_the_old(field: Field) -> None:
    """Only where it is there: removing what is not there would not apply."""
    value = type(field.unset)(7)
    added = {"op": "add", "path": field.path, "value": value}
    for spec in ({}, {field.name: type(field.unset)(8)}):
        assert operations(raw(None, **spec), **{field.attribute: value}) == [added]
    made = operations(raw(None, **dict.fromkeys(field.derived, 0)), **{field.attribute: value})
    assert list(made) == [
        added,
        *({"op": "remove", "path": f"/spec/{name}"} for name in field.derived),
    ]
