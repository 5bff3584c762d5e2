"""`python -m tests.bench`: measure everything, and rewrite the tables of docs/benchmarks.md."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, NamedTuple

from tests.bench import (
    arena,
    creation,
    document,
    engine,
    gang_starts,
    layers,
    memory,
    nodes_decide,
    policy_memory,
    policy_tables,
    policy_writes,
    run_costs,
    run_creation,
    run_replacement,
    run_tables,
    runs_arena,
    tables,
)
from webhook.progress import Lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Effort(NamedTuple):
    """How much is measured: rounds, calls in process, blocks of creations, seconds, reviews.

    policies, nodes, writes: how many there are in the cluster, and how often one is written.
    asked: reviews before a look at the memory. pods, slow: rounds by number of pods of a run, of
    all arms and of the training operator. runs, events, failures: how many, events in a round.
    rest: seconds for which a controller at rest is watched. gangs: how many, how many have room,
    Jobs beside them, seconds until it is over.
    """

    rounds: int
    calls: int
    blocks: int
    seconds: float
    reviews: int
    policies: int
    nodes: int
    writes: int
    asked: int
    pods: Mapping[int, int]
    slow: Mapping[int, int]
    runs: int
    events: int
    failures: int
    rest: float
    gangs: tuple[int, int, int, float]


FULL = Effort(
    rounds=9, calls=1000, blocks=8, seconds=3, reviews=100_000,
    policies=1000, nodes=5000, writes=250, asked=4000,
    pods={100: 9, 1000: 5, 5000: 3}, slow={100: 5, 1000: 3, 5000: 1},
    runs=1000, events=200, failures=20, rest=30, gangs=(40, 10, 20, 180),
)  # fmt: skip
QUICK = Effort(
    rounds=2, calls=200, blocks=2, seconds=1, reviews=4_000,
    policies=100, nodes=100, writes=5, asked=400,
    pods={50: 2, 200: 2}, slow={50: 2, 200: 1},
    runs=50, events=40, failures=4, rest=3, gangs=(6, 2, 3, 40),
)  # fmt: skip

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


def _runs(effort: Effort) -> dict[str, str]:
    with runs_arena.runs_arena(_lines) as place:
        _say("creation of a run's pods")
        created = run_creation.measure(place, effort.pods, effort.slow, _say)
    return {"runs": run_tables.creation(created)}


def _run_costs(effort: Effort) -> dict[str, str]:
    with runs_arena.runs_arena(_lines) as place:
        _say("failures of pods")
        beyond = run_replacement.measure(place, effort.failures, _say)
        _say("the controller's costs")
        rounds = min(effort.rounds, 5)
        cost = run_costs.measure(place, effort.runs, rounds, effort.events, effort.rest, _say)
    return {
        "run-costs": run_tables.costs(cost),
        "run-replacement": run_tables.replacement(beyond),
    }


def _starts(effort: Effort) -> dict[str, str]:
    amounts = gang_starts.Amounts(*effort.gangs)
    rounds = min(effort.rounds, 3)
    return {"starts": gang_starts.page_of(gang_starts.measure(amounts, rounds, _lines))}


def _nodes(effort: Effort) -> dict[str, str]:
    with _lines.step("deciding beside nodes"):
        done = nodes_decide.measure(effort.nodes, effort.rounds, effort.calls // 25)
    return {"nodes": policy_tables.nodes(done)}


def _policy_writes(effort: Effort) -> dict[str, str]:
    done = policy_writes.measure(effort.policies, effort.writes, _lines, _say)
    many = policy_writes.burst(effort.policies, effort.policies // 2, _lines)
    return {"policy-writes": f"{policy_tables.writes(done)}\n\n{policy_tables.burst(many)}"}


def _policy_memory(effort: Effort) -> dict[str, str]:
    counts = (effort.policies, effort.nodes, effort.asked, effort.writes)
    return {"policy-memory": policy_tables.memory(policy_memory.measure(*counts, _lines, _say))}


TABLES = (
    "engine",
    "layers",
    "cluster",
    "memory",
    "policy-writes",
    "policy-memory",
    "nodes",
    "runs",
    "run-costs",
    "run-replacement",
    "starts",
)
_IN_ROUNDS = ("engine", "cluster", "memory", "nodes")
PARTS: dict[str, Callable[[Effort], dict[str, str]]] = {
    "engine": _engine,
    "cluster": _cluster,
    "memory": _memory,
    "policy-writes": _policy_writes,
    "policy-memory": _policy_memory,
    "nodes": _nodes,
    "runs": _runs,
    "run-costs": _run_costs,
    "starts": _starts,
}


def main() -> None:
    """Measure what the arguments say; print the tables, and write them unless it was quick."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="little of each; writes nothing")
    parser.add_argument("--only", choices=PARTS, help="one part")
    arguments = parser.parse_args()
    effort = QUICK if arguments.quick else FULL
    # Before the minutes of work, not after.
    document.check(TABLES)
    for part in [arguments.only] if arguments.only else PARTS:
        # Other tables say themselves how many rounds there were of what, or have none.
        rounds = effort.rounds if part in _IN_ROUNDS else None
        for name, text in PARTS[part](effort).items():
            text = f"{document.circumstances(rounds)}\n\n{text}"
            sys.stdout.write(f"\n## {name}\n\n{text}\n\n")
            sys.stdout.flush()
            if not arguments.quick:
                document.write(name, text)


if __name__ == "__main__":
    main()
