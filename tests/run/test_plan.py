"""From a Run to the manifests of all that is made for it."""

from __future__ import annotations

import pytest

from tests.run.runs import a_run, containers, spec_of
from webhook.errors import InvalidRun
from webhook.run.plan import plan


def test_a_run_without_replicas_is_one_pod_of_role_master() -> None:
    """The pod's name, hostname and subdomain are those that its address is made of."""
    pod = plan(a_run("mnist", {"template": spec_of(containers("main"))})).pod("master", 0, 0)
    assert pod["metadata"]["name"] == "mnist-master-0"
    assert pod["spec"]["hostname"] == "mnist-master-0"
    assert pod["spec"]["subdomain"] == "mnist"
    assert pod["spec"]["restartPolicy"] == "Never"


def test_everything_wrong_is_said_at_once() -> None:
    """A template that restarts in place, and a main container that is not there."""
    template = spec_of(containers("main"), restartPolicy="Always", hostname="h")
    with pytest.raises(InvalidRun) as caught:
        plan(a_run("mnist", {"template": template, "mainContainer": "trainer"}))
    assert caught.value.problems == (
        (
            "spec.template.spec.restartPolicy: is 'Always', and pods never restart in place; "
            "remove it, and set restartPolicy of the role under spec.replicas"
        ),
        (
            "spec.template.spec.hostname: is 'h', and replicas find each other by names that "
            "Fairlead gives; remove it"
        ),
        "spec.mainContainer: there is no container 'trainer' among main",
    )
