"""Runs on Fairlead's own controller in queues of Kueue: both are real, as are scheduler and nodes.

No pod runs without quota, and no quota is held by a run that is over.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

import pytest

from tests.cluster.spaces import LOOK, NewNamespace, Space
from tests.eventually import eventually
from tests.objects import an_object
from tests.operators import checks, queues
from tests.operators.queueing import CONTROLLER, SIZE, Begin, holds, play, said, workload
from tests.operators.queues import GPU_TOLERATION, POOL, URGENT
from tests.wording import mentions
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.operators.install import Installation, start_operator

pytest_plugins = ["tests.cluster.webhook_fixtures", "tests.operators.queueing"]
pytestmark = pytest.mark.usefixtures("queues_of_admins", "running", "queueing_controller")

POLICIES: Final = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: teams}
spec: {defaults: {labels: {team: research}}}
"""


UNHELD: Final = '{"metadata": {"finalizers": null}}'


@pytest.fixture
def space(new_namespace: NewNamespace) -> Space:
    """A namespace with its queues."""
    made = new_namespace({names.KUEUE: names.KUEUE_KEEP})
    made.kubectl.create(*queues.of_namespaces())
    return made


def test_an_admitted_run_runs_on_its_flavor(space: Space) -> None:
    """A pod set for each role; Kueue's labels and tolerations beside those of the policies."""
    run = play(space, "gpu")
    run.until_whole(3)
    for pod in run.pods().values():
        assert pod["spec"]["nodeSelector"][POOL] == "gpu"
        assert GPU_TOLERATION in pod["spec"]["tolerations"]
        assert pod["metadata"]["labels"]["team"] == "research"
        assert (
            pod["metadata"]["annotations"][names.KUEUE_WORKLOAD]
            == workload(run)["metadata"]["name"]
        )
        assert names.KUEUE_QUEUE not in pod["metadata"]["labels"]
    sets = {each["name"]: each["count"] for each in workload(run)["spec"]["podSets"]}
    assert sets == SIZE
    mentions(run.condition("Admitted")["message"], "queue gpu", "worker on gpu")
    run.until("Kueue hears that all pods run", lambda: holds(run, "PodsReady"))
    run.ends("master-0", 0)
    run.until_phase("Succeeded")
    run.until("the quota is given back", lambda: holds(run, "Finished"))
    reasons = {each["type"]: each["reason"] for each in workload(run)["status"]["conditions"]}
    assert reasons["Finished"] == "Succeeded"
    assert run.live() == {}


def test_a_workload_without_its_label_is_found_and_its_run_goes_on(space: Space) -> None:
    """The watch goes by the label: without it the Workload seems to be gone."""
    run = play(space, "gpu")
    run.until_whole(3)
    before = {each["metadata"]["uid"] for each in run.pods().values()}
    made = workload(run)["metadata"]
    space.patch("workloads", made["name"], {"metadata": {"labels": {names.MANAGED_BY: None}}})
    run.until("it has it again", lambda: names.MANAGED_BY in workload(run)["metadata"]["labels"])
    assert workload(run)["metadata"]["uid"] == made["uid"]
    run.until_whole(3)
    assert {each["metadata"]["uid"] for each in run.pods().values()} == before


def test_a_run_that_is_deleted_alone_holds_no_quota(space: Space) -> None:
    """`--cascade=orphan` leaves its pods, as asked, and would leave its Workload."""
    run = play(space, "gpu")
    run.until_whole(3)
    made = workload(run)["metadata"]["name"]
    space.kubectl("delete", "runs.fairlead.dev", run.name, "--cascade=orphan")
    eventually("it is gone", lambda: not space.find("workloads", made), period=LOOK)
    assert len(space.items("pods", f"{names.RUN}={run.name}")) == 3


