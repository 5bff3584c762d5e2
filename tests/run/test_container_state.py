"""What a pod's containers say of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.run.raw_pods import raw_pod, running, terminated, waiting
from webhook import names
from webhook.run import observation
from webhook.run.container_state import LONGEST_MESSAGE
from webhook.run.observed import Exit


def exit_of(
    *containers: dict[str, Any],
    init: tuple[dict[str, Any], ...] = (),
    phase: str = "Failed",
    **changes: Any,
) -> Exit | None:
    status = {"phase": phase, "containerStatuses": containers, "initContainerStatuses": init}
    found = observation.pod(raw_pod(status=status, **changes))
    assert found is not None
    return found.exit


def test_the_main_containers_failure_is_the_pods() -> None:
    """Whatever else failed, and earlier."""
    found = exit_of(
        terminated("main", 1, message="no such file"), terminated("proxy", 143, finishedAt="")
    )
    assert found == Exit(
        container="main",
        code=1,
        reason="Error",
        message="no such file",
        finished_at="2026-11-20T10:07:00Z",
    )


def test_where_the_main_container_did_well_the_first_failure_is_the_pods() -> None:
    """In the order of the spec, not of the status, which the kubelet sorts by name."""
    found = exit_of(
        terminated("alpha", 3),
        terminated("main", 0, "Completed"),
        terminated("zulu", 2),
        spec={"containers": [{"name": "main"}, {"name": "zulu"}, {"name": "alpha"}]},
    )
    assert found is not None
    assert (found.container, found.code) == ("zulu", 2)


def test_a_failed_init_container_is_why_the_main_one_never_ran() -> None:
    """Its exit code is the only one there is."""
    found = exit_of(
        waiting("main", "PodInitializing"), init=(terminated("fetch", 7, "Error", signal=9),)
    )
    assert found is not None
    assert (found.container, found.code, found.signal) == ("fetch", 7, 9)


def test_a_sidecars_end_is_no_failure() -> None:
    """A sidecar is killed once the others are done; Kubernetes does not count how it ends."""
    found = exit_of(
        terminated("proxy", 0),
        terminated("main", 0, "Completed"),
        init=(terminated("mesh", 137),),
        phase="Succeeded",
    )
    assert found is not None
    assert (found.container, found.code) == ("main", 0)


def test_a_container_that_is_not_found_again_has_ended_though_it_waits() -> None:
    """So the kubelet tells it when the runtime does not list the container any more."""
    lost = {"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": None}
    found = exit_of({**waiting("main", "ContainerCreating"), "lastState": {"terminated": lost}})
    assert found == Exit("main", 137, reason="ContainerStatusUnknown")


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown"])
def test_a_pod_that_has_not_ended_has_no_exit(phase: str) -> None:
    """Another of its containers may still run."""
    assert exit_of(terminated("main", 1), running("proxy"), phase=phase) is None


def test_a_pod_that_was_ended_from_outside_may_say_nothing() -> None:
    """Of a node that is gone no kubelet reports."""
    assert exit_of(running("main"), running("proxy")) is None
    assert exit_of() is None


def test_out_of_memory_is_the_runtimes_word() -> None:
    """137 alone might be anybody's SIGKILL."""
    found = exit_of(terminated("main", 137, "OOMKilled"))
    assert found is not None
    assert (found.code, found.reason) == (137, "OOMKilled")


def test_the_end_of_a_long_message_is_kept() -> None:
    """The last lines tell what happened."""
    found = exit_of(terminated("main", 1, message="x" * 9000 + "the end"))
    assert found is not None
    assert len(found.message) == LONGEST_MESSAGE
    assert found.message.endswith("the end")


@pytest.mark.parametrize("named", [None, "nobody"])
def test_without_the_annotation_the_first_container_is_the_main_one(named: str | None) -> None:
    """An annotation that names no container is none."""
    annotations = {names.DEFAULT_CONTAINER: named} if named else {}
    found = exit_of(
        terminated("main", 1), terminated("proxy", 2), metadata={"annotations": annotations}
    )
    assert found is not None
    assert found.container == "proxy"


def waits(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = ()) -> Any:
    status = {"containerStatuses": containers, "initContainerStatuses": init}
    found = observation.pod(raw_pod(status=status))
    assert found is not None
    return found.waiting


def test_the_first_container_that_waits_tells_why() -> None:
    """In the order in which they start; the usual words of a pod that starts are no reason."""
    back_off = waiting("main", "ImagePullBackOff", "Back-off pulling image")
    assert waits(back_off) == ("ImagePullBackOff", "Back-off pulling image")
    assert waits(back_off, waiting("proxy", "ContainerCreating"))[0] == "ImagePullBackOff"
    assert waits(
        waiting("main", "PodInitializing"), init=(waiting("fetch", "ErrImagePull", "no"),)
    ) == ("ErrImagePull", "no")
    assert waits(waiting("main", "ContainerCreating")) is None
    assert waits(running("main")) is None


def test_a_pod_runs_since_its_main_container_started() -> None:
    """And has done so when that has ended."""

    def since(*containers: dict[str, Any]) -> str:
        found = observation.pod(raw_pod(status={"containerStatuses": containers}))
        assert found is not None
        return found.running_since

    assert since(running("main", "2026-11-20T10:00:09Z"), running("proxy")) == (
        "2026-11-20T10:00:09Z"
    )
    assert since(terminated("main", 0)) == "2026-11-20T10:00:05Z"
    assert since(terminated("main", 128, "StartError", startedAt=None)) == ""
    assert since(running("proxy"), waiting("main", "ContainerCreating")) == ""
    assert since() == ""

    found = observation.pod(
        raw_pod(
            spec={"initContainers": [{"name": "a"}, {"name": "b"}]},
            status={"initContainerStatuses": [terminated("a", 0), waiting("b", "PodInitializing")]},
        )
    )
    assert found is not None
    assert (found.running_since, found.init_since) == ("", "2026-11-20T10:00:05Z")
    assert found.on_node_since == found.init_since
