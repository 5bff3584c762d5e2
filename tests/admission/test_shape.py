"""Which pods have one shape: those that no policy could tell apart."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.comparison.worlds import arrival, policies
from tests.policy_tests.writing import policy
from webhook import names
from webhook.admission.arrival import Arrival
from webhook.admission.engine import see
from webhook.admission.shape import Shape, Shapes

PLAIN = policy("pool", "defaults: {nodeSelector: {pool: a}}")
BY_LABEL = policy(
    "stage", "match: {podSelector: {matchLabels: {stage: prod}}}, defaults: {labels: {team: a}}"
)
BY_INDEX = policy("first", "match: {replicaIndexes: [0]}, defaults: {schedulerName: s}")
BY_RESOURCE = policy("gpu", "match: {resources: [gpu]}, defaults: {schedulerName: s}")
WORKER = {names.RUN: "a", names.ROLE: "worker", names.REPLICA_INDEX: "0"}


def shape_of(shapes: Shapes, pod: Arrival) -> Shape | None:
    """Of a pod of a run."""
    seen = see(pod)
    assert seen is not None
    return shapes.of(seen)


def alike(*texts: str, one: dict[str, str], other: dict[str, str]) -> bool:
    """Whether pods with these labels have one shape."""
    shapes = Shapes([policies(PLAIN), policies(*texts)])
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
    ("text", "other"),
    [
        (BY_LABEL, {**WORKER, "stage": "prod"}),
        (BY_LABEL, {**WORKER, "team": "b"}),
        (BY_INDEX, {**WORKER, names.REPLICA_INDEX: "1"}),
        (PLAIN, {**WORKER, names.ROLE: "master"}),
    ],
)
def test_what_one_of_the_sets_reads_or_writes_makes_a_shape(
    text: str, other: dict[str, str]
) -> None:
    """Role and kind always do."""
    assert not alike(text, one=WORKER, other=other)


def test_the_end_of_an_exception_makes_a_shape() -> None:
    """What is remembered of a pod before it is not what becomes of the next one after it."""
    exception = (
        "apiVersion: fairlead.dev/v1alpha1\nkind: PlacementException\nmetadata: {name: e}\n"
        'spec: {policies: ["*"], match: {roles: [worker]}, until: "2026-06-01T12:00:00Z", '
        "reason: x}\n"
    )
    shapes = Shapes([policies(PLAIN, exception)])
    end = datetime(2026, 6, 1, 12, tzinfo=UTC)
    seconds = (-2, -1, 0, 1)
    came = [replace(arrival(WORKER), now=end + timedelta(seconds=each)) for each in seconds]
    first, second, third, fourth = (shape_of(shapes, each) for each in came)
    assert first == second != third == fourth
    assert shape_of(shapes, arrival(WORKER)) not in (first, third)


def test_containers_count_as_far_as_they_are_asked_for() -> None:
    """Their resources, if any policy asks for resources."""
    with_gpu: dict[str, Any] = {
        "containers": [{"name": "m", "resources": {"limits": {"gpu": "1"}}}]
    }
    for text, same in ((PLAIN, True), (BY_RESOURCE, False)):
        shapes = Shapes([policies(text)])
        assert (shape_of(shapes, arrival()) == shape_of(shapes, arrival(**with_gpu))) is same


def test_namespaces_make_shapes() -> None:
    """Policies match by them."""
    shapes = Shapes([policies(PLAIN)])
    assert shape_of(shapes, arrival()) != shape_of(shapes, arrival(namespace="other"))
