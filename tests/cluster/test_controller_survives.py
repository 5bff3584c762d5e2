"""Whatever happens to the controller or the API server, in the end there is every replica once."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tests.cluster.etcd import KEEP_HISTORY, compact, pods_created
from tests.cluster.rooms import ADMINISTRATOR, Room, metric
from tests.cluster.scenes import Scene, play
from tests.control_planes import StartControlPlane
from webhook import names
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.controller import SandboxController, start_controller
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.nodes import SHIPPED_NODES, read_pools
from webhook.sandbox.run_api import install_run_api

pytest_plugins = ["tests.cluster.run_fixtures"]

# Short, so that a new leader need not be waited for.
ELECTION = ("--lease-duration", "3", "--renew-deadline", "2", "--retry-period", "0.3")
# Long enough for a leader that the machine has no time for now and then.
CALM = ("--lease-duration", "9", "--renew-deadline", "7", "--retry-period", "0.3")
ALONE = ("--no-leader-election",)
HUNDRED = {"master": {}, "worker": {"count": 99}}


@pytest.fixture
def room(run_api: ControlPlane, cluster_kubectl: Kubectl, namespace: str) -> Room:
    """A namespace for a test that starts controllers of its own, for this namespace alone."""
    return Room(run_api, cluster_kubectl.within(namespace), namespace)


@pytest.fixture
def start(room: Room) -> Iterator[Callable[..., SandboxController]]:
    """Starts controllers for the room, each under its name; all are gone after the test."""
    started: list[str] = []

    def begin(name: str, *options: str) -> SandboxController:
        where = ("--namespace", room.name)
        controller = start_controller(room.plane, name=name, options=(*where, *options))
        started.append(name)
        return controller

    yield begin
    for name in started:
        # Some were killed by their test.
        with suppress(KeyError):
            room.plane.stop_component(name)


@pytest.fixture
def own_room(
    start_control_plane: StartControlPlane, kubectl_for: Callable[[ControlPlane], Kubectl]
) -> Room:
    """A namespace in a control plane of the test's own, which may break it."""
    plane = start_control_plane(
        Settings(pools=read_pools(SHIPPED_NODES), audit=True, extra_arguments=KEEP_HISTORY)
    )
    install_run_api(plane.api)
    plane.create_namespace("lab")
    return Room(plane, kubectl_for(plane).within("lab"), "lab")


def all_run(scene: Scene, count: int) -> None:
    """Wait until the run is Running with so many replicas, each of them there once."""

    def whole() -> bool:
        status = scene.status
        return (
            status.get("phase") == "Running"
            and status.get("replicasReady") == f"{count}/{count}"
            and len(scene.live()) == count
        )

    scene.until(f"{count} replicas run", whole)
    pods = scene.pods()
    assert len(pods) == count
    replicas = [
        (each["metadata"]["labels"][names.ROLE], each["metadata"]["labels"][names.REPLICA_INDEX])
        for each in pods.values()
    ]
    assert len(set(replicas)) == count


def created(room: Room, scene: Scene) -> int:
    """How many pods of the run have ever been created, by the API server's audit log.

    Of a creation whose caller was killed meanwhile the log does not say how it went.
    """
    prefix = f"{scene.name}-"
    return sum(
        event["verb"] == "create"
        and event["objectRef"].get("name", "").startswith(prefix)
        and event["responseStatus"]["code"] == 201
        and event["objectRef"].get("subresource") is None
        for event in room.plane.audit_events(room.name)
    )


def taken_by_others(room: Room, scene: Scene) -> list[str]:
    """The run's pods that somebody else has deleted, by the API server's audit log."""
    return [
        event["objectRef"]["name"]
        for event in room.plane.audit_events(room.name)
        if event["verb"] == "delete"
        and event["objectRef"].get("name", "").startswith(f"{scene.name}-")
        and event["user"]["username"] != ADMINISTRATOR
        and event["responseStatus"]["code"] == 200
    ]


