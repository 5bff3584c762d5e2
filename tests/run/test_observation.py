"""What is read from raw pods, Deployments and owner references."""

from __future__ import annotations

from typing import Any

import pytest

from tests.run.raw_pods import condition, owner_reference, raw_pod, running, terminated, waiting
from webhook import names
from webhook.run import observation
from webhook.run.controller_reference import owner_uid
from webhook.run.observation import LONGEST_EXIT_MESSAGE
from webhook.run.observed import Exit, OwnedDeployment, OwnedPod


def read(**changes: Any) -> OwnedPod:
    found = observation.pod(raw_pod(**changes))
    assert found is not None
    return found


def test_a_new_pod_is_pending_and_says_which_replica_it_is() -> None:
    """Role and index are in its name, the attempt is an annotation, the run is the owner."""
    assert read(status={"phase": "Pending"}) == OwnedPod(
        name="mnist-worker-3",
        uid="pod-uid",
        run_uid="run-uid",
        role="worker",
        index=3,
        attempt=2,
        phase="Pending",
    )


@pytest.mark.parametrize(
    "references",
    [
        None,
        [],
        [owner_reference(controller=False)],
        [owner_reference(kind="Job")],
        [owner_reference(apiVersion="example.dev/v1alpha1")],
        [owner_reference(apiVersion="v1")],
    ],
)
def test_a_pod_is_a_runs_only_by_its_controller_reference(references: Any) -> None:
    """A label alone proves nothing: anybody can write one."""
    assert observation.pod(raw_pod(metadata={"ownerReferences": references})) is None


def test_a_run_of_another_version_owns_its_pods_too() -> None:
    """The group and the kind tell, as in every owner reference."""
    reference = owner_reference(apiVersion="fairlead.dev/v1", uid="other")
    pods = [owner_reference(kind="Queue", controller=False), reference]
    assert read(metadata={"ownerReferences": pods}).run_uid == "other"


@pytest.mark.parametrize(
    ("name", "role", "index"),
    [
        ("mnist-worker-3", "worker", 3),
        ("mnist-ps-0", "ps", 0),
        ("mnist-worker-10000", "worker", 10000),
    ],
)
def test_role_and_index_are_those_of_the_name(name: str, role: str, index: int) -> None:
    """No two pods have one name, whatever became of their labels."""
    assert (read(name=name).role, read(name=name).index) == (role, index)
    found = read(name=name, metadata={"name": name, "labels": None, "annotations": None})
    assert (found.role, found.index, found.attempt) == (role, index, 0)


@pytest.mark.parametrize(
    "name", ["mnist", "mnist-3", "mnist-worker-x", "mnist-worker-", "other-worker-3", "mnist-w-²"]
)
def test_a_pod_that_tells_no_replica_is_none_of_the_run(name: str) -> None:
    """Somebody else gave it our owner reference."""
    assert observation.pod(raw_pod(name=name)) is None


def replica_set() -> dict[str, Any]:
    return owner_reference(apiVersion="apps/v1", kind="ReplicaSet", name="lab-1", uid="rs")


SERVED = {names.RUN_UID: "run-uid", names.RUN: "lab", "pod-template-hash": "1"}


def test_the_pod_of_a_run_that_serves_is_not_a_replica() -> None:
    """A Deployment makes it, by way of a ReplicaSet."""
    found = read(
        metadata={"ownerReferences": [replica_set()], "labels": SERVED},
        status={"conditions": [condition("PodScheduled", "False", "Unschedulable", "no node")]},
    )
    assert (found.run_uid, found.role, found.unscheduled) == ("run-uid", "", "no node")
    assert observation.pod(raw_pod(metadata={"ownerReferences": [replica_set()]})) is None


@pytest.mark.parametrize("copied", [{names.RUN: "other"}, {"pod-template-hash": "2"}])
def test_a_pod_with_copied_labels_of_a_run_that_serves_is_none_of_its_pods(
    copied: dict[str, str],
) -> None:
    """Another Deployment's template has them."""
    labels = {**SERVED, **copied}
    forged = raw_pod(metadata={"ownerReferences": [replica_set()], "labels": labels})
    assert observation.pod(forged) is None


