"""Runs while their controller is killed at moments that nobody has chosen."""

from __future__ import annotations

import random
import time

from tests.cluster.rooms import ADMINISTRATOR, Room
from tests.cluster.scenes import ALONE, Scene, StartInRoom, play

pytest_plugins = ["tests.cluster.run_fixtures"]

HUNDRED = {"master": {}, "worker": {"count": 99}}


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
    bare_room: Room, start_in_room: StartInRoom
) -> None:
    """A hundred replicas, one of which fails before each kill: each failure is counted once."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    # When the controller dies, and what has failed by then, is up to chance alone.
    chance = random.Random(seed)
    spec = {"framework": "pytorch", "replicas": HUNDRED, "backoffLimit": 1000}
    scene = play(bare_room, "hardy", **spec)
    failures = 0
    for kill in range(20):
        start_in_room("killed", *ALONE)
        time.sleep(chance.uniform(0.0, 0.5))
        victim = f"worker-{kill}"
        if (pod := scene.live().get(victim)) and pod["status"]["phase"] == "Running":
            scene.ends(victim, 1)
            failures += 1
        time.sleep(chance.uniform(0.0, 0.5))
        bare_room.plane.stop_component("killed")
    start_in_room("last", *ALONE)
    scene.until_whole(100)
    role = scene.role("worker")
    assert failures > 0
    # One too many was counted at times under heavy load, and why is not known: if it was somebody
    # else who took a live pod away, the count is right; if nobody did, there may be none.
    taken = taken_by_others(bare_room, scene)
    assert role["disruptions"] <= len(taken), (scene.status["lastFailure"], scene.events())
    assert (role["failed"], role["restarts"]) == (failures, failures + role["disruptions"]), taken
    assert scene.role("master")["failed"] == 0
