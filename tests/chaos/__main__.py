"""`python -m tests.chaos`: play what goes wrong, and write docs/reliability.md."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from pathlib import Path

from tests.chaos import isolation, play, tables, upgraded
from tests.chaos.results import Results
from tests.chaos.scenarios import BESIDE, SCENARIOS
from tests.chaos.stage import Scenario
from webhook.errors import SandboxError
from webhook.progress import Lines
from webhook.sandbox.binaries import ALL, obtain_binaries
from webhook.sandbox.cache_folder import cache_directory, locked

_lines = Lines(sys.stderr)


def main() -> None:
    """Play the scenarios, in a network namespace of their own; exit code 1 if a rule is broken."""
    arguments = _parser().parse_args()
    if unknown := sorted(set(arguments.scenarios) - set(SCENARIOS) - set(BESIDE)):
        sys.exit(f"no scenario {', '.join(unknown)}: want some of {', '.join(SCENARIOS)}")
    try:
        if arguments.outside is None:
            # Before the namespace, which has no way to where modules are downloaded from.
            obtain_binaries(ALL, _lines)
            if upgraded.SCENARIO in _chosen(arguments):
                upgraded.earlier(_lines)
            inside = isolation.command(sys.argv[1:])
            os.execvp(inside[0], inside)  # noqa: S606  (no shell is wanted)
        isolation.furnish(arguments.outside)
        broken = _short(arguments) if arguments.short else _long(arguments)
    except (SandboxError, ValueError) as error:
        sys.exit(str(error))
    if broken:
        sys.exit("\n".join(broken))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos",
        description=__doc__,
        epilog="\n".join(f"{each.name:12}{each.does}" for each in SCENARIOS.values()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="all by default")
    parser.add_argument("--seed", type=int, help="what chance begins with; printed")
    parser.add_argument("--resume", action="store_true", help="go on where the last run ended")
    parser.add_argument("--parts", type=int, help="only so many parts of each long form")
    parser.add_argument("--short", action="store_true", help="short forms; JSON, no document")
    parser.add_argument("--results", type=Path, metavar="DIR", help="default: in the cache")
    parser.add_argument(isolation.OUTSIDE, help=argparse.SUPPRESS)
    return parser


def _short(arguments: argparse.Namespace) -> list[str]:
    seed = _seed(arguments.seed)
    broken: list[str] = []
    for scenario in _chosen(arguments):
        where = _directory(arguments) / f"short-{scenario.name}"
        tally = play.play_short(scenario, obtain_binaries(ALL, _lines), where, seed, _lines.note)
        found = scenario.broken(tally)
        shown = {"scenario": scenario.name, "seed": seed, **tally.as_json(), "broken": found}
        sys.stdout.write(json.dumps(shown) + "\n")
        sys.stdout.flush()
        broken += [f"{scenario.name}: {each}" for each in found]
    return broken


def _long(arguments: argparse.Namespace) -> list[str]:
    directory = _directory(arguments)
    tables.check(SCENARIOS)
    with locked(directory / "lock"):
        results = Results.resumed(directory, arguments.seed) if arguments.resume else None
        if results is None:
            results = Results(directory, _seed(arguments.seed))
        _lines.note(f"seed {results.seed}")
        broken: list[str] = []
        for scenario in _chosen(arguments):
            binaries = obtain_binaries(ALL, _lines)
            played = play.play_long(
                scenario, binaries, directory, results, arguments.parts, _lines.note
            )
            text = tables.table(scenario, played, results.seed)
            sys.stdout.write(f"\n## {scenario.name}\n\n{text}\n")
            sys.stdout.flush()
            tables.write(scenario.name, text)
            broken += [f"{scenario.name}: {each}" for each in scenario.broken(played.tally)]
    return broken


def _chosen(arguments: argparse.Namespace) -> list[Scenario]:
    known = {**SCENARIOS, **BESIDE}
    return [known[name] for name in arguments.scenarios or SCENARIOS]


def _directory(arguments: argparse.Namespace) -> Path:
    found: Path = arguments.results or cache_directory(os.environ) / "chaos"
    return found.absolute()


def _seed(given: int | None) -> int:
    seed = random.randrange(2**32) if given is None else given
    _lines.note(f"seed {seed}")
    return seed


if __name__ == "__main__":
    main()