@pytest.mark.parametrize("phase", ["Pending", "Running", "Succeeded", "Failed", "Unknown"])
def test_the_phase_is_the_pods(phase: str) -> None:
    """All five of Kubernetes' phases."""
    assert read(status={"phase": phase}).phase == phase


def test_ready_is_what_the_condition_says() -> None:
    """A pod may run and not be ready."""
    assert not read(status={"phase": "Running"}).ready
    assert not read(status={"conditions": [condition("Ready", "False")]}).ready
    assert read(status={"conditions": [condition("Ready", "True")]}).ready


@pytest.mark.parametrize(
    ("reason", "message", "kept"),
    [
        ("Unschedulable", "0/12 nodes are available", "0/12 nodes are available"),
        ("SchedulingGated", "Scheduling is blocked", ""),
        ("SchedulerError", "binding rejected", ""),
    ],
)
def test_why_no_node_was_found_is_the_schedulers_message(
    reason: str, message: str, kept: str
) -> None:
    """A gate holds a pod back, which is another thing; an error is tried again at once."""
    scheduled = condition("PodScheduled", "False", reason, message)
    assert read(status={"conditions": [scheduled]}).unscheduled == kept


def test_a_pod_that_has_its_node_waits_for_none() -> None:
    """The condition turns True."""
    found = read(
        spec={"nodeName": "spot-1"},
        status={"conditions": [condition("PodScheduled", "True", "", "old")]},
    )
    assert (found.node, found.unscheduled) == ("spot-1", "")


def test_gates_are_counted() -> None:
    """They hold a pod back from the scheduler."""
    assert read(spec={"schedulingGates": [{"name": "a"}, {"name": "b"}]}).gates == ("a", "b")


@pytest.mark.parametrize(
    ("grace", "asked"),
    [(30, "2026-11-20T10:06:00Z"), (0, "2026-11-20T10:06:30Z"), (None, "2026-11-20T10:06:30Z")],
)
def test_a_deletion_was_asked_for_its_grace_period_earlier(grace: int | None, asked: str) -> None:
    """deletionTimestamp is when the pod should be gone."""
    metadata = {
        "deletionTimestamp": "2026-11-20T10:06:30Z",
        "deletionGracePeriodSeconds": grace,
    }
    assert read(metadata=metadata).deleted_at == asked


@pytest.mark.parametrize(
    ("more", "half"),
    [
        ({"deletionGracePeriodSeconds": 0}, True),
        ({}, True),
        ({"deletionGracePeriodSeconds": 30}, False),
        ({"deletionGracePeriodSeconds": 0, "finalizers": ["example.com/backup"]}, False),
        ({"deletionTimestamp": None}, False),
    ],
)
def test_a_pod_is_half_deleted_that_nothing_keeps(more: dict[str, Any], half: bool) -> None:
    """The API server marks an object first and removes it in a second step, which may fail."""
    assert read(metadata={"deletionTimestamp": "2026-11-20T10:06:30Z", **more}).half_deleted == half


@pytest.mark.parametrize("deleted", ["2026-11-20T10:06:30Z", "12026-11-20T10:06:30Z"])
def test_a_grace_period_beyond_the_last_date_has_no_end(deleted: str) -> None:
    """Whoever deletes a pod may ask for any number of seconds."""
    metadata = {
        "creationTimestamp": "2026-11-20T10:00:00Z",
        "deletionTimestamp": deleted,
        "deletionGracePeriodSeconds": 100_000_000_000,
    }
    assert read(metadata=metadata).deleted_at == "2026-11-20T10:00:00Z"


def test_a_disruption_is_the_condition_with_reason_message_and_time() -> None:
    """KEP-3329: DisruptionTarget, only while it is True."""
    target = condition("DisruptionTarget", "True", "DeletionByTaintManager", "Taint manager")
    assert read(status={"conditions": [target]}).disruption == (
        "DeletionByTaintManager",
        "Taint manager",
        "2026-11-20T10:06:00Z",
    )
    assert read(status={"conditions": [{**target, "status": "False"}]}).disruption is None


