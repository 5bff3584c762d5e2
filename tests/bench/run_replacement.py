"""Measures the time from a pod's failure to its replacement's creation."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from tests.bench import gangs, kubelet
from tests.bench.pod_watch import PodWatch
from tests.bench.reviews import NAMESPACE
from tests.bench.runs_arena import RunsArena
from webhook.backoff import RESTART_DELAYS

_LABEL: Final = "replaced"
# Seconds between two failures, so that each finds the controller at rest.
_BETWEEN: Final = 0.4


def measure(arena: RunsArena, count: int, say: Callable[[str], None]) -> list[float]:
    """Milliseconds beyond the backoff, of one pod in each of `count` runs.

    From the moment before the API server is told of the failure to that in which the watch has the
    new pod.
    """
    runs = [f"replaced-{number}" for number in range(count)]
    failed: dict[str, float] = {}
    with arena.connect() as connection:
        arena.create_runs([gangs.run(run, {"master": 1}, _LABEL) for run in runs], _LABEL, count)
        kubelet.say_to_all(arena.connect, [f"{run}-master-0" for run in runs], kubelet.running())
        arena.until_all(runs, "Running")
        arena.settle()
        with PodWatch(arena.plane, NAMESPACE, f"{gangs.LABEL}={_LABEL}") as watch:
            for run in runs:
                pod = f"{run}-master-0"
                failed[pod] = time.perf_counter()
                kubelet.say(connection, pod, kubelet.ended(1))
                time.sleep(_BETWEEN)
            created = {one.name: one.at for one in watch.created(count)}
    beyond = [(created[pod] - failed[pod] - RESTART_DELAYS.first) * 1000 for pod in failed]
    say(f"ms beyond the backoff: {sorted(round(one) for one in beyond)}")
    arena.clear_runs(runs, _LABEL)
    return beyond
