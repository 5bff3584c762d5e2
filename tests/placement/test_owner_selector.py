"""A label breaks the selector of a pod's owner exactly where Kubernetes' rules say so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import label_selectors
from tests.laws.strategies import KEYS, VALUES, Json, one, some
from tests.objects import an_object
from webhook.placement.owner_selector import OwnerSelector, selector_of, written_owner


@st.composite
def label_expressions(draw: st.DrawFn) -> Json:
    """One expression of a label selector."""
    key, operator = draw(one(*KEYS)), draw(one("In", "NotIn", "Exists", "DoesNotExist"))
    values = draw(st.lists(one(*VALUES[key]), min_size=1, max_size=2, unique=True))
    return {"key": key, "operator": operator, **({"values": values} if "In" in operator else {})}


def replica_set(expressions: list[Json]) -> Json:
    return an_object(
        "apps/v1", "ReplicaSet", "web-1", {"selector": {"matchExpressions": expressions}}
    )


@given(
    expressions=some(label_expressions()),
    own=st.fixed_dictionaries({}, optional={key: one(*VALUES[key]) for key in KEYS}),
    key=one(*KEYS),
    data=st.data(),
)
def test_a_label_breaks_a_selector_that_matched_and_no_longer_does(
    expressions: list[Json], own: dict[str, str], key: str, data: st.DataObject
) -> None:
    """Of a pod that its owner counts, and that lacks the label."""
    selector = {"matchExpressions": expressions}
    own.pop(key, None)
    if not label_selectors.holds(selector, own):
        return
    value = data.draw(one(*VALUES[key]))
    broken = selector_of(replica_set(expressions)).broken_by(key, value)
    assert bool(broken) == (not label_selectors.holds(selector, {**own, key: value}))
    assert not broken or broken.startswith(f"{key} ")


def test_what_is_no_selector_has_no_conditions() -> None:
    """Any user may write a pod's owner into a file."""
    specs: list[object] = [None, [], {"selector": "a=b"}, {"selector": {"matchExpressions": "x"}}]
    for spec in specs:
        found = selector_of({"kind": "Job", "metadata": {"name": "j"}, "spec": spec})
        assert found == OwnerSelector("Job j")
    odd: list[Json] = [
        {"key": 1, "operator": "NotIn"},
        {"key": "a", "operator": "NotIn", "values": 2},
    ]
    assert not selector_of(replica_set(odd)).broken_by("b", "2")


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "a", "operator": "notin", "values": ["x"]},
        {"key": "a", "operator": "NotIn", "values": []},
        {"key": "a", "operator": "NotIn", "values": 2},
        {"key": "a"},
    ],
)
def test_a_condition_that_is_not_valid_is_broken_by_each_label_of_its_key(expression: Json) -> None:
    """Whom it would select is unknown."""
    selector = selector_of(replica_set([expression]))
    assert selector.broken_by("a", "2")
    assert not selector.broken_by("b", "2")


def test_the_owner_is_the_object_that_an_author_writes() -> None:
    """A ReplicaSet of a Deployment has the hash of its template as the end of its name."""
    labels = {"pod-template-hash": "7d9f"}
    assert written_owner("ReplicaSet", "web-7d9f", labels) == ("Deployment", "web")
    assert written_owner("ReplicaSet", "web-7d9f", {}) == ("ReplicaSet", "web-7d9f")
    assert written_owner("StatefulSet", "web-7d9f", labels) == ("StatefulSet", "web-7d9f")
