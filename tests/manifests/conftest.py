"""The real kubectl, and through it what the manifests come to."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.manifests.kustomize import Json, kustomized, overlay
from webhook.sandbox.binaries import obtain_kubectl
from webhook.sandbox.progress import Lines

Build = Callable[[str], tuple[Json, ...]]


@pytest.fixture(scope="session")
def kubectl_path() -> Path:
    """The real kubectl."""
    return obtain_kubectl(Lines(sys.stderr))


@pytest.fixture(scope="session")
def build() -> Build:
    """Gives the objects of an overlay by its name."""
    return overlay


@pytest.fixture(scope="session")
def kustomize(kubectl_path: Path) -> Callable[[Path], tuple[Json, ...]]:
    """Gives the objects of any folder with a kustomization."""
    return lambda folder: kustomized(kubectl_path, folder)
