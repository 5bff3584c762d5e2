"""Runs in the shared control plane, for the modules that name this one as a plugin.

`pytest_plugins = ["tests.cluster.run_fixtures"]` at the top of a module makes the fixtures known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.cluster.live_runs import ALONE, SOON, StartInSpace
from tests.cluster.spaces import Space
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import SandboxController, start_controller
from webhook.sandbox.kubectl import Kubectl


@pytest.fixture(scope="session")
def run_api(control_plane: ControlPlane) -> ControlPlane:
    """The shared control plane, which serves Runs."""
    return control_plane


@pytest.fixture(scope="module")
def controller(run_api: ControlPlane) -> Iterator[SandboxController]:
    """The controller beside the shared control plane, as long as the module's tests run."""
    controller = start_controller(run_api, options=(*ALONE, *SOON))
    yield controller
    run_api.stop_component(controller.name)


@pytest.fixture
def run_space(
    run_api: ControlPlane,
    controller: SandboxController,  # noqa: ARG001  (it makes the pods)
    cluster_kubectl: Kubectl,
    namespace: str,
) -> Space:
    """A namespace of the test's own in which Runs become pods."""
    return Space(run_api, cluster_kubectl.within(namespace), namespace)


@pytest.fixture
def bare_space(run_api: ControlPlane, cluster_kubectl: Kubectl, namespace: str) -> Space:
    """A namespace of the test's own for which no controller runs yet."""
    return Space(run_api, cluster_kubectl.within(namespace), namespace)


@pytest.fixture
def start_in_space(bare_space: Space) -> Iterator[StartInSpace]:
    """Starts controllers for that namespace; all of them are gone after the test."""
    started: list[str] = []

    def begin(name: str, *options: str) -> SandboxController:
        where = ("--namespace", bare_space.name)
        controller = start_controller(
            bare_space.plane, name=name, options=(*where, *SOON, *options)
        )
        started.append(name)
        return controller

    yield begin
    for name in started:
        # Some were killed by their test.
        with suppress(KeyError):
            bare_space.plane.stop_component(name)
