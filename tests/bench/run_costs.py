"""Measures what the controller costs: its memory, its time at rest, and its time for one event."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.bench import gangs, kubelet
from tests.bench.process import cpu_ms, resident_mib
from tests.bench.runs_arena import CONTROLLER, RunsArena

EMPTY: Final = "no runs"
LIVE: Final = "live pods"
FINISHED: Final = "finished runs, begun anew"
FEW: Final = 10
PODS_A_RUN: Final = 5
_ROLES: Final = {"master": 1, "worker": PODS_A_RUN - 1}
# Seconds between two events: slow enough that each is looked at by itself.
_BETWEEN: Final = 0.025
_LABEL: Final = "cost"


@dataclass
class RunCostsResult:
    """What was measured of the controller's process.

    resident: MiB, and idle: milliseconds of processor time a second at rest, both by what there
    was: EMPTY, LIVE, FINISHED. event: milliseconds of processor time for one pod's event, a figure
    a round, by the number of runs beside which it came.
    """

    runs: int
    resident: dict[str, float] = field(default_factory=dict)
    idle: dict[str, float] = field(default_factory=dict)
    event: dict[int, list[float]] = field(default_factory=dict)


def measure(
    arena: RunsArena,
    runs: int,
    rounds: int,
    events: int,
    seconds: float,
    say: Callable[[str], None],
) -> RunCostsResult:
    """With no run, with FEW, with `runs` of five live pods each, and when all of them are over.

    `events` come in each of `rounds`; rest is watched for `seconds`.
    """
    result = RunCostsResult(runs)
    arena.restart_controller()
    _rest(arena, EMPTY, seconds, result)
    gang = [f"cost-{number}" for number in range(runs)]
    for some in (gang[:FEW], gang[FEW:]):
        if some:
            manifests = [gangs.run(name, _ROLES, _LABEL) for name in some]
            arena.create_runs(manifests, _LABEL, len(some) * PODS_A_RUN)
            kubelet.say_to_all(arena.connect, _pods(some), kubelet.running())
            arena.until_all(some, "Running")
            arena.settle()
            count = FEW if some[0] == gang[0] else runs
            _events(arena, gang[:FEW], rounds, events, result.event.setdefault(count, []))
            say(f"{count} runs: CPU ms an event {result.event[count]}")
    _rest(arena, LIVE, seconds, result)
    # The masters last: with them the run ends, and workers that still run go.
    everyone = sorted(_pods(gang), key=lambda pod: "-master-" in pod)
    for part in (everyone[: -len(gang)], everyone[-len(gang) :]):
        kubelet.say_to_all(arena.connect, part, kubelet.ended(0))
    arena.until_all(gang, "Succeeded")
    # One that starts again lists what is there, and has no memory of what was.
    arena.restart_controller()
    _rest(arena, FINISHED, seconds, result)
    say(f"MiB resident: {result.resident}; CPU ms a second at rest: {result.idle}")
    arena.clear_runs(gang, _LABEL)
    return result


def _pods(runs: Iterable[str]) -> list[str]:
    return [
        f"{run}-{role}"
        for run in runs
        for role in ("master-0", *(f"worker-{index}" for index in range(PODS_A_RUN - 1)))
    ]


def _rest(arena: RunsArena, what: str, seconds: float, result: RunCostsResult) -> None:
    arena.settle()
    pid = arena.plane.pids[CONTROLLER]
    before = cpu_ms(pid)
    time.sleep(seconds)
    result.idle[what] = (cpu_ms(pid) - before) / seconds
    result.resident[what] = resident_mib(pid)


def _events(
    arena: RunsArena, runs: Sequence[str], rounds: int, events: int, figures: list[float]
) -> None:
    """Events of these runs' pods, one after the other: each becomes ready, or is so no more."""
    pid = arena.plane.pids[CONTROLLER]
    pods = _pods(runs)
    states = itertools.cycle([kubelet.running(ready=False), kubelet.running()])
    turns = itertools.cycle((pod, state) for state in itertools.islice(states, 2) for pod in pods)
    with arena.connect() as connection:
        for _ in range(rounds):
            before = cpu_ms(pid)
            for pod, state in itertools.islice(turns, events):
                kubelet.say(connection, pod, state)
                time.sleep(_BETWEEN)
            arena.settle()
            figures.append((cpu_ms(pid) - before) / events)
