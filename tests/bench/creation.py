"""Measures the creation of pods through the API server: one at a time, and eight at a time."""

from __future__ import annotations

import random
import statistics
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.bench import fixed_webhook
from tests.bench.arena import ARMS, FAIRLEAD, FLOOR, SIZES
from tests.bench.process import cpu_ms

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bench.arena import Arena
    from tests.bench.client import Connection

# Requests that one arm gets in a row. One alone would find the webhooks' memory pushed out of the
# caches by what the other arms do in between, as no webhook that is in use does.
BLOCK: Final = 25
AT_ONCE: Final = 8
# Turns that each arm gets in a round to be asked by eight.
SLICES: Final = 4


@dataclass
class CreationResult:
    """One figure a round.

    latency: median milliseconds by (arm, size). throughput: creations a second by arm, eight at a
    time. direct: median microseconds of a review posted straight to a webhook, by arm. cpu: by
    (who, arm) milliseconds of processor time a creation, eight at a time; who is "API server" or
    "webhook".
    """

    latency: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    throughput: dict[str, list[float]] = field(default_factory=dict)
    direct: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[tuple[str, str], list[float]] = field(default_factory=dict)


def measure(
    arena: Arena, rounds: int, blocks: int, seconds: float, say: Callable[[str], None]
) -> CreationResult:
    """In each round: `blocks` blocks an arm and size, then `seconds` of eight at a time an arm."""
    result = CreationResult()
    with arena.connect() as connection:
        # The API server takes some hundred requests to get into its stride.
        for size in SIZES:
            _latencies(arena, connection, size, blocks)
        for at in range(rounds):
            say(f"round {at + 1} of {rounds}")
            for size in SIZES:
                for arm, values in _latencies(arena, connection, size, blocks).items():
                    result.latency.setdefault((arm, size), []).append(statistics.median(values))
            _throughputs(arena, seconds, result)
            for arm in random.sample((FLOOR, FAIRLEAD), 2):
                result.direct.setdefault(arm, []).append(_direct(arena, arm, BLOCK * blocks))
    return result


def _shuffled() -> list[str]:
    return random.sample(ARMS, len(ARMS))


def _latencies(
    arena: Arena, connection: Connection, size: int, blocks: int
) -> dict[str, list[float]]:
    """Milliseconds of every creation, by arm; blocks of the arms in random order."""
    values: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for _ in range(blocks):
        for arm in _shuffled():
            request = arena.requests[arm, size]
            for _ in range(BLOCK):
                values[arm].append(_ask(connection, request, 201) * 1000)
    return values


def _direct(arena: Arena, arm: str, count: int) -> float:
    with arena.connect_directly(arm) as connection:
        for _ in range(BLOCK):
            _ask(connection, arena.review, 200)
        values = [_ask(connection, arena.review, 200) for _ in range(count)]
    return statistics.median(values) * 1e6


def _ask(connection: Connection, request: bytes, wanted: int) -> float:
    """Seconds until the answer is there."""
    began = time.perf_counter()
    connection.must(request, wanted)
    return time.perf_counter() - began


def _throughputs(arena: Arena, seconds: float, result: CreationResult) -> None:
    """Eight at a time: each arm has `seconds` in all, in slices in random order."""
    created = dict.fromkeys(ARMS, 0)
    took = dict.fromkeys(ARMS, 0.0)
    used: dict[tuple[str, str], float] = {}
    for _ in range(SLICES):
        for arm in _shuffled():
            one = _eight_at_a_time(arena, arm, seconds / SLICES)
            created[arm] += one.created
            took[arm] += one.seconds
            for who, spent in one.cpu.items():
                used[who, arm] = used.get((who, arm), 0) + spent
    for arm in ARMS:
        result.throughput.setdefault(arm, []).append(created[arm] / took[arm])
    for (who, arm), spent in used.items():
        result.cpu.setdefault((who, arm), []).append(spent / created[arm])


class _Slice(NamedTuple):
    """What was created in how many seconds, and the milliseconds of processor time of each."""

    created: int
    seconds: float
    cpu: dict[str, float]


def _eight_at_a_time(arena: Arena, arm: str, seconds: float) -> _Slice:
    request = arena.requests[arm, SIZES[0]]
    pids = arena.plane.pids
    watched = {"API server": pids["kube-apiserver"]}
    if arm in (FLOOR, FAIRLEAD):
        watched["webhook"] = pids[fixed_webhook.NAME if arm == FLOOR else arena.webhook.name]
    counts: list[int] = []
    start = threading.Barrier(AT_ONCE + 1)
    over = threading.Event()

    def ask_on() -> None:
        with arena.connect() as connection:
            _ask(connection, request, 201)
            start.wait(timeout=60)
            count = 0
            while not over.is_set():
                _ask(connection, request, 201)
                count += 1
            counts.append(count)

    threads = [threading.Thread(target=ask_on) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    start.wait(timeout=60)
    before = {who: cpu_ms(pid) for who, pid in watched.items()}
    began = time.perf_counter()
    time.sleep(seconds)
    over.set()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - began
    if len(counts) < AT_ONCE:
        raise RuntimeError("a client gave up; its error is above")
    used = {who: cpu_ms(pid) - before[who] for who, pid in watched.items()}
    return _Slice(sum(counts), took, used)
