"""What is created and deleted, and in which order; runs that are suspended or over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from tests.run.runs import UID, a_run, containers, spec_of
from tests.run.scene import Scene, led, workers
from tests.wording import mentions
from webhook import names
from webhook.run.actions import (
    CreateKeys,
    CreatePod,
    CreateService,
    DeletePod,
    DeleteRun,
    OpenService,
    Outcome,
    RestoreKeys,
)
from webhook.run.model import Run
from webhook.run.observed import Needs, Observed, OwnedPod, Refusal
from webhook.run.reconcile import clean_pods, reconcile
from webhook.run.restarts import STABLE
from webhook.run.steps import KEYS_PAUSE, LARGE, PODS_PER_RECONCILE

NOW = datetime(2026, 1, 1, tzinfo=UTC)
QUOTA = (Refusal("many-worker-7", "QuotaExceeded", "exceeded quota"),)


def over(policy: str) -> Scene:
    """A run whose master finished; one worker had finished, one failed, one still runs."""
    scene = Scene(**led("pytorch", 3), cleanPodPolicy=policy).runs()
    return scene.exits("worker-0", 0).exits("worker-1", 1).exits("master-0", 0)


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        ("Running", ["master-0", "worker-0", "worker-1"]),
        ("All", []),
        ("None", ["master-0", "worker-0", "worker-1", "worker-2"]),
    ],
)
def test_clean_pod_policy_says_which_pods_are_deleted_at_the_end(
    policy: str, left: list[str]
) -> None:
    """Those that still run, all, or none."""
    assert over(policy).pods == left


def test_what_is_deleted_at_the_end_is_not_counted() -> None:
    """Nor made again."""
    scene = over("All").later(1000)
    assert (scene.role("worker").failed, scene.role("worker").disruptions) == (1, 0)
    assert scene.pods == []


def test_ttl_deletes_the_run_so_many_seconds_after_its_end() -> None:
    """And the controller asks to be woken for it."""
    scene = Scene(ttlSecondsAfterFinished=30).runs().exits("master-0", 0)
    assert scene.after == 30
    scene.later(29)
    assert not scene.gone
    scene.later(1)
    assert scene.did[-1] == DeleteRun()


def test_ttl_may_be_set_after_the_end() -> None:
    """As suspend it is one of the fields that may change."""
    scene = Scene().runs().exits("master-0", 0).later(1000)
    assert not scene.gone
    assert scene.spec(ttl_seconds_after_finished=10).gone


def test_a_run_that_is_over_stays_over() -> None:
    """Whatever becomes of its pods."""
    scene = over("None")
    before = scene.status.completion_time
    scene.exits("worker-2", 1).vanishes("master-0").later(1000)
    assert scene.status.phase == "Succeeded"
    assert scene.status.completion_time == before


def test_a_suspended_run_has_no_pods_and_keeps_its_roles() -> None:
    """Created so, it never had any."""
    scene = Scene(**led("pytorch"), suspend=True).later(1000)
    assert (scene.status.phase, scene.pods, scene.after) == ("Suspended", [], None)
    assert not any(isinstance(action, CreatePod) for action in scene.did)
    condition = scene.condition("Suspended")
    assert condition is not None
    assert condition.status == "True"
    assert scene.spec(suspend=False).pods == ["master-0", "worker-0"]
    condition = scene.condition("Suspended")
    assert condition is not None
    assert (condition.status, condition.observed_generation) == ("False", 2)


def test_a_suspension_is_written_before_its_pods_are_deleted() -> None:
    """So that nobody takes their end for a disruption; and they are told as it is."""
    scene = Scene(**workers(2)).runs().spec(suspend=True)
    assert scene.pods == []
    assert scene.role("worker").attempt == 1
    assert (scene.role("worker").disruptions, scene.role("worker").active) == (0, 0)
    assert scene.status.start_time is None
    assert [each.reason for each in scene.told][-1] == "Suspended"


def test_a_suspension_in_the_backoff_ends_it() -> None:
    """A run that goes on begins at once."""
    scene = Scene(**workers(1)).runs().exits("worker-0", 1).spec(suspend=True)
    assert scene.spec(suspend=False).pods == ["worker-0"]


def test_a_notebooks_deployment_is_scaled_down_while_it_rests() -> None:
    """And up again."""
    scene = Scene(Needs(address="http://mnist"), kind="notebook")
    deployment = scene.observed.deployment
    assert deployment is not None
    assert deployment.replicas == 1
    scene.spec(suspend=True)
    assert scene.observed.deployment is not None
    assert scene.observed.deployment.replicas == 0
    assert scene.status.phase == "Suspended"
    scene.spec(suspend=False)
    assert scene.observed.deployment is not None
    assert scene.observed.deployment.replicas == 1


def test_a_notebook_that_is_not_ready_says_so() -> None:
    """Whatever the reason is."""
    scene = Scene(Needs(address="http://mnist"), kind="notebook")
    assert (scene.status.phase, scene.status.message) == ("Starting", "the pod is not ready yet")


def test_a_notebook_with_the_label_of_a_queue_says_that_it_runs_without_quota() -> None:
    """One Event, and a condition; its Deployment does not wait."""
    scene = Scene(Needs(address="http://mnist"), kind="notebook")
    assert scene.condition("Admitted") is None
    metadata = scene.run.metadata.model_copy(update={"labels": {names.KUEUE_QUEUE: "ml"}})
    scene.run = scene.run.model_copy(update={"metadata": metadata})
    scene.look().later(60).later(60)
    condition = scene.condition("Admitted")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "NotQueued")
    mentions(condition.message, "notebook runs without the quota of queue ml", names.KUEUE_QUEUE)
    mentions(scene.status.message, "not ready yet", condition.message)
    assert [each.reason for each in scene.told].count("NotQueued") == 1
    assert scene.observed.deployment is not None


def test_a_notebook_is_over_at_its_maximum_age() -> None:
    """Its Deployment goes; idle time is not ours to know."""
    scene = Scene(Needs(address="http://mnist"), kind="notebook", maxAgeSeconds=60)
    assert scene.after == 60
    assert scene.status.address == "http://mnist"
    scene.later(60)
    assert scene.status.phase == "Succeeded"
    assert scene.observed.deployment is None


def test_the_pods_of_a_deployment_are_left_to_it() -> None:
    """Deleted before it they would be made again; and a pod that only says so is not the run's."""
    ours = OwnedPod("mnist-master-0", "a", UID, "master", 0, 0, "Running")
    other = OwnedPod("other-7c9d-x", "b", UID, "", 0, 0, "Running")
    spec = a_run("mnist", {"template": spec_of(containers("main"))}).spec
    deleted = list(clean_pods(spec, {each.name: each for each in (ours, other)}))
    assert deleted == [DeletePod("mnist-master-0", "a")]


