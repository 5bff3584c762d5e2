"""`python -m tests.bench.planned_creations CHECKOUT`: what it costs to create a run's pods.

The reconciler of this checkout beside that of another one, in turns: processor time and requests
from a new Run until its status says that all of its pods are there, and then until one of them is
replaced. The API server answers at once, so each request more is counted and not waited for.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Final

from tests.bench.against import HERE, in_turns

_MEASURE: Final = """
import asyncio, importlib.util, json, sys, time
from datetime import timedelta
from importlib import import_module
from tests.controller.test_reconciler import Stage

# Where it is in this checkout, or was in an earlier one.
room = "steps" if importlib.util.find_spec("webhook.run.steps") else "reconcile"
# No request opens the Service: nobody would answer it here.
import_module(f"webhook.run.{room}").LARGE = 10**6
count = int(sys.argv[1])

def work(stage):
    for _ in range(200):
        before = len(stage.api.calls)
        if asyncio.run(stage.reconciler.reconcile_key("lab/mnist")) != 0 and (
            len(stage.api.calls) == before
        ):
            return
        stage.moment += timedelta(seconds=0.01)

def measure():
    stage = Stage(replicas={"worker": {"count": count}})
    found = []
    for lost in (None, "lab/mnist-worker-0"):
        if lost:
            stage.known.pods.put(lost, None)
        calls, began = len(stage.api.calls), time.process_time()
        work(stage)
        if lost:
            stage.moment += timedelta(seconds=30)
            work(stage)
        spent = time.process_time() - began
        assert stage.status["replicas"]["worker"]["active"] == count
        done = [verb for verb, _ in stage.api.calls[calls:]]
        found.append([spent, done.count("replace"), len(done)])
    return found

measure()
print(json.dumps(measure()))
"""


def main() -> None:
    """Print this checkout's figures by the other's: time as a ratio within each round."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of another version")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--pods", type=int, default=300)
    options = parser.parse_args()
    rounds = list(in_turns(options.checkout, options.rounds, _MEASURE, str(options.pods)))
    for step, what in enumerate((f"{options.pods} pods are created", "one of them is replaced")):
        mine, theirs = ([each[arm][step] for each in rounds] for arm in (HERE, options.checkout))
        ratios = [one[0] / other[0] for one, other in zip(mine, theirs, strict=True)]
        ms = [statistics.median(each[0] for each in some) * 1000 for some in (mine, theirs)]
        print(
            f"{what}: {ms[0]:.1f} ms and {ms[1]:.1f} ms, "
            f"ratio {statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f}); "
            f"status writes {mine[0][1]} and {theirs[0][1]}, requests {mine[0][2]} and "
            f"{theirs[0][2]}"
        )


if __name__ == "__main__":
    main()
