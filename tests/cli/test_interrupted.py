"""Ctrl-C ends a command without a traceback, whatever it does at that moment."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from webhook.cli.exit_codes import INTERRUPTED

# Runs the program, and presses Ctrl-C when it imports a module; then its words.
PROGRAM = """
import builtins, os, runpy, signal, sys
imported, at = builtins.__import__, sys.argv.pop(1)
def press(name, *others, **more):
    if name == at:
        os.kill(os.getpid(), signal.SIGINT)
    return imported(name, *others, **more)
builtins.__import__ = press
runpy.run_module("webhook", run_name="__main__")
"""


def pressed(at: str, *words: str, handler: signal.Handlers = signal.SIG_DFL) -> tuple[int, str]:
    """The exit code and stderr; `handler` is what the parent does about the signal."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, at, *words],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, handler),
        timeout=100,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("at", ["click", "webhook.cli.lazy", "webhook.errors"])
def test_while_the_program_is_imported_the_signal_ends_it(at: str) -> None:
    """A shell says 130 of that."""
    assert pressed(at, "version") == (-signal.SIGINT, "")


@pytest.mark.parametrize("at", ["webhook.cli.run", "webhook.cli.run.list", "webhook.kube.config"])
def test_later_the_exit_code_is_as_the_help_says(at: str, tmp_path: Path) -> None:
    """While the command line is parsed, and while the command works."""
    missing = str(tmp_path / "missing")
    assert pressed(at, "run", "list", "--kubeconfig", missing) == (INTERRUPTED, "")


def test_a_parent_that_has_it_ignored_means_it() -> None:
    """As a shell does for what runs in the background."""
    assert pressed("click", "version", handler=signal.SIG_IGN) == (0, "")