def test_a_failure_to_be_forgiven_wakes_the_controller() -> None:
    """Nothing else may happen until then: the replica runs, and no deadline is set."""
    scene = Scene(**led("pytorch", 2)).runs().exits("worker-0", 1)
    scene.later(60).runs()
    assert scene.role("worker").recovering
    assert scene.after == STABLE / 4


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
        observed = replace(observed, uncreated=observed.uncreated | outcome.planned)
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
    workers = PODS_PER_RECONCILE + LARGE
    opened = []
    for outcome, before in looks(gang(workers), Observed()):
        if OpenService() in outcome.actions:
            assert len(before.pods) == workers + 1
            opened.append(outcome)
        elif outcome.actions:
            assert isinstance(outcome.actions[0], CreateService | CreatePod)
    assert len(opened) == 1
    assert not before.service_closed


@pytest.mark.parametrize(
    ("run", "observed"),
    [
        (gang(LARGE, "mpi", "launcher"), Observed()),
        (gang(2 * PODS_PER_RECONCILE), Observed(service=True, service_closed=True, refusals=QUOTA)),
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
    ids=["none", "one missing", "one failed", "one starts", "all run", "no ConfigMap yet"],
)
def test_ssh_keys_are_restored_while_a_replica_does_not_run(
    observed: Observed, restored: bool
) -> None:
    """No watch tells that their Secret was deleted, and a pod without it never starts."""
    run = gang(2, "mpi", "launcher")
    status = run.status.model_copy(update={"ssh_secret": "many-ssh-0a1b2c3d"})
    outcome = reconcile(run.model_copy(update={"status": status}), MPI, observed, NOW)
    assert (RestoreKeys() in outcome.actions) == restored
    assert CreateKeys() not in outcome.actions
    pods = [at for at, each in enumerate(outcome.actions) if isinstance(each, CreatePod)]
    if restored and pods:
        assert outcome.actions.index(RestoreKeys()) < pods[0]


@pytest.mark.parametrize("config_map", [False, True], ids=["new", "with a ConfigMap"])
def test_nothing_is_created_before_the_status_names_the_keys(config_map: bool) -> None:
    """Pods mount that Secret, whoever else has made what looks like the run's objects."""
    observed = replace(mpi(), config_map=config_map)
    outcome = reconcile(gang(2, "mpi", "launcher"), MPI, observed, NOW)
    assert outcome.actions == (CreateKeys(),)
    assert outcome.status.ssh_secret is None


def test_pods_that_an_earlier_version_made_keep_their_keys() -> None:
    """The name was not in the status; the next pods have to enter those that live."""
    run = gang(2, "mpi", "launcher")
    outcome = reconcile(run, MPI, mpi("Running", "Running"), NOW)
    assert outcome.status.ssh_secret == f"many-ssh-{UID[:8]}"
    assert CreateKeys() not in outcome.actions
    assert RestoreKeys() in outcome.actions


def test_a_pod_that_does_not_start_has_its_keys_restored_again() -> None:
    """It may have been created just before they were deleted; nothing else makes for a look."""
    outcome = reconcile(gang(2, "mpi", "launcher"), MPI, mpi("Running", "Pending"), NOW)
    assert outcome.after is not None
    assert outcome.after <= KEYS_PAUSE


def test_a_run_without_ssh_keys_has_none_restored() -> None:
    """Only MPI has them."""
    outcome = reconcile(gang(2), Needs(), Observed(service=True), NOW)
    assert RestoreKeys() not in outcome.actions
