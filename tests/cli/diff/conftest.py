"""What holds for every test of `fairlead diff`."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_repository_but_the_tests_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests from a hook of git has told it where another repository is."""
    for name in os.environ:
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