def test_killed_at_twenty_random_moments_it_loses_and_doubles_nothing(
    room: Room, start: Callable[..., SandboxController]
) -> None:
    """A hundred replicas, one of which fails before each kill: each failure is counted once."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    spec = {"framework": "pytorch", "replicas": HUNDRED, "backoffLimit": 1000}
    scene = play(room, "hardy", **spec)
    failures = 0
    for kill in range(20):
        start("killed", *ALONE)
        time.sleep(chance.uniform(0.0, 0.5))
        victim = f"worker-{kill}"
        if (pod := scene.live().get(victim)) and pod["status"]["phase"] == "Running":
            scene.ends(victim, 1)
            failures += 1
        time.sleep(chance.uniform(0.0, 0.5))
        room.plane.stop_component("killed")
    start("last", *ALONE)
    all_run(scene, 100)
    role = scene.role("worker")
    assert failures > 0
    # One too many was counted at times under heavy load, and why is not known: if it was somebody
    # else who took a live pod away, the count is right; if nobody did, there may be none.
    taken = taken_by_others(room, scene)
    assert role["disruptions"] <= len(taken), (scene.status["lastFailure"], scene.events())
    assert (role["failed"], role["restarts"]) == (failures, failures + role["disruptions"]), taken
    assert scene.role("master")["failed"] == 0


def test_of_two_controllers_one_leads_and_the_other_takes_over(
    room: Room, start: Callable[..., SandboxController]
) -> None:
    """A follower is ready too, writes nothing, and goes on where a killed leader was cut off."""
    controllers = {name: start(name, *CALM) for name in ("one", "two")}

    def leaders() -> list[str]:
        return [
            name
            for name, each in controllers.items()
            if metric(each.health_port, "fairlead_leader") == 1
        ]

    scene = play(room, "pair", framework="pytorch", replicas=HUNDRED)
    scene.until("one leads", lambda: len(leaders()) == 1)
    [first] = leaders()
    scene.until("it has begun", lambda: len(scene.live()) > 10)
    [second] = set(controllers) - {first}
    assert metric(controllers[second].health_port, "fairlead_pods_created_total") == 0
    room.plane.stop_component(first)
    del controllers[first]
    all_run(scene, 100)
    counts = scene.role("worker")
    assert (counts["failed"], counts["restarts"], counts["disruptions"]) == (0, 0, 0)
    scene.ends("worker-7", 1)
    scene.until("it is counted", lambda: scene.role("worker").get("failed") == 1)
    assert leaders() == [second]


def test_two_that_both_believe_to_lead_still_make_every_replica_once(
    room: Room, start: Callable[..., SandboxController]
) -> None:
    """The API server gives a name once, and takes a status only upon the version that was read."""
    scene = play(room, "twice", framework="pytorch", replicas=HUNDRED, backoffLimit=9)
    for name in ("one", "two"):
        start(name, *ALONE)
    all_run(scene, 100)
    assert created(room, scene) == 100
    for index in range(5):
        scene.ends(f"worker-{index}", 1)
    scene.until("all are counted", lambda: scene.role("worker").get("failed") == 5)
    all_run(scene, 100)
    assert scene.role("worker")["failed"] == 5
    assert created(room, scene) == 105


def test_a_leader_that_is_told_to_stop_gives_the_lease_back(
    room: Room, start: Callable[..., SandboxController]
) -> None:
    """The next one need not wait until it expires."""
    patient = ("--lease-duration", "3600", "--renew-deadline", "600", "--retry-period", "0.3")
    first = start("first", *patient)
    scene = play(room, "handed", framework="jax", replicas={"worker": {"count": 2}})
    scene.until_running("worker-0", "worker-1")
    os.kill(first.pid, signal.SIGTERM)
    start("second", *patient)
    scene.ends("worker-1", 1)
    scene.until("it is counted", lambda: scene.role("worker").get("failed") == 1)
    lease = room.kubectl.json("get", "lease", "fairlead-controller")
    assert lease["spec"]["leaseTransitions"] == 1


def restart_api_server(plane: ControlPlane) -> None:
    plane.stop_component("kube-apiserver")
    plane.start_component("kube-apiserver")
    plane.wait_for_api_server()


def test_an_api_server_that_restarts_in_the_middle_costs_no_replica(own_room: Room) -> None:
    """Calls fail, watches break, and it goes on where it was."""
    controller = start_controller(own_room.plane, options=ELECTION)
    scene = play(own_room, "hardy", framework="pytorch", replicas=HUNDRED)
    scene.until("it has begun", lambda: len(scene.live()) > 10)
    restart_api_server(own_room.plane)
    all_run(scene, 100)
    restart_api_server(own_room.plane)
    scene.ends("worker-3", 1)
    scene.until("it is counted", lambda: scene.role("worker").get("failed") == 1)
    all_run(scene, 100)
    # By etcd: a killed API server's log does not have the creations that it was about to answer.
    assert pods_created(own_room.plane, "lab", "hardy-") == 101
    assert metric(controller.health_port, "fairlead_watches_total", resource="pods") > 1


def test_what_happened_while_history_was_compacted_is_found_by_new_lists(own_room: Room) -> None:
    """A controller that stood still meanwhile is told 410, lists anew, and counts what vanished."""
    plane = own_room.plane
    controller = start_controller(plane, options=ALONE)
    scene = play(own_room, "hardy", framework="pytorch", replicas=HUNDRED)
    all_run(scene, 100)
    uids = {pod["metadata"]["uid"] for pod in scene.pods().values()}
    lists = metric(controller.health_port, "fairlead_lists_total", resource="pods")
    os.kill(controller.pid, signal.SIGSTOP)
    restart_api_server(plane)
    gone = [f"hardy-worker-{index}" for index in range(0, 60, 2)]
    own_room.kubectl("delete", "pod", *gone, "--wait=true")
    scene.ends("worker-1", 1)
    own_room.kubectl("label", "run", "hardy", "seen=no")
    compact(plane)
    restart_api_server(plane)
    os.kill(controller.pid, signal.SIGCONT)
    scene.until("all are counted", lambda: scene.role("worker").get("disruptions") == 30)
    all_run(scene, 100)
    role = scene.role("worker")
    assert (role["disruptions"], role["failed"]) == (30, 1)
    assert len(uids | {pod["metadata"]["uid"] for pod in scene.pods().values()}) == 131
    assert metric(controller.health_port, "fairlead_lists_total", resource="pods") > lists
