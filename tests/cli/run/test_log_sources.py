"""Which logs there are, and which replicas have none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.run.scripted_cluster import pod_object, run_object
from tests.wording import Wording, mentions
from webhook.cli.run.log_sources import Wanted, check, sources, without_pods
from webhook.errors import FairleadError
from webhook.run.model import RunStatus

STATUS = RunStatus.model_validate(
    {"replicas": {"master": {"desired": 1}, "worker": {"desired": 12, "succeededIndexes": "0-3"}}}
)


def names(*pods: dict[str, Any], wanted: Wanted | None = None) -> list[str]:
    return [source.name for source in sources("mnist", pods, wanted or Wanted())]


def test_logs_come_by_role_and_index() -> None:
    """Not by the letters of their names."""
    pods = [pod_object(name) for name in ("worker-10", "worker-9", "master-0")]
    assert names(*pods) == ["master-0", "worker-9", "worker-10"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted("worker"), ["worker-0", "worker-1"]),
        (Wanted("worker", 1), ["worker-1"]),
        (Wanted(index=0), ["master-0", "worker-0"]),
    ],
)
def test_role_and_index_choose(wanted: Wanted, found: list[str]) -> None:
    """Either, or both."""
    pods = [pod_object(name) for name in ("master-0", "worker-0", "worker-1")]
    assert names(*pods, wanted=wanted) == found


def test_the_container_is_the_main_one_unless_another_is_asked_for() -> None:
    """As the pod's annotation says, else its first."""
    pod, plain = pod_object("worker-0"), pod_object("worker-1")
    del plain["metadata"]["annotations"]
    main, first = sources("mnist", [pod, plain], Wanted())
    assert (main.container, first.container) == ("main", "side")
    (asked,) = sources("mnist", [pod], Wanted(container="side"))
    assert asked.container == "side"


@pytest.mark.parametrize(
    ("state", "started"),
    [
        ({"running": {}}, True),
        ({"terminated": {"exitCode": 0}}, True),
        ({"waiting": {"reason": "ErrImagePull"}}, False),
        ({}, False),
    ],
)
def test_a_container_that_waits_has_no_log_yet(state: dict[str, Any], started: bool) -> None:
    """What it waits for is told."""
    pod = pod_object("worker-0", containerStatuses=[{"name": "main", "state": state}])
    (source,) = sources("mnist", [pod], Wanted())
    assert source.started == started
    assert source.why == ("ErrImagePull" if "waiting" in state else "")


def test_a_container_that_runs_anew_in_place_has_a_log() -> None:
    """While it waits for its next start, too."""
    status = {"name": "main", "restartCount": 1, "state": {"waiting": {"reason": "Crash"}}}
    (source,) = sources("mnist", [pod_object("worker-0", containerStatuses=[status])], Wanted())
    assert source.started


def test_of_a_pod_that_says_nothing_of_its_containers_the_phase_counts() -> None:
    """A pod that is pending has begun nothing."""
    running = pod_object("worker-0", containerStatuses=[])
    pending = pod_object("worker-1", phase="Pending", containerStatuses=[])
    assert [one.started for one in sources("mnist", [running, pending], Wanted())] == [True, False]


def test_replicas_without_pods_are_told_by_role(wording: Wording) -> None:
    """Those that have finished apart from those that should be there."""
    there = sources("mnist", [pod_object("worker-3"), pod_object("worker-5")], Wanted())
    (finished, why), (missing, why_missing) = without_pods(STATUS, there, Wanted("worker"))
    assert (finished, missing) == ("worker 0-2", "worker 4,6-11")
    mentions(why, "succeeded", "gone")
    mentions(why_missing, "no pod")
    assert "succeeded" not in why_missing
    wording(f"{why}\n{why_missing}")
    assert next(without_pods(STATUS, there, Wanted(index=0)))[0] == "master 0"


def test_the_pods_of_a_deployment_are_no_replicas_of_a_role() -> None:
    """They are there unless a role or an index is asked for."""
    pod = pod_object("abc")
    pod["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "r", "controller": True}
    ]
    assert names(pod) == ["abc"]
    assert names(pod, wanted=Wanted(index=0)) == []


@pytest.mark.parametrize(
    ("wanted", "facts"),
    [
        (Wanted("ps"), ["role ps", "master, worker"]),
        (Wanted("worker", 12), ["index 12", "worker", "11"]),
        (Wanted(index=12), ["index 12", "any role", "11"]),
    ],
    ids=["role", "index of a role", "index"],
)
def test_what_the_run_does_not_have_is_an_error(
    wanted: Wanted, facts: list[str], wording: Wording
) -> None:
    """With what it has."""
    with pytest.raises(FairleadError) as caught:
        check(run_object(), STATUS, wanted)
    mentions(str(caught.value), "run mnist has no ", *facts)
    wording(str(caught.value))


def test_before_there_is_a_status_the_spec_tells_the_roles() -> None:
    """A run without replicas is one master."""
    check(run_object(), RunStatus(), Wanted("worker", 1))
    with pytest.raises(FairleadError, match="the last one is 1"):
        check(run_object(), RunStatus(), Wanted("worker", 2))
    alone = run_object()
    del alone["spec"]["replicas"]
    check(alone, RunStatus(), Wanted("master", 0))