def test_status_reason_and_message_are_kept_and_bounded() -> None:
    """NodeLost, Evicted, Shutdown, Preempting: told in status.reason."""
    found = read(status={"phase": "Failed", "reason": "Evicted", "message": "x" * 5000})
    assert found.reason == "Evicted"
    assert found.message == "x" * observation.LONGEST_MESSAGE


def test_pods_that_say_the_same_share_one_text() -> None:
    """Thousands of pods that wait for a node must not hold thousands of messages."""
    message = "0/12 nodes are available"
    one, other = (
        read(status={"conditions": [condition("PodScheduled", "False", "Unschedulable", text)]})
        for text in (message, f"{message} "[:-1])
    )
    assert one.unscheduled is other.unscheduled
    assert one.run_uid is other.run_uid


def raw_deployment(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {"uid": "d", "generation": 3, "ownerReferences": [owner_reference()]},
        "spec": {"replicas": 1},
        "status": status,
    }


def test_a_deployment_is_read_with_its_observed_generation() -> None:
    """A status of an older generation says nothing of the newer one."""
    raw = raw_deployment(observedGeneration=2, replicas=1, readyReplicas=1, availableReplicas=1)
    assert observation.deployment(raw) == OwnedDeployment(
        uid="d", replicas=1, generation=3, observed_generation=2, available=1, ready=1
    )


def test_a_deployment_of_another_owner_does_not_count() -> None:
    """Its owner tells."""
    assert observation.deployment({"metadata": {"uid": "d"}, "spec": {}, "status": {}}) is None


def test_a_deployment_without_a_status_is_not_available() -> None:
    """As it is just after its creation."""
    raw = {"metadata": {"uid": "d", "ownerReferences": [owner_reference()]}, "spec": {}}
    found = observation.deployment(raw)
    assert found is not None
    assert (found.replicas, found.available, found.observed_generation) == (1, 0, 0)


def test_a_deployment_says_why_it_makes_no_progress() -> None:
    """ReplicaFailure while it is True, Progressing once it is False; nothing else."""
    conditions = [
        {"type": "Available", "status": "False", "message": "no minimum availability"},
        {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"},
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
    ]
    found = observation.deployment(raw_deployment(conditions=conditions))
    assert found is not None
    assert found.message == "exceeded quota; ProgressDeadlineExceeded"


def test_objects_of_a_run_are_recognized_by_the_controller_reference() -> None:
    """Services and ConfigMaps: of them only this is kept."""
    assert owner_uid({"metadata": {"ownerReferences": [owner_reference()]}}) == "run-uid"
    assert owner_uid({"metadata": {"labels": {names.RUN: "mnist"}}}) is None


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


def test_a_sidecars_end_is_not_a_failure() -> None:
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


def test_out_of_memory_is_the_runtimes_reason() -> None:
    """137 alone might be anybody's SIGKILL."""
    found = exit_of(terminated("main", 137, "OOMKilled"))
    assert found is not None
    assert (found.code, found.reason) == (137, "OOMKilled")


def test_the_end_of_a_long_message_is_kept() -> None:
    """The last lines tell what happened."""
    found = exit_of(terminated("main", 1, message="x" * 9000 + "the end"))
    assert found is not None
    assert len(found.message) == LONGEST_EXIT_MESSAGE
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


def test_the_end_of_the_main_container_is_known_while_others_run() -> None:
    """Its own, and not that of the container that failed."""

    def finished(*containers: dict[str, Any]) -> str:
        found = observation.pod(raw_pod(status={"containerStatuses": containers}))
        assert found is not None
        return found.finished_at

    assert finished(terminated("main", 0), running("proxy")) == "2026-11-20T10:07:00Z"
    assert finished(running("main"), terminated("proxy", 1)) == ""
