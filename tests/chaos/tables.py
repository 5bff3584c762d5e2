"""Writes what was counted into docs/reliability.md."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from tests.bench import document
from tests.chaos.results import Played
from tests.chaos.stage import Scenario

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "reliability.md"


def check(scenarios: Collection[str]) -> None:
    """Raise ValueError if the document has no place for one of them."""
    document.check(scenarios, DOCUMENT)


def write(scenario: str, text: str) -> None:
    """Put the text where the document has its place."""
    document.write(scenario, text, DOCUMENT)


def table(scenario: Scenario, played: Played, seed: int) -> str:
    """What a scenario has shown so far, as Markdown."""
    wanted = sum(scenario.long)
    broken = scenario.broken(played.tally)
    rest = "" if played.rounds >= wanted else ", **the rest is still to be played**"
    lines = [
        f"_{played.when}, commit {played.commit}, seed {seed}: {document.machine()}._",
        "",
        f"{scenario.unit.capitalize()}: {played.rounds:,} of {wanted:,}{rest}.",
        "",
        "| counted |  |",
        "| :-- | --: |",
        *_rows(played),
        "",
        *(f"- **broken**: {each}" for each in broken),
        *(() if broken else ("- what must hold: **held**",)),
    ]
    return "\n".join(lines)


def _rows(played: Played) -> Iterator[str]:
    for what, number in played.tally.counts.items():
        yield f"| {what} | {number:,} |"
    for what, values in played.tally.measures.items():
        middle, most = statistics.median(values), max(values)
        shown = f"{most:.2f}" if len(values) == 1 else f"{middle:.2f}, at most {most:.2f}"
        yield f"| {what} | {shown} |"
