"""Kueue's webhook takes pods of Runs for pods without a job, and leaves them alone when told to."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, Final

import pytest
from click.testing import CliRunner

from tests.cluster.cures import commands_of
from tests.cluster.spaces import NewNamespace, Space
from tests.objects import an_object
from tests.operators import queues
from tests.operators.conftest import with_runs
from tests.operators.queueing import play, said
from tests.wording import mentions
from webhook import names
from webhook.cli import fairlead
from webhook.installation.manifests import render
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl
from webhook.sandbox.operators.install import Installation, start_operator

pytest_plugins = ["tests.cluster.webhook_fixtures", "tests.operators.queueing"]
pytestmark = pytest.mark.usefixtures("queues_of_admins", "running", "queueing_controller")

Json = dict[str, Any]
POLICIES: Final = ""


@pytest.fixture
def space(new_namespace: NewNamespace) -> Space:
    """A namespace with its queues."""
    made = new_namespace({})
    made.kubectl.create(*queues.of_namespaces())
    return made


def default_queue() -> Json:
    """The LocalQueue that Kueue gives to whatever has none."""
    spec = {"clusterQueue": "gpu"}
    return an_object(queues.API, "LocalQueue", "default", spec)


def findings(plane: ControlPlane, namespace: str) -> list[Mapping[str, str]]:
    """What `fairlead doctor` says of queues of the namespace; other tests leave theirs."""
    options = ["doctor", "-o", "json", "--check", "queues", "--kubeconfig", str(plane.kubeconfig)]
    result = CliRunner().invoke(fairlead, options)
    every: list[Mapping[str, str]] = json.loads(result.output)["findings"]
    return [finding for finding in every if namespace in finding["message"]]


def test_a_local_queue_default_holds_the_pods_of_runs_until_they_are_left_out(
    space: Space, control_plane: ControlPlane
) -> None:
    """The message names Kueue; doctor sees it, and its cure ends it."""
    assert findings(control_plane, space.name) == []
    space.create(default_queue())
    run = play(space, "gpu")
    run.until("it names Kueue", lambda: "held back by Kueue" in said(run))
    mentions(said(run), "3 of 3 pods", "queue default", names.KUEUE_ADMISSION_GATE, "doctor")
    (found,) = findings(control_plane, space.name)
    assert found["severity"] == "error"
    mentions(found["message"], "mpod.kb.io", space.name, "LocalQueue default")
    (cure,) = commands_of(found["cure"])
    space.kubectl(*shlex.split(cure)[1:])
    assert findings(control_plane, space.name) == []
    run.set(suspend=True)
    run.until_phase("Suspended")
    run.until("its pods are gone", lambda: not run.pods())
    run.set(suspend=False)
    run.until_whole(3)
    for pod in run.pods().values():
        assert names.KUEUE_QUEUE not in pod["metadata"]["labels"]


def test_an_external_framework_needs_the_right_to_read_runs(
    space: Space,
    control_plane: ControlPlane,
    cluster_kubectl: Kubectl,
    kueue_installation: Installation,
) -> None:
    """The component gives it to Kueue's account; without it Kueue's webhook rejects the pods."""
    webhook = "mutatingwebhookconfiguration"
    selector: dict[str, list[str]] = {"matchExpressions": []}
    everything = {"webhooks": [{"name": "mpod.kb.io", "objectSelector": selector}]}
    cluster_kubectl(
        "patch", webhook, "kueue-mutating-webhook-configuration", "-p", json.dumps(everything)
    )
    cluster_kubectl("delete", "clusterrolebinding", "fairlead-kueue")
    control_plane.stop_component("kueue")
    start_operator(control_plane, cluster_kubectl, with_runs(kueue_installation))
    space.create(default_queue())
    run = play(space, "gpu")
    run.until("it names Kueue's webhook", lambda: "mpod.kb.io" in said(run))
    assert run.pods() == {}
    cluster_kubectl.create(
        *(
            each
            for each in render((), ("backend-kueue",)).values()
            if (each["kind"], each["metadata"]["name"]) == ("ClusterRoleBinding", "fairlead-kueue")
        )
    )
    run.until_whole(3)
