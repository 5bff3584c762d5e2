"""What every delegated Run goes through, beside the real operator of its engine."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Mapping
from typing import Final

from tests.cluster.live_runs import ALONE, SOON
from tests.cluster.spaces import LOOK, Space, stamp
from tests.eventually import eventually
from tests.operators.delegated import Delegated, Shape, play
from tests.wording import mentions
from webhook import names
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import CONTROLLER_NAME, start_controller

POOL: Final = "cloud.google.com/gke-nodepool"
POLICIES: Final = f"""
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: to-a-pool}}
spec:
  overrides:
    nodeSelector: {{{POOL}: on-demand}}
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: workers-elsewhere}}
spec:
  match: {{roles: [worker], podSelector: {{matchLabels: {{rejected: "yes"}}}}}}
  requirements:
    nodeSelector: {{zone: b}}
"""
KILLS: Final = 20


def live_and_end(space: Space, shape: Shape) -> Delegated:
    """Created, placed, Running; a pod fails and comes back; suspended, resumed; succeeded; gone."""
    run = play(space, shape, backoffLimit=3, ttlSecondsAfterFinished=4)
    before = run.until_all_run()
    found = run.object()
    assert found is not None
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Run", run.run()["metadata"]["uid"])
    policy = found["spec"].get("runPolicy", found["spec"])
    assert "ttlSecondsAfterFinished" not in policy
    for pod in before.values():
        assert [*stamp(pod)["policies"]] == ["to-a-pool"]
        assert pod["spec"]["nodeSelector"] == {POOL: "on-demand"}

    run.ends(shape.failing, 137, message="out of luck")
    run.until_replaced(shape.failing, before[shape.failing])
    run.until_all_run()
    role = shape.failing.partition("-")[0]
    assert run.role(role)["failed"] == run.role(role)["restarts"] == 1
    failure = run.status["lastFailure"]
    assert failure["replica"] == before[shape.failing]["metadata"]["name"]
    assert (failure["exitCode"], failure["message"]) == (137, "out of luck")

    run.set(suspend=True)
    run.until_phase("Suspended")
    run.until("no pod is left", lambda: not (run.live() if shape.keeps else run.pods()))
    run.set(suspend=False)
    run.until_all_run()
    assert run.status["restarts"] == 1
    assert run.status["disruptions"] == 0

    run.succeeds()
    status = run.until_phase("Succeeded")
    assert status["restarts"] == 1
    assert status["completionTime"]
    run.until("no pod runs", lambda: not run.live())
    gone(run)
    return run


def gone(run: Delegated) -> None:
    """Wait until the Run is gone, and all that was made for it."""
    eventually("the Run is gone", lambda: not room_has(run, names.RUNS), period=LOOK)
    eventually("its object is gone", lambda: not run.object(), period=LOOK)
    eventually("its pods are gone", lambda: not run.pods(), period=LOOK)


def room_has(run: Delegated, resource: str) -> bool:
    """Whether the space has an object of the run's name."""
    return run.space.find(resource, run.name) is not None


def created_reason(run: Delegated, reason: str) -> str:
    """Wait until the condition Created has this reason; its message."""
    run.until(f"Created is {reason}", lambda: run.condition("Created").get("reason") == reason)
    message: str = run.condition("Created")["message"]
    return message


def leave_nothing(space: Space, shape: Shape) -> None:
    """A Run is deleted: its object is deleted with it, and the pods with that."""
    run = play(space, shape)
    run.until_all_run()
    space.delete(names.RUNS, run.name)
    gone(run)


def lose_a_pod(space: Space, shape: Shape) -> None:
    """It counts like that of a native run, and is not charged to backoffLimit."""
    run = play(space, shape, backoffLimit=0)
    before = run.until_all_run()
    space.delete("pods", before[shape.failing]["metadata"]["name"], now=True)
    run.until_replaced(shape.failing, before[shape.failing])
    run.until_all_run()
    role = shape.failing.partition("-")[0]
    run.until("it is counted", lambda: run.status["disruptions"] == 1)
    assert run.role(role)["failed"] == 0


