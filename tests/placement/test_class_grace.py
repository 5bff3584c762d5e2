"""The longest grace period of pods that can run only on a class's nodes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import event, given, settings

from tests.examples import examples
from tests.laws import scheduler
from tests.laws.strategies import CLASSES, WORLD, document, pods, policy_lists
from tests.laws.world import decided, patched, policy_set
from tests.objects import required_affinity
from tests.wording import Wording
from webhook import names
from webhook.placement.pod import parse_pod

Json = dict[str, Any]
MOST = {"spot": 25, "on-demand": 20}


def limited_class(document: Json) -> Json:
    """The class with its longest grace period, if it has one here."""
    most = MOST.get(document["metadata"]["name"])
    more = {"maxTerminationGracePeriodSeconds": most} if most else {}
    return {**document, "spec": {**document["spec"], **more}}


LIMITED = [limited_class(each) for each in CLASSES]
# With each value of each label, and without it.
NODES: list[Json] = [
    {"metadata": {"name": "other", "labels": {k: v for k, v in pairs if v}}, "spec": {}}
    for pairs in itertools.product(*([(k, v) for v in (*WORLD[k], "")] for k in WORLD))
]


def seconds(pod: Json) -> int:
    return parse_pod(pod).termination_grace_period_seconds


def only_on(pod: Json, name: str) -> bool:
    """Whether some node admits the pod by its labels, and each such node is of the class."""
    spot = [
        node["metadata"]["labels"].get("spot") == "true"
        for node in NODES
        if scheduler.labels_admit(pod, node)
    ]
    return bool(spot) and all(is_spot == (name == "spot") for is_spot in spot)


@settings(max_examples=examples(60), deadline=None)
@given(pods(), policy_lists())
def test_a_class_lowers_the_grace_period_of_its_pods_alone(pod: Json, policies: list[Json]) -> None:
    """And changes nothing else; the second call changes nothing at all."""
    without = decided(pod, policy_set(policies))
    limited = policy_set(policies, LIMITED)
    found = decided(pod, limited)
    assert found.allowed == without.allowed
    if found.placement is None or without.placement is None or not found.allowed:
        return
    final, free = patched(pod, found), patched(pod, without)
    assert seconds(final) <= seconds(free)
    lowered = seconds(final) < seconds(free)
    event(f"lowered: {lowered}")
    if lowered:
        assert any(only_on(final, name) and seconds(final) == MOST[name] for name in MOST)
    stamped = final["metadata"]["annotations"].get(names.PLACEMENT)
    if stamped and not pod["spec"].get("nodeName") and "leftAlone" not in stamped:
        for name, most in MOST.items():
            assert not only_on(final, name) or seconds(final) <= most
    assert parse_pod(final)._replace(
        annotations={}, termination_grace_period_seconds=0
    ) == parse_pod(free)._replace(annotations={}, termination_grace_period_seconds=0)
    assert not decided(final, limited).patch


@pytest.mark.parametrize(
    ("spec", "policy", "left"),
    [
        ({"terminationGracePeriodSeconds": 60, "nodeSelector": {"spot": "true"}}, {}, 25),
        ({"nodeSelector": {"spot": "true"}}, {}, 25),
        ({"terminationGracePeriodSeconds": 10, "nodeSelector": {"spot": "true"}}, {}, 10),
        ({"terminationGracePeriodSeconds": 60}, {}, 60),
        ({"terminationGracePeriodSeconds": 60}, {"mode": "Constrain"}, 25),
        ({"terminationGracePeriodSeconds": 60}, {"mode": "Prefer"}, 60),
        ({"terminationGracePeriodSeconds": 60}, {"mode": "Prevent"}, 20),
    ],
)
def test_whoever_chooses_the_nodes_the_class_decides(
    spec: Json, policy: Json, left: int, wording: Wording
) -> None:
    """The author by a selector, or a policy by a mode."""
    capacity = [{"class": "spot", **policy}] if policy else []
    parts = {"overrides": {"labels": {"a": "b"}, "capacity": capacity}}
    wanted = policy_set([document("PlacementPolicy", "p", parts)], LIMITED)
    pod = {"metadata": {"labels": {names.RUN: "r"}}, "spec": {"containers": [], **spec}}
    found = decided(pod, wanted)
    assert seconds(patched(pod, found)) == left
    for text in found.warnings:
        wording(text)


def test_a_pod_that_says_its_node_by_affinity_is_lowered() -> None:
    """Each of its terms is of the class."""
    terms = [
        {"matchExpressions": [{"key": "spot", "operator": "In", "values": ["true"]}, each]}
        for each in (
            {"key": "pool", "operator": "Exists"},
            {"key": "zone", "operator": "In", "values": ["a"]},
        )
    ]
    wanted = policy_set(
        [document("PlacementPolicy", "p", {"overrides": {"labels": {"a": "b"}}})], LIMITED
    )
    pod = {
        "metadata": {"labels": {names.RUN: "r"}},
        "spec": {"containers": [], "affinity": required_affinity(*terms)},
    }
    assert seconds(patched(pod, decided(pod, wanted))) == 25
