"""Operators that run beside a control plane, built on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.live_runs import ALONE, SOON
from tests.cluster.spaces import NewNamespace, Running, Space
from tests.cluster.webhooks import serving
from tests.control_planes import build_before_tests
from tests.operators import checks, queues
from webhook import names
from webhook.installation.manifests import backends
from webhook.progress import Lines
from webhook.run.crd import custom_resource_definition
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.fairlead import start_controller
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.operators.build import BuiltOperator, obtain_operators
from webhook.sandbox.operators.install import (
    Installation,
    install_operator,
    plan_installation,
    start_operator,
)
from webhook.sandbox.operators.table import operators, select_operators
from webhook.sandbox.simulated_nodes import SHIPPED_NODES, read_pools

JOB_OPERATORS = ("jobset", "mpi-operator", "dask-kubernetes")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the operators that the collected tests use, on the first run ever."""
    build_before_tests(session, "kueue_built", lambda: obtain("kueue"))
    build_before_tests(session, "training_operator_built", lambda: obtain("training-operator"))
    build_before_tests(session, "job_operators_built", lambda: obtain(*JOB_OPERATORS))
    build_before_tests(session, "operators_built", lambda: obtain(*operators()))


def obtain(*names: str) -> Mapping[str, BuiltOperator]:
    """Programs and manifests of operators, built on first use."""
    return obtain_operators(select_operators(names), Lines(sys.stderr))


@pytest.fixture(scope="session")
def kueue_built() -> BuiltOperator:
    """Kueue's program and manifests."""
    return obtain("kueue")["kueue"]


@pytest.fixture(scope="session")
def training_operator_built() -> BuiltOperator:
    """The training operator's program and manifests."""
    return obtain("training-operator")["training-operator"]


@pytest.fixture(scope="session")
def job_operators_built() -> Mapping[str, BuiltOperator]:
    """The operators to which Runs can be given, beside the training operator."""
    return obtain(*JOB_OPERATORS)


@pytest.fixture(scope="session")
def operators_built() -> Mapping[str, BuiltOperator]:
    """Every operator of the table."""
    return obtain(*operators())


@pytest.fixture(scope="module")
def control_plane(
    binaries: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A module's own, which serves Runs: the operators' webhooks judge their kinds."""
    directory = tmp_path_factory.mktemp("operators") / "state"
    settings = Settings(pools=read_pools(SHIPPED_NODES), definitions=[custom_resource_definition()])
    with ControlPlane(directory, binaries, settings) as plane:
        yield plane


@pytest.fixture(scope="module")
def cluster_kubectl(
    control_plane: ControlPlane, kubectl_for: Callable[[ControlPlane], Kubectl]
) -> Kubectl:
    """The real kubectl for it."""
    return kubectl_for(control_plane)


def run_operator(
    plane: ControlPlane, kubectl: Kubectl, name: str, built: BuiltOperator
) -> Installation:
    """Install the operator and start it, until it answers. The installation starts it again."""
    installation = plan_installation(operators()[name], built)
    install_operator(plane, kubectl, installation)
    start_operator(plane, kubectl, installation)
    return installation


@pytest.fixture(scope="module")
def training_operator(
    control_plane: ControlPlane, cluster_kubectl: Kubectl, training_operator_built: BuiltOperator
) -> Iterator[None]:
    """The training operator runs."""
    run_operator(control_plane, cluster_kubectl, "training-operator", training_operator_built)
    yield
    control_plane.stop_component("training-operator")


@pytest.fixture(scope="module")
def webhook_for_jobs(control_plane: ControlPlane, policy_folder: Path) -> Iterator[Running]:
    """The webhook, for the pods of the training operator too."""
    with serving(control_plane, policy_folder, sources=["kubeflow-training"]) as found:
        yield found


@pytest.fixture(scope="module")
def delegating_controller(control_plane: ControlPlane) -> Iterator[None]:
    """The controller runs."""
    controller = start_controller(control_plane, options=(*ALONE, *SOON), backends=backends())
    yield
    control_plane.stop_component(controller.name)


@pytest.fixture(scope="module")
def kueue_installation(kueue_built: BuiltOperator) -> Installation:
    """What Kueue needs in the module's control plane, to start it, and to start it again."""
    return plan_installation(operators()["kueue"], kueue_built)


def with_runs(installation: Installation) -> Installation:
    """Kueue with Runs among its external frameworks."""
    operator = installation.operator
    integrations = {
        **operator.config["integrations"],
        "externalFrameworks": [
            f"{names.RUN_KIND}.{names.API_VERSION.partition('/')[2]}.fairlead.dev"
        ],
    }
    config = {**operator.config, "integrations": integrations}
    return replace(installation, operator=operator.model_copy(update={"config": config}))


@pytest.fixture(scope="module")
def queues_of_admins(
    control_plane: ControlPlane, cluster_kubectl: Kubectl, kueue_installation: Installation
) -> Iterator[None]:
    """Kueue runs, with flavors and queues."""
    install_operator(control_plane, cluster_kubectl, kueue_installation)
    start_operator(control_plane, cluster_kubectl, kueue_installation)
    cluster_kubectl.create(*queues.of_admins())
    checks.begin(cluster_kubectl)
    yield
    control_plane.stop_component("kueue")


@pytest.fixture
def space(new_namespace: NewNamespace) -> Space:
    """A namespace of the test's own."""
    return new_namespace({})
