"""The real kubectl, and through it what the manifests come to."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.manifests.kustomize import Json, overlay
from webhook.progress import Lines
from webhook.sandbox.binaries import obtain_kubectl

Build = Callable[[str], tuple[Json, ...]]


@pytest.fixture(scope="session")
def kubectl_path() -> Path:
    """The real kubectl."""
    return obtain_kubectl(Lines(sys.stderr))


@pytest.fixture(scope="session")
def build() -> Build:
    """Gives the objects of an overlay by its name."""
    return overlay
