"""Pods of StatefulSets in a split by count."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws.strategies import document
from tests.laws.world import CLUSTER, policy_set
from webhook import names
from webhook.decision.arrival import Arrival
from webhook.decision.engine import decide, receive_pod
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.replicas import evaluate_template
from webhook.evaluation.templates import templates_of
from webhook.evaluation.world import World
from webhook.placement.owner_selector import OwnerSelector
from webhook.workloads.object import Object

Json = dict[str, Any]
OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "w", "uid": "u"}
SPLIT: Json = {"split": [{"class": "spot", "count": 2}, {"class": "spot", "mode": "Prevent"}]}


def pod(ordinal: int, kind: str = "StatefulSet", **labels: str) -> Json:
    metadata = {
        "name": "p",
        "labels": {names.POD_INDEX: str(ordinal), **labels},
        "ownerReferences": [{**OWNER, "kind": kind, "controller": True}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}}


def position(arrived: Json, space: Json | None = None, first: int | None = None) -> int | None:
    """The position of the pod among its replicas; `first`: its StatefulSet begins there."""
    selector = None if first is None else OwnerSelector("StatefulSet w", first=first)
    received = receive_pod(Arrival(arrived, "ml", space or {}, "somebody", selector=selector))
    assert received is not None
    return received.replica.position


@given(st.integers(0, 9), st.integers(0, 9))
def test_the_position_is_the_ordinal_from_the_first_one(ordinal: int, first: int) -> None:
    """A pod below the first one is none of the replicas."""
    expected = ordinal - first if ordinal >= first else None
    assert position(pod(ordinal, **{names.RUN: "r"}), first=first) == expected


@pytest.mark.parametrize(
    ("arrived", "space", "expected"),
    [
        (pod(3, **{names.RUN: "r"}), {}, 3),
        (pod(3, **{names.RUN: "r", names.REPLICA_INDEX: "1"}), {}, 1),
        (pod(3, "ReplicaSet", **{names.RUN: "r"}), {}, None),
        (pod(3), {names.PLACE: names.PLACE_ALL}, None),
        (pod(3, **{names.RUN: "r", names.POD_INDEX: "x"}), {}, None),
    ],
)
def test_only_a_marked_pod_of_a_stateful_set_has_one(
    arrived: Json, space: Json, expected: int | None
) -> None:
    """A notebook in a namespace that is placed as a whole is no replica of a role."""
    assert position(arrived, space) == expected


def test_conditions_do_not_read_the_ordinal() -> None:
    """What matched before matches still: only shares count by it."""
    for match in ({"replicaIndexes": [0]}, {"coordinator": True}):
        wanted = policy_set(
            [document("PlacementPolicy", "p", {"match": match, "overrides": SPLIT})]
        )
        labels = {names.RUN: "r", names.FRAMEWORK: "jax", names.ROLE: "worker"}
        decision = decide(Arrival(pod(0, **labels), "ml", {}, "somebody"), wanted, CLUSTER)
        assert decision.policies == ()


def test_the_pods_of_a_file_are_counted_from_the_first_one() -> None:
    """As `explain` and `preview` show them."""
    workload = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "w", "namespace": "ml"},
        "spec": {
            "replicas": 4,
            "ordinals": {"start": 3},
            "selector": {"matchLabels": {names.RUN: "r"}},
            "template": {
                "metadata": {"labels": {names.RUN: "r"}},
                "spec": {"containers": [{"name": "m", "image": "x"}]},
            },
        },
    }
    world = World(
        policies=policy_set([document("PlacementPolicy", "p", {"overrides": SPLIT})]),
        cluster=CLUSTER,
        namespaces={},
        now=None,
        configuration=None,
        classes=None,
        plugins=UNREAD,
        nodes=None,
        server=None,
        history=None,
    )
    (template,) = templates_of(Object("w.yaml", workload))
    groups = evaluate_template(world, template, "ml")
    assert [[*group.indexes] for group in groups] == [[0, 1], [2, 3]]
