"""Plays scenarios part by part, and keeps what was counted after each."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.chaos.results import Played, Results
from tests.chaos.stage import LONG, SHORT, Scenario, Stage, Tally

ROOT = Path(__file__).parents[2]


def play_short(
    scenario: Scenario,
    binaries: Mapping[str, Path],
    directory: Path,
    seed: int,
    say: Callable[[str], None],
) -> Tally:
    """The short form, once."""
    shutil.rmtree(directory, ignore_errors=True)
    chance = _chance(seed, scenario, 0)
    tally = scenario.play(Stage(binaries, directory, chance, scenario.short, SHORT, True, say))
    shutil.rmtree(directory)
    return tally


def play_long(
    scenario: Scenario,
    binaries: Mapping[str, Path],
    directory: Path,
    results: Results,
    parts: int | None,
    say: Callable[[str], None],
) -> Played:
    """The parts of the long form that were not played yet, the first `parts` of all at most."""
    played = results.of(scenario.name)
    for number, rounds in list(enumerate(scenario.long))[played.parts : parts]:
        say(f"{scenario.name}: part {number + 1} of {len(scenario.long)}")
        # A part that was killed left its folder.
        where = directory / "state"
        shutil.rmtree(where, ignore_errors=True)
        chance = _chance(results.seed, scenario, number)
        tally = scenario.play(Stage(binaries, where, chance, rounds, LONG, False, say))
        played.tally.add(tally)
        played.parts += 1
        played.rounds += rounds
        played.when = datetime.now(UTC).date().isoformat()
        played.commit = commit()
        results.save()
        shutil.rmtree(where, ignore_errors=True)
    return played


def commit() -> str:
    """The commit that is checked out, "+" after it if files differ from it; "" without git."""
    head = _git("rev-parse", "--short", "HEAD")
    return f"{head}+" if head and _git("status", "--porcelain", "webhook", "certs") else head


def _git(*arguments: str) -> str:
    command: Sequence[str] = ("git", "-C", str(ROOT), *arguments)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _chance(seed: int, scenario: Scenario, part: int) -> random.Random:
    # So that each part is the same whether the run was interrupted before it or not.
    return random.Random(f"{seed} {scenario.name} {part}")
