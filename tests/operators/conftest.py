"""Operators that run beside a control plane, built on first use."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import pytest

from tests.control_planes import build_before_tests
from webhook.sandbox.operators.build import BuiltOperator, obtain_operators
from webhook.sandbox.operators.table import operators, select_operators
from webhook.sandbox.progress import Lines


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the operators that the collected tests use, on the first run ever."""
    build_before_tests(session, "kueue_built", lambda: _obtain("kueue"))
    build_before_tests(session, "training_operator_built", lambda: _obtain("training-operator"))
    build_before_tests(session, "operators_built", lambda: _obtain(*operators()))


def _obtain(*names: str) -> Mapping[str, BuiltOperator]:
    return obtain_operators(select_operators(names), Lines(sys.stderr))


@pytest.fixture(scope="session")
def kueue_built() -> BuiltOperator:
    """Kueue's program and manifests."""
    return _obtain("kueue")["kueue"]


@pytest.fixture(scope="session")
def training_operator_built() -> BuiltOperator:
    """The training operator's program and manifests."""
    return _obtain("training-operator")["training-operator"]


@pytest.fixture(scope="session")
def operators_built() -> Mapping[str, BuiltOperator]:
    """Every operator of the table."""
    return _obtain(*operators())
