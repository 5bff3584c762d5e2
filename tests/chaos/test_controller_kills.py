"""Runs while their controller is killed at moments that nobody has chosen."""

from __future__ import annotations

import random
import time

from tests.cluster.live_runs import ALONE, LiveRun, StartInSpace, create_run
from tests.cluster.spaces import ADMINISTRATOR, Space

pytest_plugins = ["tests.cluster.run_fixtures"]

HUNDRED = {"master": {}, "worker": {"count": 99}}


def taken_by_others(space: Space, live: LiveRun) -> list[str]:
    """The run's pods that somebody else has deleted, by the API server's audit log."""
    return [
        event["objectRef"]["name"]
        for event in space.plane.audit_events(space.name)
        if event["verb"] == "delete"
        and event["objectRef"].get("name", "").startswith(f"{live.name}-")
        and event["user"]["username"] != ADMINISTRATOR
        and event["responseStatus"]["code"] == 200
    ]


def test_killed_at_twenty_random_moments_it_loses_and_doubles_nothing(
    bare_space: Space, start_in_space: StartInSpace
) -> None:
    """A hundred replicas, one of which fails before each kill: each failure is counted once."""
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    # When the controller dies, and what has failed by then, is up to chance alone.
    chance = random.Random(seed)
    spec = {"framework": "pytorch", "replicas": HUNDRED, "backoffLimit": 1000}
    live = create_run(bare_space, "hardy", **spec)
    failures = 0
    for kill in range(20):
        start_in_space("killed", *ALONE)
        time.sleep(chance.uniform(0.0, 0.5))
        victim = f"worker-{kill}"
        if (pod := live.live().get(victim)) and pod["status"]["phase"] == "Running":
            live.ends(victim, 1)
            failures += 1
        time.sleep(chance.uniform(0.0, 0.5))
        bare_space.plane.stop_component("killed")
    start_in_space("last", *ALONE)
    live.until_whole(100)
    role = live.role("worker")
    assert failures > 0
    # One too many was counted at times under heavy load, and why is not known: if it was somebody
    # else who took a live pod away, the count is right; if nobody did, there may be none.
    taken = taken_by_others(bare_space, live)
    assert role["disruptions"] <= len(taken), (live.status["lastFailure"], live.events())
    assert (role["failed"], role["restarts"]) == (failures, failures + role["disruptions"]), taken
    assert live.role("master")["failed"] == 0
