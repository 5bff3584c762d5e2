"""Keeps what was counted so far in a file, so that a long run can go on where it ended."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.stage import Tally


@dataclass
class Played:
    """A scenario so far: parts that are over, their rounds, when and by which commit the last."""

    parts: int = 0
    rounds: int = 0
    when: str = ""
    commit: str = ""
    tally: Tally = field(default_factory=Tally)


class Results:
    """The results of one seed, in results.json of a directory."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.seed = seed
        self.played: dict[str, Played] = {}
        self._path = directory / "results.json"

    @classmethod
    def resumed(cls, directory: Path, seed: int | None) -> Results | None:
        """What is kept there, None if there is nothing.

        Raises ValueError if it was played with another seed than the one given.
        """
        path = directory / "results.json"
        if not path.exists():
            return None
        kept = json.loads(path.read_text())
        if seed is not None and kept["seed"] != seed:
            raise ValueError(
                f"{path} was played with the seed {kept['seed']}: resume without --seed, "
                "or begin anew without --resume"
            )
        results = cls(directory, kept["seed"])
        for name, each in kept["scenarios"].items():
            tally = Tally.from_json(each.pop("tally"))
            results.played[name] = Played(**each, tally=tally)
        return results

    def of(self, scenario: str) -> Played:
        """What has been played of it."""
        return self.played.setdefault(scenario, Played())

    def save(self) -> None:
        """Write the file, as a whole or not at all."""
        kept: dict[str, Any] = {
            "seed": self.seed,
            "scenarios": {
                name: {
                    "parts": each.parts,
                    "rounds": each.rounds,
                    "when": each.when,
                    "commit": each.commit,
                    "tally": each.tally.as_json(),
                }
                for name, each in self.played.items()
            },
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps(kept, indent=1))
        fresh.replace(self._path)
