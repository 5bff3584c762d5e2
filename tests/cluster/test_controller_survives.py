"""Whatever happens to the controller, the API server or a node, each replica is there once."""

from __future__ import annotations

import json
import os
import signal
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from tests.cluster.etcd import KEEP_HISTORY, compact, pods_created, revision
from tests.cluster.live_runs import ALONE, SOON, TEMPLATE, LiveRun, StartInSpace, create_run
from tests.cluster.spaces import Json, Space, metric
from tests.control_planes import StartControlPlane
from webhook import names
from webhook.sandbox.api import definitions
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import start_controller
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, Pool, Taint, node_manifests, read_pools

pytest_plugins = ["tests.cluster.run_fixtures"]

# Short, so that a new leader need not be waited for.
ELECTION = ("--lease-duration", "3", "--renew-deadline", "2", "--retry-period", "0.3")
# Long enough for a leader that the machine has no time for now and then.
CALM = ("--lease-duration", "9", "--renew-deadline", "7", "--retry-period", "0.3")
# Enough that what is done in the middle of their creation is. tests/chaos has runs of a hundred.
FORTY = {"master": {}, "worker": {"count": 39}}
NODE_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

# Two nodes for one run alone.
DOOMED = Pool(
    name="doomed",
    count=2,
    capacity={"cpu": "8", "memory": "32Gi", "pods": "110"},
    zones=["europe-west4-a"],
    labels={"test": "doomed"},
    taints=[Taint(key="test", value="doomed", effect="NoSchedule")],
)


@dataclass(frozen=True)
class Bereft:
    """A run whose worker's node was deleted, and that worker's pod as it was before."""

    live: LiveRun
    pod: Json


@pytest.fixture(scope="module", autouse=True)
def bereft(run_api: ControlPlane, module_space: Space) -> Iterator[Bereft]:
    """The node is deleted before this module's first test, for PodGC waits 40 to 80 s."""
    where = ("--namespace", module_space.name)
    controller = start_controller(run_api, name="bereft", options=(*where, *ALONE, *SOON))
    nodes = node_manifests([DOOMED])
    for node in nodes:
        module_space.create(node)
    there = {
        "nodeSelector": DOOMED.labels,
        "tolerations": [{"key": "test", "operator": "Exists"}],
    }
    template = {"spec": {**TEMPLATE["spec"], **there}}
    live = create_run(
        module_space, "bereft", framework="jax", replicas={"worker": {}}, template=template
    )
    pod = live.until_running("worker-0")["worker-0"]
    module_space.delete("nodes", pod["spec"]["nodeName"])
    yield Bereft(live, pod)
    run_api.stop_component(controller.name)
    for node in nodes:
        module_space.delete("nodes", node["metadata"]["name"])


@pytest.fixture(scope="module")
def own_plane(start_module_plane: StartControlPlane) -> ControlPlane:
    """A control plane of the module's own, whose API server and history tests may break."""
    settings = Settings(
        pools=read_pools(SHIPPED_NODES), extra_arguments=KEEP_HISTORY, definitions=definitions()
    )
    return start_module_plane(settings)


@pytest.fixture
def own_space(
    own_plane: ControlPlane, kubectl_for: Callable[[ControlPlane], Kubectl]
) -> Iterator[Space]:
    """A namespace there. A controller that is named after it ends with the test."""
    name = f"lab-{uuid.uuid4().hex[:6]}"
    own_plane.create_namespace(name)
    yield Space(own_plane, kubectl_for(own_plane).within(name), name)
    if name in own_plane.pids:
        own_plane.stop_component(name)
    own_plane.api.delete(f"/api/v1/namespaces/{name}")


