"""Kueue's definitions are deleted while Runs that it has admitted are active."""

from __future__ import annotations

import pytest

from tests.cluster.spaces import NewNamespace
from tests.operators import queues
from tests.operators.queueing import play, said
from tests.wording import mentions

pytest_plugins = ["tests.cluster.webhook_fixtures", "tests.operators.queueing"]
pytestmark = pytest.mark.usefixtures("queues_of_admins", "queueing_controller")


def test_runs_that_were_admitted_go_on(new_namespace: NewNamespace) -> None:
    """The definition takes the Workloads with it. Others wait, and say that there is no Kueue."""
    space = new_namespace({})
    space.kubectl.create(*queues.of_namespaces())
    run = play(space, "gpu")
    run.until_whole(3)
    before = {name: each["metadata"]["uid"] for name, each in run.pods().items()}
    space.kubectl("delete", "crd", "workloads.kueue.x-k8s.io", "--wait=false")
    late = play(space, "gpu", "late")
    late.until("it says so", lambda: "no Kueue" in said(late))
    mentions(said(late), "queue gpu")
    run.until("it says so too", lambda: "no Kueue" in run.condition("Admitted").get("message", ""))
    assert run.status["phase"] == "Running"
    assert {name: each["metadata"]["uid"] for name, each in run.pods().items()} == before
