"""Colours on a terminal, by one rule: --color, else NO_COLOR and TERM."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.policy_tests.writing import policy

ESCAPE = b"\x1b["
PROGRAM = "from webhook.cli import main; main()"
EXPLAIN = ("explain", "-f", "pod.yaml", "--policies", "policy.yaml")
POD = """
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {fairlead.dev/run: mnist}}
spec: {containers: [{name: main, image: a}]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a pod and a policy."""
    (tmp_path / "policy.yaml").write_text(policy("pool", "defaults: {nodeSelector: {pool: a}}"))
    (tmp_path / "pod.yaml").write_text(POD)
    return tmp_path


def on_terminal(folder: Path, *words: str, **environment: str) -> bytes:
    """Run a command whose stdout and stderr are a terminal; return what that gets."""
    ours, theirs = pty.openpty()
    inherited = {key: each for key, each in os.environ.items() if key not in ("NO_COLOR", "TERM")}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *words],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env={**inherited, "TERM": "xterm", **environment},
    )
    os.close(theirs)
    found = b""
    try:
        while piece := os.read(ours, 65536):
            found += piece
    except OSError:
        pass  # Linux: the other side is closed
    finally:
        os.close(ours)
    process.wait(60)
    return found


@pytest.mark.parametrize(
    ("words", "environment", "coloured"),
    [
        ((), {}, True),
        ((), {"NO_COLOR": "1"}, False),
        ((), {"NO_COLOR": ""}, True),
        ((), {"TERM": "dumb"}, False),
        (("--color", "never"), {}, False),
        (("--color", "always"), {"NO_COLOR": "1", "TERM": "dumb"}, True),
        (("--color", "auto"), {"NO_COLOR": "1"}, False),
    ],
)
def test_an_option_goes_before_the_environment(
    words: tuple[str, ...], environment: dict[str, str], coloured: bool, folder: Path
) -> None:
    """The option may stand before the command and after it."""
    after = on_terminal(folder, *EXPLAIN, *words, **environment)
    assert b"nodeSelector" in after
    assert (ESCAPE in after) == coloured
    assert on_terminal(folder, *words, *EXPLAIN, **environment) == after


@pytest.mark.parametrize(("choice", "coloured"), [("auto", True), ("never", False)])
def test_errors_follow_the_same_rule(choice: str, coloured: bool, folder: Path) -> None:
    """Also those that `main` prints after the command has ended."""
    (folder / "pod.yaml").write_text("[")
    printed = on_terminal(folder, *EXPLAIN, "--color", choice)
    assert b"pod.yaml" in printed
    assert (ESCAPE in printed) == coloured


def test_a_pipe_gets_colours_only_if_they_are_asked_for(folder: Path) -> None:
    """It is no terminal, whatever TERM says."""
    for choice, coloured in (("auto", False), ("always", True)):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *EXPLAIN, "--color", choice],
            capture_output=True,
            cwd=folder,
            check=True,
            env={**os.environ, "TERM": "xterm"},
        )
        assert (ESCAPE in done.stdout) == coloured
