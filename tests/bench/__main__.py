"""`python -m tests.bench`: measure everything, and rewrite the tables of docs/benchmarks.md."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NamedTuple

from tests.bench import arena, creation, document, engine, layers, memory, tables
from webhook.sandbox.progress import Lines

if TYPE_CHECKING:
    from collections.abc import Callable


class Effort(NamedTuple):
    """How much is measured: rounds, calls in process, blocks of creations, seconds, reviews."""

    rounds: int
    calls: int
    blocks: int
    seconds: float
    reviews: int


FULL = Effort(rounds=9, calls=1000, blocks=8, seconds=3, reviews=100_000)
QUICK = Effort(rounds=2, calls=200, blocks=2, seconds=1, reviews=4_000)

_lines = Lines(sys.stderr)


def _say(text: str) -> None:
    _lines.note(text)


def _engine(effort: Effort) -> dict[str, str]:
    with _lines.step("the engine alone"):
        alone = engine.measure(effort.rounds, effort.calls)
    with _lines.step("layer by layer"):
        by_layer = layers.measure(effort.rounds, effort.calls)
    return {"engine": tables.engine(alone), "layers": tables.layers(by_layer)}


def _cluster(effort: Effort) -> dict[str, str]:
    with arena.arena(_lines) as place:
        _say("pod creation")
        result = creation.measure(place, effort.rounds, effort.blocks, effort.seconds, _say)
    return {"cluster": tables.creation(result)}


def _memory(effort: Effort) -> dict[str, str]:
    checkpoints = [effort.reviews * part // 20 for part in (2, 5, 10, 15, 20)]
    return {"memory": tables.memory(memory.measure(checkpoints, _lines, _say))}


PARTS: dict[str, Callable[[Effort], dict[str, str]]] = {
    "engine": _engine,
    "cluster": _cluster,
    "memory": _memory,
}


def main() -> None:
    """Measure what the arguments say; print the tables, and write them unless it was quick."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="little of each; writes nothing")
    parser.add_argument("--only", choices=PARTS, help="one part")
    arguments = parser.parse_args()
    effort = QUICK if arguments.quick else FULL
    # Before the minutes of work, not after.
    document.check(("engine", "layers", "cluster", "memory"))
    for part in [arguments.only] if arguments.only else PARTS:
        for name, text in PARTS[part](effort).items():
            text = f"{document.circumstances(effort.rounds)}\n\n{text}"
            sys.stdout.write(f"\n## {name}\n\n{text}\n\n")
            sys.stdout.flush()
            if not arguments.quick:
                document.write(name, text)


if __name__ == "__main__":
    main()
