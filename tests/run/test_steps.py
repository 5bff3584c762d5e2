"""What is created and deleted now, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from tests.run.runs import UID, a_run, containers, spec_of
from webhook.run.actions import CreatePod, CreateService, DeletePod, OpenService, Outcome
from webhook.run.model import Run
from webhook.run.observed import Needs, Observed, OwnedPod, Refusal
from webhook.run.reconcile import reconcile
from webhook.run.steps import AT_ONCE, LARGE

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUOTA = (Refusal("many-worker-7", "QuotaExceeded", "exceeded quota"),)


def gang(workers: int, framework: str = "pytorch", first: str = "master", **spec: Any) -> Run:
    """A run of one replica of role `first`, and so many workers."""
    replicas = {first: {"count": 1}, "worker": {"count": workers}}
    template = spec_of(containers("main"))
    whole = {"framework": framework, "template": template, "replicas": replicas, **spec}
    return a_run("many", whole)


def looks(run: Run, observed: Observed) -> Iterator[tuple[Outcome, Observed]]:
    """One look after the other until nothing is left to do; what was there before each.

    Whatever is decided is done, and the status written; pods stay Pending.
    """
    for number in range(20):
        outcome = reconcile(run, Needs(), observed, NOW + timedelta(seconds=number))
        yield outcome, observed
        if not outcome.actions and outcome.status == run.status:
            return
        run = run.model_copy(update={"status": outcome.status})
        for action in outcome.actions:
            observed = done(run, observed, action)
    raise AssertionError("there is always more to do")


def done(run: Run, observed: Observed, action: object) -> Observed:
    """What is there once the action was carried out; a refusal lets no pod come."""
    match action:
        case CreateService(closed):
            return replace(observed, service=True, service_closed=closed)
        case OpenService():
            return replace(observed, service_closed=False)
        case CreatePod(role, index, attempt) if not observed.refusals:
            name = run.pod_name(role, index)
            pod = OwnedPod(name, f"uid of {name}", UID, role, index, attempt, "Pending")
            return replace(observed, pods={**observed.pods, name: pod})
        case DeletePod(name):
            left = {key: pod for key, pod in observed.pods.items() if key != name}
            return replace(observed, pods=left)
    return observed


def test_the_service_of_a_small_run_has_addresses_at_once() -> None:
    """Up to LARGE replicas cost the cluster's own controllers little."""
    outcome, _ = next(looks(gang(LARGE - 1), Observed()))
    assert outcome.actions[0] == CreateService()


def test_the_service_of_a_large_run_is_opened_when_all_pods_are_there() -> None:
    """Until then it is closed; then it is opened once, and stays so."""
    workers = AT_ONCE + LARGE
    opened = []
    for outcome, before in looks(gang(workers), Observed()):
        if OpenService() in outcome.actions:
            assert len(before.pods) == workers + 1
            opened.append(outcome)
        elif outcome.actions:
            assert any(isinstance(action, CreatePod) for action in outcome.actions)
    assert len(opened) == 1
    assert not before.service_closed


@pytest.mark.parametrize(
    ("run", "observed"),
    [
        (gang(LARGE, "mpi", "launcher"), Observed()),
        (gang(2 * AT_ONCE), Observed(service=True, service_closed=True, refusals=QUOTA)),
        (gang(LARGE, suspend=True), Observed(service=True, service_closed=True)),
    ],
    ids=["roles that wait for others", "refused", "suspended"],
)
def test_a_service_is_open_whenever_nothing_can_be_created(run: Run, observed: Observed) -> None:
    """What keeps pods from being created for long does not keep the others without addresses."""
    seen = [outcome.actions for outcome, _ in islice(looks(run, observed), 3)]
    assert any(OpenService() in actions for actions in seen)
