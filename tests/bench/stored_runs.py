"""`python -m tests.bench.stored_runs CHECKOUT`: the memory that one tenant's Runs take.

The controllers of this checkout and of another lead in turns, each beside an API server of its own.
Runs are suspended, and half of them are over then; those that are too large fail at once. Another
process of the controller starts beside them, and they are deleted. Prints Markdown.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from tests.bench import gangs
from tests.bench.arena import AGENT, to_api_server
from tests.bench.client import ask_all, patch, post
from tests.bench.document import circumstances
from tests.bench.mass_outage import HERE, Controller, arena
from tests.bench.process import highest_mib, resident_mib
from tests.bench.runs_arena import until
from tests.bench.spread import ratio, spread
from tests.objects import an_object
from webhook import metric_names, names
from webhook.controller.controller_process import return_freed_memory
from webhook.controller.observed_state import ObservedState
from webhook.controller.stored_run import RunCache
from webhook.run.plan import plan
from webhook.sandbox.control_plane import ControlPlane

# How many Runs by their bytes: a small one, almost what the controller takes, and what the API
# server takes, which needs five gigabytes for a hundred of the last.
SIZES: Final = {1_000: 290, 200_000: 290, 1_200_000: 100}
_PATH: Final = gangs.collection(gangs.RUN)
_PLAY: Final = "from tests.bench.stored_runs import play; play(*{})"


class Resident(NamedTuple):
    """MiB resident before the Runs, with them, and after they are deleted.

    restarted, highest: of a process that starts when they are there, and the most while it starts.
    """

    before: float
    held: float
    after: float
    restarted: float = 0.0
    highest: float = 0.0


_ROWS: Final = {
    "held": "with the Runs",
    "restarted": "after a restart beside them",
    "highest": "the most during that start",
    "after": "after their deletion",
}


def a_run(number: int, size: int, *, suspend: bool = True) -> dict[str, Any]:
    """A suspended Run of about so many bytes, nothing of which is twice there."""
    texts = random.Random(number)
    many = {f"example.dev/{at}": texts.randbytes(40).hex() for at in range(size // 100)}
    container = {"name": "main", "image": "example.invalid/none"}
    template = {"metadata": {"annotations": many}, "spec": {"containers": [container]}}
    replicas: dict[str, Any] = {"worker": {}}
    spec = {"suspend": suspend, "framework": "jax", "replicas": replicas, "template": template}
    return an_object(names.API_VERSION, names.RUN_KIND, f"r{number}", spec)


def measure(size: int, runs: int, phase: str) -> Resident:
    """Have a process cache so many Runs in this phase, and drop them, without an API server."""
    command = [sys.executable, "-c", _PLAY.format((size, runs, phase))]
    done = subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True)
    return Resident(*json.loads(done.stdout))


def play(size: int, runs: int, phase: str) -> None:
    """Do what `measure` measures, and print it as JSON."""
    return_freed_memory()
    known, readings = ObservedState(), RunCache(plan)

    def body(number: int, version: int, **status: Any) -> dict[str, Any]:
        raw = a_run(number, size, suspend=phase == "Suspended")
        metadata = {"name": f"r{number}", "namespace": "lab", "uid": f"r{number}"}
        raw |= {"metadata": {**metadata, "resourceVersion": str(version)}, **status}
        return dict(orjson.loads(orjson.dumps(raw)))

    def hears(number: int, version: int, **status: Any) -> None:
        key, kept = known.runs.entry(body(number, version, **status))
        known.runs.put(key, kept, str(version))
        if kept:
            readings.read(kept)

    def resident() -> float:
        gc.collect()
        return resident_mib(os.getpid())

    known.runs.replace({}, "1")
    hears(0, 2)
    known.runs.remove(body(0, 3), "3")
    found = [resident()]
    for number in range(runs):
        hears(number, 10 + 2 * number)
        hears(number, 11 + 2 * number, status={"phase": phase})
    found.append(resident())
    for number in range(runs):
        version = 10_000 + number
        known.runs.remove(body(number, version), str(version))
    found.append(resident())
    sys.stdout.write(json.dumps(found))


def measure_live(checkout: Path, size: int, runs: int) -> Resident:
    """Have a controller of the checkout live through it, beside a new API server."""
    with arena() as plane:
        connect = partial(to_api_server, plane)
        controller = Controller(plane, checkout)
        controller.wait()
        _create(plane, controller, range(1), size)
        _delete(plane, controller)
        before = resident_mib(controller.process.pid)
        _create(plane, controller, range(1, runs + 1), size)
        if _count(controller, "Suspended"):
            body = orjson.dumps({"status": {"phase": "Succeeded"}})
            half = range(1, runs // 2 + 1)
            ask_all(connect, [patch(f"{_PATH}/r{at}/status", body, AGENT) for at in half])
            until("half of them are over", lambda: _count(controller, "Succeeded") == len(half))
        controller.wait()
        held = resident_mib(controller.process.pid)
        controller.stop()
        controller = Controller(plane, checkout)
        controller.wait()
        pid = controller.process.pid
        restarted, highest = resident_mib(pid), highest_mib(pid)
        _delete(plane, controller)
        after = resident_mib(pid)
        controller.stop()
    found = Resident(before, held, after, restarted, highest)
    print(f"{checkout.name}, {size} bytes: {found}", file=sys.stderr, flush=True)
    return found


def _create(plane: ControlPlane, controller: Controller, numbers: range, size: int) -> None:
    # A few at a time: their texts would be half a gigabyte here, too.
    for first in numbers[::20]:
        some = range(first, min(first + 20, numbers.stop))
        bodies = [orjson.dumps(a_run(number, size)) for number in some]
        requests = [post(_PATH, body, AGENT) for body in bodies]
        ask_all(partial(to_api_server, plane), requests, wanted=201)
    rest = ("Suspended", "Failed")
    there = len(numbers)
    until("them to rest", lambda: sum(_count(controller, each) for each in rest) == there)


def _delete(plane: ControlPlane, controller: Controller) -> None:
    def gone() -> bool:
        # The answer has all that it deletes.
        plane.api.call("DELETE", f"{_PATH}?limit=20", {"propagationPolicy": "Background"})
        return _count(controller) == 0

    until("them to be gone", gone)
    controller.wait()


def _count(controller: Controller, phase: str = "") -> float:
    """How many Runs the controller knows in this phase, or in any."""
    url = f"http://127.0.0.1:{controller.port}/metrics"
    with urllib.request.urlopen(url, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    wanted = f'{metric_names.RUNS}{{phase="{phase}'
    return sum(float(each.rpartition(" ")[2]) for each in lines if each.startswith(wanted))


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of another version")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    arms = {"this": HERE, "other": options.checkout}
    print(circumstances(options.rounds), "\n", sep="")
    for size, runs in SIZES.items():
        rounds: list[dict[str, Resident]] = []
        for _ in range(options.rounds):
            order = random.sample(sorted(arms), len(arms))
            rounds.append({arm: measure_live(arms[arm], size, runs) for arm in order})
        print(f"{runs} Runs of {size} bytes:\n\n{table(rounds)}\n", flush=True)


def table(rounds: Sequence[dict[str, Resident]]) -> str:
    """A line for each figure: what the process grew by, and the ratio to the other checkout's."""
    lines = ["| growth of the controller, MiB | other | this | ratio |", "|---|---|---|---|"]
    for field, title in _ROWS.items():
        by_arm = {
            arm: [getattr(each[arm], field) - each[arm].before for each in rounds]
            for arm in ("other", "this")
        }
        cells = [spread(figures).text(0) for figures in by_arm.values()]
        cells.append(ratio(by_arm["this"], by_arm["other"]).text(2))
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
