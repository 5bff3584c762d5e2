"""The real webhook beside the real API server, for the modules that name this one as a plugin.

A module's POLICIES are served by one `fairlead serve` for all its tests, with its OPTIONS if it has
any. Which of them apply in a namespace is said by the namespace's labels.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.cluster.spaces import NewNamespace, Running, Space
from tests.cluster.webhooks import serving
from tests.control_planes import clear_namespace
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl

# So that a test that edits policies need not wait, and one that fails can be understood.
OPTIONS = ("--poll-interval", "0.2", "--log-level", "debug")


@pytest.fixture(scope="module")
def policy_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the module's POLICIES."""
    folder = tmp_path_factory.mktemp("policies")
    (folder / "policies.yaml").write_text(request.module.POLICIES)
    return folder


@pytest.fixture(scope="module")
def running(
    request: pytest.FixtureRequest, control_plane: ControlPlane, policy_folder: Path
) -> Iterator[Running]:
    """The webhook, registered for the whole cluster as long as the module's tests run."""
    options = (*OPTIONS, *getattr(request.module, "OPTIONS", ()))
    with serving(control_plane, policy_folder, options=options) as found:
        yield found


@pytest.fixture
def new_namespace(control_plane: ControlPlane, cluster_kubectl: Kubectl) -> Iterator[NewNamespace]:
    """Makes a fresh namespace with these labels, in which pods can be created."""
    made: list[str] = []

    def make(labels: Mapping[str, str]) -> Space:
        name = f"test-{uuid.uuid4().hex[:10]}"
        made.append(name)
        control_plane.create_namespace(name, labels)
        return Space(control_plane, cluster_kubectl.within(name), name)

    yield make
    for name in made:
        clear_namespace(control_plane, name)
