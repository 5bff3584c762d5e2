"""A pod's placement as rows that one can read."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.cli.run.placement_text import rows, toleration_text

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
    assert list(rows({"affinity": affinity})) == [
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
    assert list(rows(spec)) == [
        ["nodeSelector", "a=b, c=d"],
        ["tolerations", "a"],
        ["", "b"],
        ["topologySpreadConstraints", "{maxSkew: 1}"],
        ["", "{maxSkew: 2}"],
        ["nodeName", "n1"],
    ]
