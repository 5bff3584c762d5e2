"""Fixtures for the real control plane, as a pytest plugin: one for all tests of a process.

pytest-xdist runs each worker in a process of its own, so each worker has its own control plane.
"""

from __future__ import annotations

import contextlib
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

import pytest

from tests.cluster.spaces import Space
from webhook.errors import SandboxError
from webhook.progress import Lines
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.binaries import ALL, obtain_binaries, obtain_kubectl
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools


class StartControlPlane(Protocol):
    """What the fixtures `start_control_plane` and `start_module_plane` give."""

    def __call__(self, settings: Settings) -> ControlPlane:
        """Start a control plane that lives until the end of the test, or of the module."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the control plane's binaries before the first test, on the first run ever."""
    build_before_tests(session, "binaries", lambda: obtain_binaries(ALL, Lines(sys.stderr)))


def build_before_tests(session: pytest.Session, fixture: str, build: Callable[[], object]) -> None:
    """Build what a session fixture hands out, if a collected test uses that fixture.

    It takes minutes, which must not count against the time that a single test may take. An error
    is left to the fixture, which reports it for the tests that use it.
    """
    fixtures = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if session.config.option.collectonly or fixture not in fixtures:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled(), contextlib.suppress(SandboxError):
        build()


@pytest.fixture(scope="session")
def binaries() -> Mapping[str, Path]:
    """Every binary of the control plane."""
    return obtain_binaries(ALL, Lines(sys.stderr))


@pytest.fixture(scope="session")
def control_plane(
    binaries: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A whole control plane with the shipped nodes, an audit log, and Runs; all tests share it."""
    directory = tmp_path_factory.mktemp("control-plane") / "state"
    settings = Settings(
        pools=read_pools(SHIPPED_NODES), audit=True, definitions=[custom_resource_definition()]
    )
    with ControlPlane(directory, binaries, settings) as plane:
        yield plane


def _starting(
    binaries: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[StartControlPlane]:
    with ExitStack() as stack:

        def start(settings: Settings) -> ControlPlane:
            directory = tmp_path_factory.mktemp("control-plane") / "state"
            return stack.enter_context(ControlPlane(directory, binaries, settings))

        yield start


# For a test, or a module, that needs a control plane of its own: with other flags, or to break it.
start_control_plane = pytest.fixture(name="start_control_plane")(_starting)
start_module_plane = pytest.fixture(name="start_module_plane", scope="module")(_starting)


@pytest.fixture(scope="session")
def kubectl_path() -> Path:
    """The real kubectl."""
    return obtain_kubectl(Lines(sys.stderr))


@pytest.fixture(scope="session")
def kubectl_for(kubectl_path: Path) -> Callable[[ControlPlane], Kubectl]:
    """The real kubectl for any control plane."""
    return lambda plane: Kubectl(kubectl_path, plane.kubeconfig)


@pytest.fixture(scope="session")
def cluster_kubectl(
    control_plane: ControlPlane, kubectl_for: Callable[[ControlPlane], Kubectl]
) -> Kubectl:
    """The real kubectl for the shared control plane, in no particular namespace."""
    return kubectl_for(control_plane)


# By API group and version, owners before what they own.
_CLEARED: Final = {
    "apis/fairlead.dev/v1alpha1": ("runs", "placementexceptions", "runsources"),
    "apis/batch/v1": ("cronjobs", "jobs"),
    "apis/apps/v1": ("deployments", "daemonsets", "statefulsets", "replicasets"),
    "api/v1": ("replicationcontrollers", "pods"),
}


def clear_namespace(plane: ControlPlane, name: str) -> None:
    """Delete what makes pods or concerns all policies in the namespace, without waiting.

    The namespace stays: to delete one that is empty takes the control plane 0.2 s of processor
    time, for its controller looks for objects of every kind.
    """
    for group, plurals in _CLEARED.items():
        for plural in plurals:
            path = f"/{group}/namespaces/{name}/{plural}?propagationPolicy=Background"
            plane.api.call("DELETE", path)


@pytest.fixture
def namespace(control_plane: ControlPlane) -> Iterator[str]:
    """A fresh namespace in which pods can be created; cleared afterwards without waiting."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    control_plane.create_namespace(name)
    yield name
    clear_namespace(control_plane, name)


@pytest.fixture(scope="module")
def module_space(control_plane: ControlPlane, cluster_kubectl: Kubectl) -> Iterator[Space]:
    """A namespace for all tests of one module, and kubectl within it."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    control_plane.create_namespace(name)
    yield Space(control_plane, cluster_kubectl.within(name), name)
    clear_namespace(control_plane, name)


@pytest.fixture
def kubectl(cluster_kubectl: Kubectl, namespace: str) -> Kubectl:
    """The real kubectl for the shared control plane, within the test's own namespace."""
    return cluster_kubectl.within(namespace)
