"""What is created and deleted now, and in which order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from tests.run.runs import UID, a_run, containers, spec_of
from webhook.run.actions import (
    CreateKeys,
    CreatePod,
    CreateService,
    DeletePod,
    OpenService,
    Outcome,
    RestoreKeys,
)
from webhook.run.model import Run
from webhook.run.observed import Needs, Observed, OwnedPod, Refusal
from webhook.run.reconcile import reconcile
from webhook.run.steps import AT_ONCE, KEYS_PAUSE, LARGE

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


MPI = Needs(config_map=True, keys=True)


def mpi(*phases: str, **launcher: Any) -> Observed:
    """What is there of a run of a launcher and two workers that has begun: its workers' pods."""
    pods = [
        OwnedPod(f"many-worker-{at}", f"uid {at}", UID, "worker", at, 0, phase, node="n")  # type: ignore[arg-type]
        for at, phase in enumerate(phases)
    ]
    if launcher:
        pods.append(
            OwnedPod("many-launcher-0", "uid l", UID, "launcher", 0, 0, node="n", **launcher)
        )
    return Observed({pod.name: pod for pod in pods}, service=True, config_map=True)


@pytest.mark.parametrize(
    ("observed", "restored"),
    [
        (mpi(), True),
        (mpi("Running"), True),
        (mpi("Running", "Failed", phase="Running"), True),
        (mpi("Running", "Pending", phase="Running"), True),
        (mpi("Running", "Running", phase="Running"), False),
        (replace(mpi(), config_map=False), False),
    ],
    ids=["none", "one missing", "one failed", "one starts", "all run", "nothing made yet"],
)
def test_ssh_keys_are_restored_while_a_replica_does_not_run(
    observed: Observed, restored: bool
) -> None:
    """No watch tells that their Secret was deleted, and a pod without it never starts."""
    outcome = reconcile(gang(2, "mpi", "launcher"), MPI, observed, NOW)
    assert (RestoreKeys() in outcome.actions) == restored
    assert (CreateKeys() in outcome.actions) == (not observed.config_map)
    pods = [at for at, each in enumerate(outcome.actions) if isinstance(each, CreatePod)]
    if restored and pods:
        assert outcome.actions.index(RestoreKeys()) < pods[0]


def test_a_pod_that_does_not_start_has_its_keys_restored_again() -> None:
    """It may have been created just before they were deleted; nothing else makes for a look."""
    outcome = reconcile(gang(2, "mpi", "launcher"), MPI, mpi("Running", "Pending"), NOW)
    assert outcome.after is not None
    assert outcome.after <= KEYS_PAUSE


def test_a_run_without_ssh_keys_has_none_restored() -> None:
    """Only MPI has them."""
    outcome = reconcile(gang(2), Needs(), Observed(service=True), NOW)
    assert RestoreKeys() not in outcome.actions
