"""Plays the short form of a scenario, in a process and a network namespace of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.chaos import isolation
from tests.chaos.stage import Tally
from webhook.sandbox.processes import Lifeline

PlayShort = Callable[[str], Tally]


@pytest.fixture
def play_short(
    binaries: Mapping[str, Path],  # noqa: ARG001  (built before the namespace is made)
    tmp_path: Path,
) -> PlayShort:
    """Plays a scenario's short form; what it counted, once what must hold has held."""

    def play(scenario: str) -> Tally:
        command = isolation.command(["--short", "--results", str(tmp_path), scenario])
        # So that it ends with this process, killed or not.
        lifeline = Lifeline()
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, process_group=lifeline.group, check=False
            )
        finally:
            lifeline.cut()
        assert done.returncode == 0, f"{done.stderr}\n{done.stdout}"
        return Tally.from_json(json.loads(done.stdout))

    return play
