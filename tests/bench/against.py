"""`python -m tests.bench.against CHECKOUT`: the engine of another checkout beside this one's.

Both measure in processes of their own, round after round in turns, each first as often as the
other. A ratio is taken within each round.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).parents[2]
_MEASURE: Final = """
import json, sys
from tests.bench import engine
rounds = engine.measure(1, int(sys.argv[1])).rounds
print(json.dumps([[*cell, found[0]] for cell, found in rounds.items()]))
"""
Cell = tuple[int, int]


def measured(checkout: Path, calls: int) -> dict[Cell, float]:
    """Microseconds a review, by number of policies and size of the pod."""
    command = [sys.executable, "-c", _MEASURE, str(calls)]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    return {(count, size): figure for count, size, figure in json.loads(done.stdout)}


def main() -> None:
    """Print a line for each number of policies and size: this checkout's time by the other's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of another version")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=300)
    options = parser.parse_args()
    ratios: dict[Cell, list[float]] = {}
    for at in range(options.rounds):
        arms = [_HERE, options.checkout]
        found = {arm: measured(arm, options.calls) for arm in random.sample(arms, 2)}
        for cell, figure in found[_HERE].items():
            ratios.setdefault(cell, []).append(figure / found[options.checkout][cell])
        print(f"round {at + 1} of {options.rounds}", file=sys.stderr)
    for (count, size), some in sorted(ratios.items()):
        spread = f"{min(some):.2f}–{max(some):.2f}"
        print(f"{count:5} policies, {size:6} bytes: {statistics.median(some):.2f} ({spread})")


if __name__ == "__main__":
    main()
