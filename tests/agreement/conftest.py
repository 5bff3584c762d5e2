"""The control plane of tests that hold models against the real kube-scheduler."""

from __future__ import annotations

import pytest

from tests.control_planes import StartControlPlane
from webhook.sandbox.control_plane import ControlPlane, Settings


@pytest.fixture
def scheduler_plane(start_control_plane: StartControlPlane) -> ControlPlane:
    """A control plane whose nodes are the test's own, and whose pods nobody runs."""
    components = ("etcd", "kube-apiserver", "kube-scheduler")
    return start_control_plane(Settings(components=components))
