"""Which pods have one shape: those that no policy could tell apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.comparison.worlds import arrival, policies
from tests.laws.strategies import document
from tests.laws.world import CLUSTER, policy_set
from tests.policy_tests.writing import policy
from webhook import names
from webhook.decision.arrival import Arrival
from webhook.decision.engine import decide_received, receive_pod
from webhook.decision.shape import Shapes

PLAIN = policy("pool", "defaults: {nodeSelector: {pool: a}}")
BY_LABEL = policy(
    "stage", "match: {podSelector: {matchLabels: {stage: prod}}}, defaults: {labels: {team: a}}"
)
BY_STAGES = policy(
    "stages",
    "match: {podSelector: {matchExpressions: [{key: stage, operator: NotIn, values: [prod]}, "
    "{key: team, operator: Exists}]}}, defaults: {labels: {cost: a}}",
)
BY_INDEX = policy("first", "match: {replicaIndexes: [0]}, defaults: {schedulerName: s}")
BY_RESOURCE = policy("gpu", "match: {resources: [gpu]}, defaults: {schedulerName: s}")
WORKER = {names.RUN: "a", names.ROLE: "worker", names.REPLICA_INDEX: "0"}


def shape_of(shapes: Shapes, pod: Arrival) -> bytes | None:
    seen = receive_pod(pod)
    assert seen is not None
    return shapes.shape_of(seen)


def alike(*texts: str, one: dict[str, str], other: dict[str, str]) -> bool:
    shapes = Shapes(policies(*dict.fromkeys((PLAIN, *texts))))
    return shape_of(shapes, arrival(one)) == shape_of(shapes, arrival(other))


@pytest.mark.parametrize(
    "other",
    [
        {**WORKER, names.RUN: "b"},
        {**WORKER, names.REPLICA_INDEX: "1"},
        {**WORKER, "controller-uid": "0df2"},
        {**WORKER, "stage": "prod"},
    ],
)
def test_what_no_policy_reads_makes_no_shape(other: dict[str, str]) -> None:
    """The run's name, the index, and labels that nobody asks for."""
    assert alike(one=WORKER, other=other)


@pytest.mark.parametrize(
    ("text", "one", "other"),
    [
        (BY_LABEL, {"stage": "dev"}, {"stage": "test"}),
        (BY_LABEL, {"stage": "dev"}, {}),
        (BY_STAGES, {"stage": "dev", "team": "b"}, {"team": "c"}),
        (BY_INDEX, {names.REPLICA_INDEX: "1"}, {names.REPLICA_INDEX: "2"}),
    ],
)
def test_unused_values_do_not_change_the_shape(
    text: str, one: dict[str, str], other: dict[str, str]
) -> None:
    """To every condition they are one like the other, and to some like none at all."""
    assert alike(text, one={**WORKER, **one}, other={**WORKER, **other})


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (BY_LABEL, {**WORKER, "stage": "prod"}),
        (BY_STAGES, {**WORKER, "stage": "prod"}),
        (BY_STAGES, {**WORKER, "team": "b"}),
        (BY_STAGES, {**WORKER, "cost": "b"}),
        (BY_LABEL, {**WORKER, "team": "b"}),
        (BY_INDEX, {**WORKER, names.REPLICA_INDEX: "1"}),
        (PLAIN, {**WORKER, names.ROLE: "master"}),
    ],
)
def test_what_the_set_reads_or_writes_makes_a_shape(text: str, other: dict[str, str]) -> None:
    assert not alike(text, one=WORKER, other=other)


def test_the_end_of_an_exception_makes_a_shape() -> None:
    """What is remembered of a pod before it is not what becomes of the next one after it."""
    exception = (
        "apiVersion: fairlead.dev/v1alpha1\nkind: PlacementException\nmetadata: {name: e}\n"
        'spec: {policies: ["*"], match: {roles: [worker]}, until: "2026-06-01T12:00:00Z", '
        "reason: x}\n"
    )
    shapes = Shapes(policies(PLAIN, exception))
    end = datetime(2026, 6, 1, 12, tzinfo=UTC)
    seconds = (-2, -1, 0, 1)
    came = [arrival(WORKER)._replace(now=end + timedelta(seconds=each)) for each in seconds]
    first, second, third, fourth = (shape_of(shapes, each) for each in came)
    assert first == second != third == fourth
    assert shape_of(shapes, arrival(WORKER)) not in (first, third)


