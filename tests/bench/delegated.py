"""`python -m tests.bench.delegated`: Runs that the training operator carries out, in figures.

Seconds until the last pod of a PyTorchJob is created through the webhook, for a native Run, a
delegated one and the operator's object alone, in turns in random order, with the operator running
beside all of them. Then the controller's memory with many Runs, and which kinds of the operator it
watches. Prints Markdown; the figures of a machine that does something else are no figures.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPSConnection
from typing import Final

from tests.bench import gangs, run_creation, training_operator
from tests.bench.arena import administrator
from tests.bench.gangs import DELEGATED, TITLES
from tests.bench.process import resident_mib
from tests.bench.runs_arena import CONTROLLER, RunsArena, runs_arena, until
from tests.bench.spread import spread
from webhook.progress import Lines
from webhook.run.backends.engines import ENGINES

ARMS: Final = (gangs.RUN, DELEGATED, gangs.PYTORCH_JOB)
_LABEL: Final = "many"
_WATCHES: Final = re.compile(
    r'^apiserver_longrunning_requests\{[^}]*resource="(?P<kind>[a-z]+)"[^}]*verb="WATCH"[^}]*\} '
    r"(?P<count>\d+)",
    re.MULTILINE,
)


def creation(arena: RunsArena, count: int, rounds: int) -> Iterator[str]:
    """The table of seconds until the last pod, and of the controller's processor time."""
    times = {count: rounds}
    found = run_creation.measure(arena, times, times, say, ARMS, warm=4, beside=True)
    yield f"| {count} pods, {rounds} rounds | last pod, s | controller, ms a pod |"
    yield "|---|---|---|"
    for arm in ARMS:
        spent = statistics.median(found.cpu[CONTROLLER, arm, count])
        yield f"| {TITLES[arm]} | {spread(found.last[arm, count]).text(2)} | {spent:.2f} |"


def memory(arena: RunsArena, runs: int) -> Iterator[str]:
    """The table of the controller's memory with so many Runs of one pod each."""
    yield f"| controller | MiB with no Run | MiB with {runs} Runs of one pod | KiB a Run |"
    yield "|---|---|---|---|"
    for arm in (gangs.RUN, DELEGATED):
        arena.restart_controller()
        arena.settle()
        before = resident_mib(arena.plane.pids[CONTROLLER])
        each = [f"{arm}-many-{number}" for number in range(runs)]
        arena.create_runs([gangs.manifest(arm, name, 1, _LABEL) for name in each], _LABEL, runs)
        arena.settle()
        after = resident_mib(arena.plane.pids[CONTROLLER])
        arena.clear_runs(each, _LABEL)
        cost = (after - before) * 1024 / runs
        yield f"| {TITLES[arm]} | {before:.1f} | {after:.1f} | {cost:.1f} |"


def watches(arena: RunsArena) -> list[str]:
    """The operator's kinds that somebody watches now, by the API server's metrics."""
    kinds = {engine.resource for engine in ENGINES.values()}
    port = arena.plane.layout.ports["kube-apiserver"]
    connection = HTTPSConnection("127.0.0.1", port, context=administrator(arena.plane))
    with closing(connection):
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    counts = {one["kind"]: int(one["count"]) for one in _WATCHES.finditer(text)}
    return sorted(kind for kind in kinds if counts.get(kind))


def informers(arena: RunsArena) -> Iterator[str]:
    """What the controller watches without, with and after a delegated Run; no operator runs."""
    arena.restart_controller()
    yield "| | kinds of the operator that are watched |"
    yield "|---|---|"
    yield f"| no delegated Run | {', '.join(watches(arena)) or 'none'} |"
    api = arena.plane.api
    path = gangs.collection(gangs.RUN)
    api.create(path, gangs.manifest(DELEGATED, "only", 1))
    until("a kind to be watched", lambda: bool(watches(arena)))
    yield f"| one of PyTorch | {', '.join(watches(arena))} |"
    api.call("DELETE", f"{path}/only", {"propagationPolicy": "Background"})
    until("no kind to be watched", lambda: not watches(arena))
    yield f"| after its deletion | {', '.join(watches(arena)) or 'none'} |"


def say(line: str) -> None:
    """Report progress."""
    print(line, file=sys.stderr)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    with runs_arena(Lines(sys.stderr)) as arena:
        tables = ["\n".join(informers(arena))]
        with training_operator.running(arena.plane, arena.operator):
            tables.append("\n".join(creation(arena, options.pods, options.rounds)))
            tables.append("\n".join(memory(arena, options.runs)))
    print("\n\n".join(tables))


if __name__ == "__main__":
    main()
