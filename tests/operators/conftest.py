"""Operators that run beside a control plane, built on first use."""

from __future__ import annotations

import sys

import pytest

from tests.control_planes import build_before_tests
from tests.operators import kueue
from tests.operators.built import Built
from webhook.sandbox.progress import Lines


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the operators that the collected tests use, on the first run ever."""
    build_before_tests(session, "kueue_built", lambda: kueue.obtain(Lines(sys.stderr)))


@pytest.fixture(scope="session")
def kueue_built() -> Built:
    """Kueue's program and manifests."""
    return kueue.obtain(Lines(sys.stderr))
