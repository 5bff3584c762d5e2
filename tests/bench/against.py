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
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parents[2]
_MEASURE: Final = """
import json, sys
from tests.bench import engine
rounds = engine.measure(1, int(sys.argv[1])).rounds
print(json.dumps([[*cell, found[0]] for cell, found in rounds.items()]))
"""


def in_turns(other: Path, rounds: int, script: str, argument: str) -> Iterator[dict[Path, Any]]:
    """Run the script in this checkout and the other; yield the JSON that both print, by checkout.

    The order within a round is random.
    """
    for at in range(rounds):
        found = {}
        for arm in random.sample([HERE, other], 2):
            command = [sys.executable, "-c", script, argument]
            done = subprocess.run(command, cwd=arm, capture_output=True, text=True, check=True)
            found[arm] = json.loads(done.stdout)
        print(f"round {at + 1} of {rounds}", file=sys.stderr)
        yield found


def main() -> None:
    """Print a line for each number of policies and size: this checkout's time by the other's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkout", type=Path, help="a checkout of another version")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=300)
    options = parser.parse_args()
    ratios: dict[tuple[int, int], list[float]] = {}
    for found in in_turns(options.checkout, options.rounds, _MEASURE, str(options.calls)):
        for mine, theirs in zip(found[HERE], found[options.checkout], strict=True):
            ratios.setdefault(tuple(mine[:2]), []).append(mine[2] / theirs[2])
    for (count, size), some in sorted(ratios.items()):
        spread = f"{min(some):.2f}–{max(some):.2f}"
        print(f"{count:5} policies, {size:6} bytes: {statistics.median(some):.2f} ({spread})")


if __name__ == "__main__":
    main()
