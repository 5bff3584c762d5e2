"""Measures how long a Run, an Indexed Job and a PyTorchJob take until their last pod is created."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import orjson

from tests.bench import training_operator
from tests.bench.arena import AGENT
from tests.bench.client import post
from tests.bench.gangs import ARMS, LABEL, PYTORCH_JOB, RUN, collection, manifest
from tests.bench.pod_watch import PodWatch
from tests.bench.process import cpu_ms, resident_mib
from tests.bench.reviews import NAMESPACE
from tests.bench.runs_arena import CONTROLLER, RunsArena

_WARM: Final = 100


@dataclass
class RunCreationResult:
    """One figure a round, by arm and number of pods.

    last: seconds from the object's creation to that of its last pod. first: to the first one.
    cpu: milliseconds of processor time a pod, of the process named first. resident: MiB of
    Fairlead's controller with so many pods, just created.
    """

    last: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    first: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    cpu: dict[tuple[str, str, int], list[float]] = field(default_factory=dict)
    resident: dict[int, list[float]] = field(default_factory=dict)


def measure(
    arena: RunsArena,
    rounds: Mapping[int, int],
    slow: Mapping[int, int],
    say: Callable[[str], None],
    arms: Sequence[str] = ARMS,
    *,
    warm: int = _WARM,
    beside: bool = False,
) -> RunCreationResult:
    """Each arm once in each round, in random order; `rounds` are how many, by number of pods.

    In the first `slow` of them the PyTorchJob is there too: it takes minutes, and always the same.
    `beside`: the training operator runs already, beside all arms.
    """
    result = RunCreationResult()
    # Connections open, caches fill.
    for arm in arms:
        _one(arena, arm, f"warm-{arm}", warm, beside)
    for count, times in rounds.items():
        for at in range(times):
            now = [arm for arm in arms if arm != PYTORCH_JOB or at < slow[count]]
            for arm in random.sample(now, len(now)):
                one = _one(arena, arm, f"{arm}-{count}-{at}", count, beside)
                result.first.setdefault((arm, count), []).append(one.first)
                result.last.setdefault((arm, count), []).append(one.last)
                for who, spent in one.cpu.items():
                    result.cpu.setdefault((who, arm, count), []).append(spent)
                if arm == RUN:
                    result.resident.setdefault(count, []).append(one.resident)
                say(f"{count} pods, {arm}: {one.text()}")
    return result


class _One(NamedTuple):
    """Seconds to the first pod and to the last; milliseconds of processor time a pod, by process.

    resident: MiB of Fairlead's controller.
    """

    first: float
    last: float
    cpu: dict[str, float]
    resident: float

    def text(self) -> str:
        spent = ", ".join(f"{who} {ms:.2f}" for who, ms in self.cpu.items())
        return f"first after {self.first:.2f} s, last after {self.last:.2f} s; CPU ms a pod {spent}"


def _one(arena: RunsArena, arm: str, name: str, count: int, beside: bool) -> _One:
    """Create the object, wait for its pods, and clear all of it away."""
    plane = arena.plane
    with ExitStack() as stack:
        if arm == PYTORCH_JOB and not beside:
            # Only now: it watches every pod that there is, those of the other arms too.
            stack.enter_context(training_operator.running(plane, arena.operator))
        arena.settle()
        watched = plane.pids
        request = post(collection(arm), orjson.dumps(manifest(arm, name, count)), AGENT)
        watch = stack.enter_context(PodWatch(plane, NAMESPACE, f"{LABEL}={name}"))
        connection = stack.enter_context(arena.connect())
        before = {who: cpu_ms(pid) for who, pid in watched.items()}
        began = time.perf_counter()
        connection.must(request, 201)
        times = [one.at - began for one in watch.created(count)]
        cpu = {who: (cpu_ms(pid) - before[who]) / count for who, pid in watched.items()}
        resident = resident_mib(watched[CONTROLLER])
        arena.clear(arm, name)
    return _One(times[0], times[-1], cpu, resident)
