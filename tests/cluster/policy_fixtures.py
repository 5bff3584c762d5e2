"""Policies as objects of the shared control plane, for the modules that name this one as a plugin.

`pytest_plugins = ["tests.cluster.policy_fixtures"]` at the top of a module makes the fixture known.
"""

from __future__ import annotations

import shutil

import pytest

from webhook.policy.crd.definitions import custom_resource_definitions
from webhook.sandbox.api import install_definitions
from webhook.sandbox.control_plane import ControlPlane


@pytest.fixture(scope="session")
def policy_api(control_plane: ControlPlane) -> ControlPlane:
    """The shared control plane, once it serves policies and capacity classes."""
    for definition in custom_resource_definitions().values():
        install_definitions(control_plane.api, [definition])
    # A kubectl that ran before knows no short name of theirs: it finds them one call too late.
    shutil.rmtree(control_plane.kubeconfig.parent / "kubectl-cache", ignore_errors=True)
    return control_plane