def test_containers_count_as_far_as_they_are_asked_for() -> None:
    with_gpu: dict[str, Any] = {
        "containers": [{"name": "m", "resources": {"limits": {"gpu": "1"}}}]
    }
    for text, same in ((PLAIN, True), (BY_RESOURCE, False)):
        shapes = Shapes(policies(text))
        assert (shape_of(shapes, arrival()) == shape_of(shapes, arrival(**with_gpu))) is same


def test_service_accounts_count_where_they_are_asked_for() -> None:
    """A pod without one is like one that names the default account."""
    asking = policy("account", "match: {serviceAccounts: [trainer]}, defaults: {schedulerName: s}")
    for text, same in ((PLAIN, True), (asking, False)):
        shapes = Shapes(policies(text))
        unset = shape_of(shapes, arrival())
        assert (shape_of(shapes, arrival(serviceAccountName="trainer")) == unset) is same
        assert shape_of(shapes, arrival(serviceAccountName="default")) == unset


def test_namespaces_make_shapes() -> None:
    """Policies match by them."""
    shapes = Shapes(policies(PLAIN))
    assert shape_of(shapes, arrival()) != shape_of(shapes, arrival(namespace="other"))


# Policies name the first two values of each label, and pods have all of them, or none.
KEYS = ("stage", "team", "cost")
NAMED = ("a", "b")
VALUES = (*NAMED, "c", "d")
expressions = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, "values": values},
    st.sampled_from(KEYS),
    st.sampled_from(["In", "NotIn"]),
    st.lists(st.sampled_from(NAMED), min_size=1, max_size=2, unique=True),
) | st.builds(
    lambda key, operator: {"key": key, "operator": operator},
    st.sampled_from(KEYS),
    st.sampled_from(["Exists", "DoesNotExist"]),
)
selecting = st.fixed_dictionaries(
    {},
    optional={
        "podSelector": st.fixed_dictionaries(
            {},
            optional={
                "matchLabels": st.dictionaries(st.sampled_from(KEYS), st.sampled_from(NAMED)),
                "matchExpressions": st.lists(expressions, max_size=2),
            },
        ),
        "replicaIndexes": st.sampled_from([[0], [1, 2]]),
    },
)
# What is written depends on what stands there already, whoever names it.
placement_settings = st.sampled_from(
    [
        {"defaults": {"labels": {"team": "a"}}},
        {"overrides": {"labels": {"cost": "z"}}},
        {"requirements": {"labels": {"stage": "a"}}},
        {"overrides": {"nodeSelector": {"pool": "a"}}},
        {"requirements": {"nodeSelector": {"pool": "b"}}},
    ]
)
policy_specs = st.builds(
    lambda match, exclude, wanted: {"match": match, "exclude": exclude, **wanted},
    selecting,
    st.lists(
        st.builds(lambda each: {"podSelector": {"matchExpressions": [each]}}, expressions),
        max_size=1,
    ),
    placement_settings,
)
pod_labels = st.dictionaries(
    st.sampled_from((*KEYS, "nobodys")), st.sampled_from(VALUES), max_size=3
)
pod_metadata = st.builds(
    lambda labels, index: labels | ({} if index is None else {names.REPLICA_INDEX: str(index)}),
    pod_labels,
    st.sampled_from([None, 0, 1, 2, 3, 4]),
)


@settings(deadline=None)
@given(
    st.lists(policy_specs, min_size=1, max_size=4),
    st.booleans(),
    st.lists(pod_metadata, min_size=6, max_size=16),
)
def test_pods_of_one_shape_have_one_fate(
    specs: list[dict[str, Any]], excepting: bool, labels: list[dict[str, str]]
) -> None:
    """Whatever labels tell them apart: who takes part, what is said, and all that is written."""
    documents = [document("PlacementPolicy", f"p{at}", spec) for at, spec in enumerate(specs)]
    if excepting:
        match = {"podSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}}
        spec = {"policies": ["p0"], "match": match, "until": "2027-01-01T00:00:00Z", "reason": "x"}
        documents.append(document("PlacementException", "e", spec))
    made = policy_set(documents)
    shapes = Shapes(made)
    fates: dict[object, object] = {}
    for each in labels:
        came = arrival({names.RUN: "r", **each})._replace(now=datetime(2026, 6, 1, tzinfo=UTC))
        seen = receive_pod(came)
        assert seen is not None
        shape = shapes.shape_of(seen)
        assert shape is not None
        decision = decide_received(seen, made, CLUSTER)
        fate = (
            decision.result,
            decision.reason,
            decision.warnings,
            decision.policies,
            decision.patch,
            decision.trace,
            decision.set_aside,
        )
        assert fates.setdefault(shape, fate) == fate
