"""Plugins and settings for all tests."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.examples import draw_nothing_of_the_code, examples, fuzz_cases
from webhook.evaluation import one_pod

# So that an assert in a module that is no test says what it found, too.
pytest.register_assert_rewrite(
    *(f"tests.{folder.name}" for folder in Path(__file__).parent.iterdir() if folder.is_dir())
)

pytest_plugins = [
    "tests.coroutines",
    "tests.eventually",
    "tests.tiers",
    "tests.wording",
    "tests.control_planes",
    "tests.chaos.play_short",
]


def pytest_configure(config: pytest.Config) -> None:
    """Read how many random cases there are to be, and give drawing them time."""
    fuzz_cases(1)
    # Commands follow them. A process of pytest-xdist has COLUMNS.
    for name in ("COLUMNS", "NO_COLOR"):
        os.environ.pop(name, None)
    if config.getoption("--hypothesis-seed") is not None:
        draw_nothing_of_the_code()
    # Without it an example of over 0.2 s fails, and so do ten that took over a second to draw.
    settings.register_profile(
        "patient",
        settings(),
        deadline=None,
        max_examples=examples(100),
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("patient")


@pytest.fixture(autouse=True)
def _faults_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the guard around one pod of many away: in a test, a fault of ours is to fail it.

    The guard's own tests put it back.
    """
    monkeypatch.setattr(one_pod, "FAULTS", ())


# A shell without job control starts background jobs with SIGINT ignored, and children inherit
# that: programs that a test sends SIGINT to would never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