def report_rejected_pods(space: Space, shape: Shape) -> None:
    """The reason is in Events of the object, of a Job, or of a ReplicaSet."""
    asked = {"labels": {"rejected": "yes"}, "nodeSelector": {"zone": "a"}}
    run = play(space, shape, environment=asked)
    message = created_reason(run, "Rejected")
    mentions(message, run.name, "workers-elsewhere", "nodeSelector[zone]")
    assert run.status["phase"] != "Running"
    run.until("an Event says so", lambda: "Rejected" in [one["reason"] for one in run.events()])


def exceed_the_limit(space: Space, shape: Shape) -> None:
    """Two failures with a backoffLimit of 1: the run fails, and its object is deleted."""
    run = play(space, shape, backoffLimit=1)
    for count in (1, 2):
        before = run.until_all_run()
        run.ends(shape.failing, 130)
        if count == 1:
            run.until_replaced(shape.failing, before[shape.failing])
    status = run.until_phase("Failed")
    assert run.condition("Failed")["reason"] == "BackoffLimitExceeded"
    mentions(status["message"], shape.failing, "failure 2", "backoffLimit is 1")
    eventually("its object is gone", lambda: not run.object(), period=LOOK)
    eventually("its pods are gone", lambda: not run.pods(), period=LOOK)
    assert run.status["phase"] == "Failed"


def exceed_the_deadline(space: Space, shape: Shape) -> None:
    """The run fails while all its pods run, and its object is deleted."""
    run = play(space, shape, activeDeadlineSeconds=6)
    run.until_all_run()
    run.until_phase("Failed")
    assert run.condition("Failed")["reason"] == "DeadlineExceeded"
    eventually("its object is gone", lambda: not run.object(), period=LOOK)
    eventually("its pods are gone", lambda: not run.pods(), period=LOOK)


def kill_the_controller(space: Space, control_plane: ControlPlane, shape: Shape) -> None:
    """Killed at random moments while the run begins, loses pods, is suspended and resumed.

    A failure whose pod the operator deletes while no controller runs is not counted; none counts
    twice.
    """
    failing, role = shape.failing, shape.failing.partition("-")[0]
    seed = random.randrange(10**6)
    moments = random.Random(seed)
    control_plane.stop_component(CONTROLLER_NAME)
    run = play(space, shape, backoffLimit=50)
    failures = 0
    uids: set[str] = set()
    for number in range(KILLS):
        controller = start_controller(control_plane, options=(*ALONE, *SOON), wait=False)
        time.sleep(moments.uniform(0.8, 3.5))
        live = run.live()
        if number % 4 == 1 and live.get(failing, {}).get("status", {}).get("phase") == "Running":
            run.ends(failing, 137)
            failures += 1
            time.sleep(moments.uniform(0, 0.5))
        if number in (10, 14):
            run.set(suspend=number == 10)
        os.kill(controller.pid, signal.SIGKILL)
        control_plane.stop_component(CONTROLLER_NAME)
        if found := run.object():
            uids.add(found["metadata"]["uid"])
    start_controller(control_plane, options=(*ALONE, *SOON))
    run.until_all_run()
    found = run.object()
    assert found is not None
    assert uids <= {found["metadata"]["uid"]}, f"seed {seed}"
    assert failures, f"seed {seed}"
    assert run.role(role)["failed"] <= failures, f"seed {seed}"
    assert len(run.live()) == len(shape.pods)
    run.succeeds()
    run.until_phase("Succeeded")


LIVES: Final[Mapping[str, Callable[[Space, Shape], object]]] = {
    "lives and ends": live_and_end,
    "exceeds its limit": exceed_the_limit,
    "exceeds its deadline": exceed_the_deadline,
    "is deleted": leave_nothing,
    "loses a pod": lose_a_pod,
    "has rejected pods": report_rejected_pods,
}
