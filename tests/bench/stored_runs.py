"""Measures the memory that the Runs of one tenant take of a controller, and give back.

`python -m tests.bench.stored_runs [CHECKOUT]` compares this checkout with another one, such as of
main: MiB before 290 suspended Runs, with them, and after they are deleted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parents[2]
# Bytes of each Run: what the API server takes at most, and what the controller keeps at most.
SIZES: Final = (1_200_000, 250_000)
RUNS: Final = 290

_SCRIPT: Final = """
import gc, json, random, sys
sys.path.insert(0, sys.argv[1])
import orjson
from webhook.controller import controller_process
from webhook.controller.observed_state import ObservedState
from webhook.controller.stored_run import RunCache
from webhook.run.plan import plan

size, count = map(int, sys.argv[2:])
getattr(controller_process, "return_freed_memory", lambda: None)()

def resident():
    gc.collect()
    lines = open("/proc/self/status")
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024

def body(number, version, **status):
    texts = random.Random(number)
    many = {f"example.dev/{at}": texts.randbytes(40).hex() for at in range(size // 100)}
    container = {"name": "main", "image": "example.invalid/none"}
    template = {"metadata": {"annotations": many}, "spec": {"containers": [container]}}
    name = f"r{number}"
    metadata = {"name": name, "namespace": "lab", "uid": name, "resourceVersion": str(version)}
    spec = {"suspend": True, "framework": "jax", "replicas": {"worker": {}}, "template": template}
    return orjson.dumps({"metadata": metadata, "spec": spec, **status})

def hears(number, version, **status):
    raw = orjson.loads(body(number, version, **status))
    known.runs.put(f"lab/r{number}", known.runs.keep(raw), str(version))
    readings.read(known.runs.get(f"lab/r{number}"))

known, readings = ObservedState(), RunCache(plan)
known.runs.replace({}, "1")
hears(0, 2)
known.runs.remove(orjson.loads(body(0, 3)), "3")
found = [resident()]
for number in range(count):
    hears(number, 10 + 2 * number)
    hears(number, 11 + 2 * number, status={"phase": "Suspended"})
found.append(resident())
for number in range(count):
    version = 10_000 + number
    known.runs.remove(orjson.loads(body(number, version)), str(version))
found.append(resident())
print(json.dumps(found))
"""


class Resident(NamedTuple):
    """MiB resident before the Runs, with them, and after they are deleted."""

    before: float
    held: float
    after: float


def measure(checkout: Path, size: int, runs: int = RUNS) -> Resident:
    """Have a process of the checkout cache so many suspended Runs of this size, and drop them."""
    command = [sys.executable, "-c", _SCRIPT, str(checkout), str(size), str(runs)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Resident(*json.loads(done.stdout))


def main(checkouts: list[Path]) -> None:
    """Print a line for each size and checkout, with the ratio to the last one."""
    for size in SIZES:
        results = {checkout: measure(checkout, size) for checkout in checkouts}
        last = [*results.values()][-1]
        for checkout, found in results.items():
            more, left = found.held - found.before, found.after - found.before
            ratios = more / (last.held - last.before), left / (last.held - last.before)
            print(
                f"{RUNS} Runs of {size} bytes, {checkout.name}: {found.before:.0f} MiB, then "
                f"{found.held:.0f}, after their deletion {found.after:.0f} "
                f"(growth {ratios[0]:.2f}, left {ratios[1]:.2f} of {checkouts[-1].name}'s growth)"
            )


if __name__ == "__main__":
    main([HERE, *map(Path, sys.argv[1:])])
