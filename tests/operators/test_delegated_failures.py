"""What a delegated Run says while its engine cannot make pods, and that it then goes on."""

from __future__ import annotations

import pytest

from tests.cluster.live_runs import ALONE, SOON, TEMPLATE
from tests.cluster.spaces import NewNamespace
from tests.objects import an_object
from tests.operators.delegated import PYTORCH, Delegated, play
from tests.wording import mentions
from webhook.installation.manifests import render
from webhook.sandbox.api import install_definitions
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.fairlead import start_controller
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.operators.build import BuiltOperator
from webhook.sandbox.operators.install import (
    Installation,
    install_operator,
    plan_installation,
    start_operator,
)
from webhook.sandbox.operators.table import operators

pytest_plugins = ["tests.cluster.webhook_fixtures"]


@pytest.fixture(scope="module")
def installation(training_operator_built: BuiltOperator) -> Installation:
    """The operator, not installed yet."""
    return plan_installation(operators()["training-operator"], training_operator_built)


def created(run: Delegated, reason: str, *, budget: float = 90) -> str:
    """Wait until the condition Created has this reason; its message."""
    run.until(
        f"Created is {reason}",
        lambda: run.condition("Created").get("reason") == reason,
        budget=budget,
    )
    message: str = run.condition("Created")["message"]
    return message


def test_each_obstacle_is_reported_with_its_cure_and_the_run_goes_on_after_it(
    new_namespace: NewNamespace,
    control_plane: ControlPlane,
    cluster_kubectl: Kubectl,
    installation: Installation,
) -> None:
    """No rights, no definition, a name that is taken, no operator: then the same Runs run."""
    space = new_namespace({})
    start_controller(control_plane, options=(*ALONE, *SOON, "--no-nodes"))
    rejected = new_namespace({})
    run = play(space, PYTORCH)

    # The API server asks for rights before it looks for the kind.
    forbidden = created(run, "Forbidden")
    mentions(forbidden, "pytorchjobs", "fairlead install --backend kubeflow")
    assert run.status["phase"] == "Pending"

    cluster_kubectl.create(*render((), ("backend-kubeflow",)).values())
    missing = created(run, "BackendMissing")
    mentions(missing, "PyTorchJob", "kubeflow.org/v1", "training operator", "native")

    install_definitions(control_plane.api, list(installation.definitions))
    foreign = an_object(
        "kubeflow.org/v1",
        "PyTorchJob",
        "other",
        {"pytorchReplicaSpecs": {"Master": {"template": TEMPLATE}}},
    )
    space.create(foreign)
    second = play(space, PYTORCH, "other")
    taken = created(second, "NameTaken")
    mentions(taken, "PyTorchJob other", "does not belong to this run", "delete it")
    space.delete(second.path, second.name)

    for each in (run, second):
        silent = created(each, "BackendSilent", budget=180)
        mentions(silent, "the training operator runs", f"describe pytorchjob {each.name}")

    wrong = {"spec": {**TEMPLATE["spec"], "hostnameOverride": "me"}}
    other = play(rejected, PYTORCH, template=wrong)
    mentions(created(other, "Rejected"), "hostnameOverride", "unknown field")
    assert other.object() is None

    install_operator(control_plane, cluster_kubectl, installation)
    start_operator(control_plane, cluster_kubectl, installation)
    for each in (run, second):
        each.until_all_run()
        assert each.condition("Created")["status"] == "True"
        assert each.status["restarts"] == 0
