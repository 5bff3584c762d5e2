"""Fixtures that replace the shared control plane by one of the module's own that knows policies.

A module imports them: `from tests.cluster.policy_plane import *`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.control_planes import StartControlPlane
from webhook.sandbox.api import definitions
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools

__all__ = ("cluster_kubectl", "control_plane", "run_api")


@pytest.fixture(scope="module")
def control_plane(start_module_plane: StartControlPlane) -> ControlPlane:
    """One that knows policies too."""
    return start_module_plane(Settings(pools=read_pools(SHIPPED_NODES), definitions=definitions()))


@pytest.fixture(scope="module")
def run_api(control_plane: ControlPlane) -> ControlPlane:
    """The control plane of this module."""
    return control_plane


@pytest.fixture(scope="module")
def cluster_kubectl(
    control_plane: ControlPlane, kubectl_for: Callable[[ControlPlane], Kubectl]
) -> Kubectl:
    """The real kubectl for it."""
    return kubectl_for(control_plane)
