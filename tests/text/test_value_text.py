"""Two values that differ are never shown as the same text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.placement.pod import REQUIRED_NODES
from webhook.placement.trace import quoted_both
from webhook.shortening import apart
from webhook.text.value_text import (
    both_fields,
    both_texts,
    field_text,
    placement_rows,
    toleration_text,
)

LONG = "x" * 300


@pytest.mark.parametrize(
    ("field", "has", "would"),
    [
        ("annotations[a]", f"{LONG}a", f"{LONG}b"),
        ("annotations[a]", LONG, f"{LONG}b"),
        ("annotations[a]", None, "nothing"),
        ("affinity.podAffinity.required", [{"topologyKey": LONG, "a": 1}], [{"topologyKey": LONG}]),
        ("tolerations[a]", [{"key": "a"}, {"key": "a"}], [{"key": "a", "operator": "Equal"}]),
        ("tolerations[a]", [{"key": "a", "operator": "Equal"}], [{"key": "a"}]),
        (REQUIRED_NODES, [{"matchFields": []}], []),
        (REQUIRED_NODES, [{"matchExpressions": [{"key": "a"}]}], [{"matchFields": [{"key": "a"}]}]),
    ],
)
def test_values_that_differ_only_far_on_are_cut_where_they_differ(
    field: str, has: Any, would: Any
) -> None:
    """Also where people leave out what makes the difference."""
    one, other = both_texts(field, has, would)
    assert one != other
    assert max(len(one), len(other)) <= 202
    assert len(set(both_fields(field, has, would))) == 2


def test_what_only_one_list_has_comes_first() -> None:
    """Two long lists differ in one entry, at their end."""
    entries = [{"key": f"k{number}"} for number in range(50)]
    has, would = both_texts("affinity.podAffinity.required", entries, [*entries, {"key": "new"}])
    assert "new" in would[:20]
    assert "new" not in has


def test_one_value_is_cut_at_its_end() -> None:
    """A toleration tells its key itself."""
    assert field_text("annotations[a]", LONG) == f"annotations[a]: '{'x' * 199}…"
    assert field_text("tolerations[a]", [{"key": "a"}]) == "tolerations: a"
    assert field_text("tolerations[a]", None) == "tolerations[a]: nothing"


@given(st.text("ab", max_size=20), st.text("ab", max_size=20), st.integers(4, 12))
def test_texts_are_cut_apart_wherever_they_differ(one: str, other: str, most: int) -> None:
    """And are never longer than asked, with a mark on either side."""
    texts = apart(one, other, most)
    assert (texts[0] == texts[1]) is (one == other)
    assert all(len(text) <= most + 2 for text in texts)


def test_a_message_quotes_two_long_values_apart() -> None:
    """An annotation's value may be as long as its author likes."""
    assert quoted_both("a", "b") == ("'a'", "'b'")
    wanted, said = quoted_both(f"{LONG}a", f"{LONG}b")
    assert wanted != said
    assert max(len(wanted), len(said)) <= 82


IN = {"key": "pool", "operator": "In", "values": ["a", "b"]}
GT = {"key": "gen", "operator": "Gt", "values": ["5"]}
NODE = {"key": "metadata.name", "operator": "In", "values": ["n1"]}


@pytest.mark.parametrize(
    ("toleration", "text"),
    [
        ({"key": "spot", "value": "true", "effect": "NoSchedule"}, "spot=true:NoSchedule"),
        ({"key": "spot", "operator": "Equal", "effect": "NoSchedule"}, "spot:NoSchedule"),
        ({"key": "gpu", "operator": "Exists"}, "gpu op=Exists"),
        (
            {"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
            "gone:NoExecute op=Exists for 30s",
        ),
        ({"operator": "Exists"}, "every taint"),
        ({"operator": "Exists", "effect": "NoExecute"}, "every taint:NoExecute"),
        ({"key": "gen", "operator": "Gt", "value": "5"}, '{key: gen, operator: Gt, value: "5"}'),
        ({"key": "gen", "novel": 1}, "{key: gen, novel: 1}"),
    ],
)
def test_tolerations_are_written_as_kubectl_does(toleration: dict[str, Any], text: str) -> None:
    """What is not known is written out whole."""
    assert toleration_text(toleration) == text


def test_terms_are_read_as_and_and_or() -> None:
    """Terms are alternatives, and what is in one of them must hold together."""
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [IN, GT]},
                    {"matchFields": [NODE]},
                    {},
                ]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 7, "preference": {"matchExpressions": [GT]}}
            ],
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]
        },
        "novelAffinity": 1,
    }
    assert list(placement_rows({"affinity": affinity})) == [
        ["required nodes", "pool In [a, b] and gen Gt 5"],
        ["or", "field metadata.name In [n1]"],
        ["or", "no node"],
        ["preferred nodes", "gen Gt 5 (weight 7)"],
        ["podAntiAffinity.required", "{topologyKey: zone}"],
        ["novelAffinity", "1"],
    ]


def test_other_fields_are_written_in_one_line() -> None:
    """Each item of a list in its own."""
    spec = {
        "nodeName": "n1",
        "nodeSelector": {"a": "b", "c": "d"},
        "topologySpreadConstraints": [{"maxSkew": 1}, {"maxSkew": 2}],
        "tolerations": [{"key": "a"}, {"key": "b"}],
        "containers": [],
    }
    assert list(placement_rows(spec)) == [
        ["nodeSelector", "a=b, c=d"],
        ["tolerations", "a"],
        ["", "b"],
        ["topologySpreadConstraints", "{maxSkew: 1}"],
        ["", "{maxSkew: 2}"],
        ["nodeName", "n1"],
    ]