def test_a_run_waits_for_quota_and_runs_when_another_ends(space: Space) -> None:
    """Its message is Kueue's, with its position; no pod is made while it waits."""
    first = play(space, "one", "first", {"master": 1, "worker": 1}, environment={})
    first.until_whole(2)
    second = play(space, "one", "second", {"master": 1, "worker": 1})
    second.until("Kueue says why", lambda: "insufficient" in said(second))
    mentions(said(second), "waits in queue one", "cpu")
    third = play(space, "one", "third", {"master": 1, "worker": 1})
    # Of two Workloads of the same second, either is the first.
    third.until(
        "Kueue tells their positions",
        lambda: (
            {said(each).partition(":")[0] for each in (second, third)}
            == {
                f"waits in queue one, position {position} in its ClusterQueue"
                for position in (1, 2)
            }
        ),
    )
    space.delete(names.RUNS, third.name)
    assert second.status["phase"] == "Suspended"
    assert second.pods() == {}
    assert "startTime" not in second.status
    first.ends("master-0", 0)
    second.until_whole(2)
    assert holds(first, "Finished")


def test_a_more_urgent_run_preempts_it_and_that_is_a_disruption(space: Space) -> None:
    """Its pods go before its quota does; it comes back, and no failure is counted."""
    first = play(space, "one", "first", {"master": 1, "worker": 1})
    first.until_whole(2)
    second = play(space, "one", "second", {"master": 1, "worker": 1}, priority=URGENT)
    second.until_whole(2)
    assert first.pods() == {}
    assert first.status["phase"] == "Suspended"
    mentions(said(first), "queue one", "Preempted")
    assert first.status["disruptions"] == 1
    assert first.status["incidents"][-1]["reason"] == "Preempted"
    assert sum(role.get("failed", 0) for role in first.status["replicas"].values()) == 0
    second.ends("master-0", 0)
    first.until_whole(2)
    assert first.status["disruptions"] == 1


def test_flavors_differ_by_role(space: Space) -> None:
    """A role whose environment asks for a pool is given the flavor of that pool."""
    pool = {"environment": {"nodeSelector": {POOL: "on-demand"}}}
    run = play(
        space,
        "either",
        size={"master": {"count": 1, **pool}, "worker": 2},
    )
    run.until_whole(3)
    found = {name: pod["spec"]["nodeSelector"][POOL] for name, pod in run.pods().items()}
    assert found == {"master-0": "on-demand", "worker-0": "gpu", "worker-1": "gpu"}


def test_a_queue_that_chooses_hosts_opens_the_gate_of_each_pod(space: Space) -> None:
    """Also of a run that asks for no topology, as of a job."""
    run = play(space, "hosts")
    run.until_whole(3)
    for pod in run.pods().values():
        assert pod["spec"]["nodeSelector"]["kubernetes.io/hostname"].startswith("gpu-")


def test_a_group_at_which_kueue_would_panic_is_refused(space: Space) -> None:
    """One leader with workers of one kind is a group; Kueue goes on."""
    asks = {"podset-required-topology": "kubernetes.io/hostname", "podset-group-name": "all"}
    annotations = {f"{names.KUEUE_PREFIX}{key}": value for key, value in asks.items()}
    whole = play(space, "hosts")
    template = {**whole.run()["spec"]["template"], "metadata": {"annotations": annotations}}
    own = {"count": 2, "byIndex": [{"index": 1, "resources": {"requests": {"cpu": "500m"}}}]}
    refused = play(space, "hosts", "refused", {"master": 1, "worker": own}, template=template)
    refused.until("it says so", lambda: "two sets of pods" in said(refused))
    assert workload(refused) == {}
    group = play(space, "hosts", "group", template=template)
    group.until_whole(3)
    hosts = {pod["spec"]["nodeName"] for pod in group.pods().values()}
    assert len(hosts) == 1
    whole.until_whole(3)


def test_kueue_ends_a_run_whose_time_is_over(space: Space) -> None:
    """By the label that its jobs have; the run waits, and says so."""
    run = play(space, "gpu", labels={f"{names.KUEUE_PREFIX}max-exec-time-seconds": "3"})
    run.until_whole(3)
    run.until("Kueue has ended it", lambda: "deactivated" in said(run))
    mentions(said(run), "MaximumExecutionTimeExceeded")
    eventually("its pods are gone", lambda: not run.live())


