"""Runs in the shared control plane, for the modules that name this one as a plugin.

`pytest_plugins = ["tests.cluster.run_fixtures"]` at the top of a module makes the fixtures known.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.rooms import Room
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.controller import SandboxController, start_controller
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.run_api import install_run_api


@pytest.fixture(scope="session")
def run_api(control_plane: ControlPlane) -> ControlPlane:
    """The shared control plane, once it serves Runs."""
    install_run_api(control_plane.api)
    return control_plane


@pytest.fixture(scope="module")
def controller(run_api: ControlPlane) -> Iterator[SandboxController]:
    """The controller beside the shared control plane, as long as the module's tests run."""
    controller = start_controller(run_api, options=("--no-leader-election",))
    yield controller
    run_api.stop_component(controller.name)


@pytest.fixture
def run_room(
    run_api: ControlPlane,
    controller: SandboxController,  # noqa: ARG001  (it makes the pods)
    cluster_kubectl: Kubectl,
    namespace: str,
) -> Room:
    """A namespace of the test's own in which Runs become pods."""
    return Room(run_api, cluster_kubectl.within(namespace), namespace)
