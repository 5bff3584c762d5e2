"""Counts the reviews of a run, and prints the counts at its end."""

from __future__ import annotations

import pytest

from tests.fuzz.tally import TALLY, Tally


def pytest_configure(config: pytest.Config) -> None:
    """One tally for all tests."""
    config.stash[TALLY] = Tally()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """The number of cases that were run."""
    for line in config.stash[TALLY].lines():
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def tally(pytestconfig: pytest.Config) -> Tally:
    """Where the tests count."""
    return pytestconfig.stash[TALLY]