def test_its_owner_suspends_it_and_the_quota_is_free(space: Space) -> None:
    """It leaves the queue when its pods are gone, and comes back at the end of it."""
    run = play(space, "gpu")
    run.until_whole(3)
    run.space.patch(names.RUNS, run.name, {"spec": {"suspend": True}})
    run.until("it is out of the queue", lambda: not workload(run))
    assert run.live() == {}
    mentions(said(run), "set suspend to false")
    run.space.patch(names.RUNS, run.name, {"spec": {"suspend": False}})
    run.until_whole(3)
    assert run.status.get("disruptions", 0) == 0


def test_a_lost_pod_keeps_the_quota(space: Space) -> None:
    """Kueue hears that the run recovers; nobody else gets its place."""
    run = play(space, "gpu")
    run.until_whole(3)
    uid = workload(run)["metadata"]["uid"]
    lost = run.pods()["worker-0"]
    run.ends("worker-0", 1)
    run.until_replaced("worker-0", lost)
    run.until_whole(3)
    assert workload(run)["metadata"]["uid"] == uid
    assert holds(run, "Admitted")
    run.until("it has recovered", lambda: holds(run, "PodsReady"))


def test_a_flavor_that_is_gone_keeps_new_pods_only(space: Space) -> None:
    """Pods that run are looked after: one that fails is counted, and made again when the flavor is
    back; what ends, ends."""
    run = play(space, "short")
    run.until_whole(3)
    # Kueue keeps a queue that has workloads, and a flavor that a queue uses.
    run.space.kubectl("delete", "clusterqueues", "short", "--wait=false")
    run.space.kubectl("patch", "clusterqueues", "short", "--type=merge", "-p", UNHELD)
    run.space.kubectl("delete", "resourceflavors", "short", "--timeout=30s")
    lost = run.pods()["worker-0"]
    run.ends("worker-0", 1)
    run.until("it says why", lambda: "ResourceFlavor short is not known" in run.status["message"])
    mentions(run.condition("Admitted")["message"], "ResourceFlavor short", "no replica")
    assert run.role("worker")["failed"] == 1
    run.space.kubectl.create(queues.short_flavor())
    run.until_replaced("worker-0", lost)


def test_a_queue_that_does_not_exist_is_named(space: Space) -> None:
    """A run that was admitted goes on when its queue is deleted; one that is resumed waits."""
    run = play(space, "none")
    run.until("Kueue says so", lambda: "doesn't exist" in said(run))
    mentions(said(run), "waits in queue none")
    run.space.create(an_object(queues.API, "LocalQueue", "none", {"clusterQueue": "gpu"}))
    run.until_whole(3)
    before = {name: each["metadata"]["uid"] for name, each in run.pods().items()}
    run.space.kubectl("delete", "localqueue", "none")
    run.ends("worker-1", 1)
    run.until("the worker is replaced", lambda: run.status.get("restarts") == 1)
    run.until_whole(3)
    assert run.pods()["worker-0"]["metadata"]["uid"] == before["worker-0"]
    run.set(suspend=True)
    run.until("it is out of the queue", lambda: not workload(run) and not run.pods())
    run.set(suspend=False)
    run.until("it waits for a queue", lambda: "doesn't exist" in said(run))
    assert run.pods() == {}


def test_a_stopped_queue_evicts_and_a_started_one_brings_it_back(
    space: Space, control_plane: ControlPlane
) -> None:
    """The message names the reason; the pods are gone before the quota is."""
    run = play(space, "either")
    run.until_whole(3)
    path = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/either"
    control_plane.api.patch(path, {"spec": {"stopPolicy": "HoldAndDrain"}})
    try:
        run.until("it is evicted", lambda: run.status["phase"] == "Suspended" and not run.pods())
        mentions(said(run), "ClusterQueueStopped")
        run.until("its quota is free", lambda: not holds(run, "QuotaReserved"))
    finally:
        control_plane.api.patch(path, {"spec": {"stopPolicy": "None"}})
    run.until_whole(3)