def created(space: Space, live: LiveRun) -> int:
    """How many pods of the run have ever been created, by the API server's audit log.

    Of a creation whose caller was killed meanwhile the log does not say how it went.
    """
    prefix = f"{live.name}-"
    return sum(
        event["verb"] == "create"
        and event["objectRef"].get("name", "").startswith(prefix)
        and event["responseStatus"]["code"] == 201
        and event["objectRef"].get("subresource") is None
        for event in space.plane.audit_events(space.name)
    )


def history(space: Space, live: LiveRun) -> str:
    """Who did what to those of its pods that were created three times, and its status."""
    events = [
        each
        for each in space.plane.audit_events(space.name)
        if each["verb"] in ("create", "delete", "update", "patch")
    ]
    created = Counter(
        each["objectRef"].get("name")
        for each in events
        if each["verb"] == "create" and not each["objectRef"].get("subresource")
    )
    lines = (
        f"{each['stageTimestamp']} {each['verb']} {each['objectRef']['name']}"
        f" {each['objectRef'].get('subresource', '')} by {each['user']['username']}"
        f" {each.get('userAgent')}: {each['responseStatus']['code']}"
        for each in events
        if created[each["objectRef"].get("name")] > 2
    )
    return "\n".join([json.dumps(live.status, indent=1), *lines])


def test_of_two_controllers_one_leads_and_the_other_takes_over(
    bare_space: Space, start_in_space: StartInSpace
) -> None:
    """A follower is ready too, writes nothing, and goes on where a killed leader was cut off."""
    controllers = {name: start_in_space(name, *CALM) for name in ("one", "two")}

    def leaders() -> list[str]:
        return [
            name
            for name, each in controllers.items()
            if metric(each.health_port, "fairlead_leader") == 1
        ]

    live = create_run(bare_space, "pair", framework="pytorch", replicas=FORTY)
    live.until("one leads", lambda: len(leaders()) == 1)
    [first] = leaders()
    live.until("it has begun", lambda: len(live.live()) > 10)
    [second] = set(controllers) - {first}
    assert metric(controllers[second].health_port, "fairlead_pods_created_total") == 0
    bare_space.plane.stop_component(first)
    del controllers[first]
    live.until_whole(40)
    counts = live.role("worker")
    assert (counts["failed"], counts["restarts"], counts["disruptions"]) == (0, 0, 0)
    live.ends("worker-7", 1)
    live.until("it is counted", lambda: live.role("worker").get("failed") == 1)
    assert leaders() == [second]


def test_two_that_both_believe_to_lead_still_make_every_replica_once(
    bare_space: Space, start_in_space: StartInSpace
) -> None:
    """The API server gives a name once, and takes a status only upon the version that was read."""
    live = create_run(bare_space, "twice", framework="pytorch", replicas=FORTY, backoffLimit=9)
    for name in ("one", "two"):
        start_in_space(name, *ALONE)
    live.until_whole(40)
    assert created(bare_space, live) == 40
    for index in range(5):
        live.ends(f"worker-{index}", 1)
    live.until("all are counted", lambda: live.role("worker").get("failed") == 5)
    live.until_whole(40)
    assert live.role("worker")["failed"] == 5
    assert created(bare_space, live) == 45, history(bare_space, live)


def test_kwok_takes_no_pod_that_has_the_name_of_an_earlier_one(
    bare_space: Space, start_in_space: StartInSpace
) -> None:
    """However late it hears of the earlier one's deletion; a kubelet goes by the uid."""
    start_in_space("prompt", *ALONE)
    live = create_run(bare_space, "late", framework="jax", replicas={"worker": {}})
    before = live.until_running("worker-0")["worker-0"]["metadata"]["uid"]

    def uid() -> str:
        pod = live.pods().get("worker-0", {})
        found: str = pod.get("metadata", {}).get("uid", "")
        return found

    kwok = bare_space.plane.pids["kwok"]
    os.kill(kwok, signal.SIGSTOP)
    try:
        live.ends("worker-0", 1)
        live.until("it is made anew", lambda: uid() not in ("", before))
        after = uid()
    finally:
        os.kill(kwok, signal.SIGCONT)
    live.until_whole(1)
    live.ends("worker-0", 0)
    assert live.until_phase("Succeeded")["restarts"] == 1
    assert uid() == after


