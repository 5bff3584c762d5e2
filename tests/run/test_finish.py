"""Runs that rest or are over."""

from __future__ import annotations

import pytest

from tests.run.runs import UID, a_run, containers, spec_of
from tests.run.scene import Scene, led, workers
from webhook.run import backoff
from webhook.run.actions import CreatePod, DeletePod, DeleteRun
from webhook.run.observed import Needs, OwnedPod
from webhook.run.steps import cleaned


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
    """Nor made anew."""
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


def test_a_notebook_is_over_at_its_maximum_age() -> None:
    """Its Deployment goes; idle time is not ours to know."""
    scene = Scene(Needs(address="http://mnist"), kind="notebook", maxAgeSeconds=60)
    assert scene.after == 60
    assert scene.status.address == "http://mnist"
    scene.later(60)
    assert scene.status.phase == "Succeeded"
    assert scene.observed.deployment is None


def test_the_pods_of_a_deployment_are_left_to_it() -> None:
    """Deleted before it they would be made anew; and a pod that only says so is not the run's."""
    ours = OwnedPod("mnist-master-0", "a", UID, "master", 0, 0, "Running")
    other = OwnedPod("other-7c9d-x", "b", UID, "", 0, 0, "Running")
    spec = a_run("mnist", {"template": spec_of(containers("main"))}).spec
    deleted = list(cleaned(spec, {each.name: each for each in (ours, other)}))
    assert deleted == [DeletePod("mnist-master-0", "a")]


def test_a_failure_to_be_forgiven_wakes_the_controller() -> None:
    """Nothing else may happen until then: the replica runs, and no deadline is set."""
    scene = Scene(**led("pytorch", 2)).runs().exits("worker-0", 1)
    scene.later(60).runs()
    assert scene.role("worker").recovering
    assert scene.after == backoff.STABLE / 4
