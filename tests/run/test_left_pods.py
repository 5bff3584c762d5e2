"""Which pods of a run that has stopped are read live, and when."""

from __future__ import annotations

from typing import Any

import pytest

from tests.run.runs import UID, a_run, containers, spec_of
from webhook.run.left_pods import MAX_PODS_READ
from webhook.run.model import RoleStatus, Run, RunStatus
from webhook.run.observed import Needs, Observed, OwnedPod
from webhook.run.reconcile import reconcile
from webhook.times import parse_time

NOW = parse_time("2026-11-21T20:15:00Z")
THERE = OwnedPod("mnist-worker-99", "uid-99", UID, "worker", 99, 0, "Running")


def stopped(phase: str, left: int, **spec: Any) -> Run:
    """A run of a hundred replicas; of the first few the status does not know that they are gone."""
    role = RoleStatus(desired=100, attempt=1, creating_indexes=f"0-{left - 1}")
    run = a_run(
        "mnist",
        {
            "framework": "jax",
            "replicas": {"worker": {"count": 100}},
            "template": spec_of(containers("main")),
            "suspend": phase == "Suspended",
            **spec,
        },
    )
    status = RunStatus(phase=phase, replicas={"worker": role})
    return run.model_copy(update={"status": status})


@pytest.mark.parametrize("phase", ["Suspended", "Failed"])
@pytest.mark.parametrize(("left", "there"), [(MAX_PODS_READ, True), (MAX_PODS_READ + 1, False)])
def test_pods_that_left_the_watch_are_read_live(phase: str, left: int, there: bool) -> None:
    """A few at once, many when the others are gone."""
    observed = Observed(pods={THERE.name: THERE} if there else {})
    outcome = reconcile(stopped(phase, left), Needs(), observed, NOW)
    assert outcome.look_up == {f"mnist-worker-{index}" for index in range(left)}
    assert outcome.actions == ()


@pytest.mark.parametrize("phase", ["Suspended", "Failed"])
def test_many_pods_are_read_when_the_others_are_gone(phase: str) -> None:
    """With one list of the namespace; and the status keeps them until then."""
    run = stopped(phase, MAX_PODS_READ + 1)
    outcome = reconcile(run, Needs(), Observed(pods={THERE.name: THERE}), NOW)
    assert outcome.look_up == frozenset()
    assert outcome.status.replicas["worker"].creating_indexes == f"0-{MAX_PODS_READ},99"


def test_pods_that_stay_after_the_end_are_not_read() -> None:
    """Nobody deletes them."""
    outcome = reconcile(stopped("Failed", 3, cleanPodPolicy="None"), Needs(), Observed(), NOW)
    assert outcome.look_up == frozenset()
    assert outcome.status.replicas["worker"].creating_indexes == ""