@pytest.mark.last
def test_a_worker_whose_node_is_deleted_is_a_disruption(bereft: Bereft) -> None:
    """PodGC takes the pod of a node that is gone, and the worker starts again on another."""
    live, before = bereft.live, bereft.pod
    after = live.until_replaced("worker-0", before, budget=120)
    assert after["spec"]["nodeName"] != before["spec"]["nodeName"]
    live.until_phase("Running")
    assert live.role("worker")["disruptions"] >= 1
    assert live.status["replicas"]["worker"]["failed"] == 0
    assert live.status["lastFailure"]["reason"] in ("DeletionByPodGC", "Vanished", "Deleted")


def restart_api_server(plane: ControlPlane) -> None:
    """Kill it and start it again, with those who put pods on nodes and run them.

    By themselves these come back after a backoff of up to a minute, and are not the subject here.
    Nor is that another kwok waits for 40 s until a node's lease of the one before it is over.
    """
    plane.stop_component("kube-apiserver")
    plane.start_component("kube-apiserver")
    plane.wait_for_api_server()
    for name in ("kube-scheduler", "kwok"):
        plane.stop_component(name)
    plane.api.delete(NODE_LEASES)
    for name in ("kube-scheduler", "kwok"):
        plane.start_component(name)


def test_an_api_server_that_restarts_in_the_middle_costs_no_replica(own_space: Space) -> None:
    """Calls fail, watches break, and it goes on where it was."""
    plane, name = own_space.plane, own_space.name
    before = revision(plane)
    options = ("--namespace", name, *ELECTION, *SOON)
    controller = start_controller(plane, name=name, options=options)
    live = create_run(own_space, "hardy", framework="pytorch", replicas=FORTY)
    live.until("it has begun", lambda: len(live.live()) > 10)
    restart_api_server(plane)
    live.until_whole(40)
    restart_api_server(plane)
    live.ends("worker-3", 1)
    live.until("it is counted", lambda: live.role("worker").get("failed") == 1)
    live.until_whole(40)
    # By etcd: a killed API server's log does not have the creations that it was about to answer.
    assert pods_created(plane, name, "hardy-", since=before) == 41
    assert metric(controller.health_port, "fairlead_watches_total", resource="pods") > 1


def test_what_happened_while_history_was_compacted_is_found_by_new_lists(own_space: Space) -> None:
    """A controller that was stopped meanwhile gets 410, lists again, and counts what vanished."""
    plane = own_space.plane
    options = ("--namespace", own_space.name, *ALONE, *SOON)
    controller = start_controller(plane, name=own_space.name, options=options)
    live = create_run(own_space, "hardy", framework="pytorch", replicas=FORTY)
    live.until_whole(40)
    uids = {pod["metadata"]["uid"] for pod in live.pods().values()}
    lists = metric(controller.health_port, "fairlead_lists_total", resource="pods")
    os.kill(controller.pid, signal.SIGSTOP)
    restart_api_server(plane)
    gone = [f"hardy-worker-{index}" for index in range(0, 30, 2)]
    own_space.kubectl("delete", "pod", *gone, "--wait=true")
    live.ends("worker-1", 1)
    own_space.patch(names.RUNS, "hardy", {"metadata": {"labels": {"seen": "no"}}})
    compact(plane)
    restart_api_server(plane)
    os.kill(controller.pid, signal.SIGCONT)
    live.until("all are counted", lambda: live.role("worker").get("restarts") == 16)
    live.until_whole(40)
    assert live.role("worker")["restarts"] == 16
    assert len(uids | {pod["metadata"]["uid"] for pod in live.pods().values()}) == 56
    assert metric(controller.health_port, "fairlead_lists_total", resource="pods") > lists
