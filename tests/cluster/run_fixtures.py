"""The Run's API in the shared control plane, for the modules that name this one as a plugin.

`pytest_plugins = ["tests.cluster.run_fixtures"]` at the top of a module makes the fixtures known.
"""

from __future__ import annotations

import pytest

from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.run_api import install_run_api


@pytest.fixture(scope="session")
def run_api(control_plane: ControlPlane) -> ControlPlane:
    """The shared control plane, once it serves Runs."""
    install_run_api(control_plane.api)
    return control_plane