def test_what_an_admission_check_adds_is_in_the_pods(space: Space) -> None:
    """Its node labels, tolerations, labels and annotations, once it has passed."""
    run = play(space, "checked")
    run.until("it waits for the check", lambda: checks.CHECK in said(run))
    assert run.pods() == {}
    toleration = {"key": "found", "operator": "Exists", "effect": "NoSchedule"}
    checks.pass_with(
        space,
        nodeSelector={POOL: "on-demand"},
        tolerations=[toleration],
        annotations={"found.example.invalid/by": "check"},
    )
    run.until_whole(3)
    pod = run.pods()["worker-1"]
    assert pod["spec"]["nodeSelector"][POOL] == "on-demand"
    assert toleration in pod["spec"]["tolerations"]
    assert pod["metadata"]["annotations"]["found.example.invalid/by"] == "check"


@pytest.fixture
def impatient_kueue(
    control_plane: ControlPlane, cluster_kubectl: Kubectl, kueue_installation: Installation
) -> Iterator[None]:
    """Kueue evicts what is not ready in some seconds."""
    usual = kueue_installation.operator
    strategy = {"timestamp": "Eviction", "backoffBaseSeconds": 1}
    waits = {"timeout": "6s", "blockAdmission": False, "requeuingStrategy": strategy}
    impatient = usual.model_copy(update={"config": {**usual.config, "waitForPodsReady": waits}})
    for each in (impatient, usual):
        control_plane.stop_component("kueue")
        start_operator(control_plane, cluster_kubectl, replace(kueue_installation, operator=each))
        if each is impatient:
            yield


@pytest.mark.usefixtures("impatient_kueue")
def test_pods_that_are_not_ready_in_time_are_evicted(space: Space) -> None:
    """Kueue's waitForPodsReady goes by the condition that the run writes."""
    run = play(space, "gpu", environment={"nodeSelector": {"no": "such-node"}})
    run.until("Kueue admits it", lambda: holds(run, "Admitted"))
    run.until(
        "it is evicted for the time that it took",
        lambda: "PodsReadyTimeout" in said(run) and not run.pods(),
        budget=90.0,
    )
    run.until("its quota is free", lambda: not holds(run, "QuotaReserved"))


def test_a_deleted_workload_stops_the_run_until_it_is_admitted_again(space: Space) -> None:
    """Somebody deletes it: the pods go, and the run queues again."""
    run = play(space, "gpu")
    run.until_whole(3)
    before = workload(run)["metadata"]
    run.space.kubectl("delete", "workload", before["name"])
    run.until(
        "it has another Workload",
        lambda: workload(run) and workload(run)["metadata"]["uid"] != before["uid"],
    )
    run.until_whole(3)


def test_kueue_and_the_controller_die_at_any_moment(
    space: Space,
    control_plane: ControlPlane,
    cluster_kubectl: Kubectl,
    kueue_installation: Installation,
    begin: Begin,
) -> None:
    """Runs of one quota, one after the other: never are there pods of two, and all of them end."""
    random = Random(20261129)
    runs = [play(space, "one", f"r{at}", {"master": 1, "worker": 1}) for at in range(3)]
    ended: set[str] = set()
    both: list[set[str]] = []
    deadline = time.monotonic() + 240
    dies = time.monotonic() + random.uniform(1, 6)
    while len(ended) < len(runs) and time.monotonic() < deadline:
        alive = {run.name for run in runs if run.live()}
        if len(alive - ended) > 1:
            both.append(alive)
        for run in runs:
            if run.status.get("phase") == "Running" and len(run.live()) == 2:
                run.ends("master-0", 0)
                ended.add(run.name)
        if time.monotonic() > dies:
            if random.random() < 0.7:
                control_plane.stop_component(CONTROLLER)
                time.sleep(random.uniform(0, 2))
                begin()
            else:
                control_plane.stop_component("kueue")
                time.sleep(random.uniform(0, 2))
                start_operator(control_plane, cluster_kubectl, kueue_installation)
            dies = time.monotonic() + random.uniform(1, 6)
    assert len(ended) == len(runs), [run.status for run in runs]
    assert both == []
    for run in runs:
        run.until_phase("Succeeded")
        run.until("its quota is free", partial(holds, run, "Finished"))
