"""Creations that the API server refuses: said with its words, waited for, counted as nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.live_runs import CONTAINER, LiveRun, create_run
from tests.cluster.spaces import Json, Space, metric
from tests.objects import an_object
from tests.wording import mentions
from webhook.sandbox.fairlead import SandboxController

pytest_plugins = ["tests.cluster.run_fixtures"]

WORKERS = {"worker": {"count": 4}}
FOUR = tuple(f"worker-{index}" for index in range(4))


def until_refused(live: LiveRun, reason: str) -> str:
    """Wait until the run says that this keeps it; the message."""

    def said() -> bool:
        created = live.condition("Created")
        return created.get("status") == "False" and created.get("reason") == reason

    live.until(f"Created is False: {reason}", said)
    message: str = live.condition("Created")["message"]
    return message


def nothing_counted(live: LiveRun) -> bool:
    counts = live.role("worker")
    return not any(counts.get(name) for name in ("failed", "restarts", "disruptions"))


def test_a_quota_is_reported_and_waited_for(
    run_space: Space, controller: SandboxController
) -> None:
    """As many pods as it allows are made; the rest follow when it is raised."""
    quota: Json = an_object("v1", "ResourceQuota", "small", {"hard": {"pods": "2"}})
    run_space.create(quota)
    run_space.kubectl("wait", "--for=jsonpath={.status.hard.pods}=2", "resourcequota/small")
    refused = metric(controller.health_port, "fairlead_creations_refused_total")
    live = create_run(run_space, "over", framework="jax", replicas=WORKERS)
    assert "exceeded quota: small" in until_refused(live, "QuotaExceeded")
    assert len(live.pods()) == 2
    assert metric(controller.health_port, "fairlead_creations_refused_total") > refused
    run_space.kubectl(
        "patch", "resourcequota", "small", "--type=merge", "-p", '{"spec":{"hard":{"pods":"9"}}}'
    )
    live.until_running(*FOUR)
    live.until_phase("Running")
    live.until("Created", lambda: live.condition("Created")["status"] == "True")
    assert nothing_counted(live)
    warnings = [event for event in live.events() if event["reason"] == "QuotaExceeded"]
    assert len(warnings) == 1


def test_a_run_that_is_too_large_says_so_and_has_no_pods(run_space: Space) -> None:
    """The API server takes five times as much. Suspended or not, its text is not kept."""
    large: Json = {"metadata": {"annotations": {"example.dev/x": "x" * 200_000}}}
    live = create_run(
        run_space,
        "large",
        framework="jax",
        replicas={"worker": {"count": 4, "template": large}},
        suspend=True,
        template={"spec": {"containers": [{**CONTAINER, "args": ["x" * 200_000]}]}},
    )
    status = live.until_phase("Failed")
    mentions(status["message"], "bytes of JSON", "262144", "ConfigMap")
    assert live.condition("Failed")["reason"] == "TooLarge"
    # Only its status was written.
    assert live.run()["spec"]["replicas"]["worker"]["template"] == large
    assert live.pods() == {}


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        ({"priorityClassName": "no-such"}, "Forbidden", "no PriorityClass with name no-such"),
        ({"activeDeadlineSeconds": -1}, "Invalid", "spec.activeDeadlineSeconds"),
        ({"hostNetwork": True}, "PodSecurity", "host namespaces"),
    ],
)
def test_each_refusal_has_its_reason_and_the_servers_message(
    run_space: Space, spec: Json, reason: str, words: str
) -> None:
    """One attempt at a time, for what meets one pod would meet the next; one Event for all."""
    enforce = "pod-security.kubernetes.io/enforce=baseline"
    run_space.kubectl("label", "namespace", run_space.name, enforce)
    template = {"spec": {"containers": [CONTAINER], **spec}}
    live = create_run(run_space, "refused", framework="jax", replicas=WORKERS, template=template)
    assert words in until_refused(live, reason)
    assert live.pods() == {}
    assert nothing_counted(live)
    assert live.status["phase"] == "Pending"
    live.until("an Event says so", lambda: reason in {e["reason"] for e in live.events()})
    assert [each["reason"] for each in live.events()].count(reason) == 1


def test_a_pod_of_the_run_before_is_not_this_runs(run_space: Space) -> None:
    """A Run that was deleted with its pods left behind, and made again under the same name."""
    first = create_run(run_space, "again", framework="jax", replicas=WORKERS)
    before = first.until_running(*FOUR)
    run_space.kubectl("delete", "run", "again", "--cascade=orphan")
    second = create_run(run_space, "again", framework="jax", replicas=WORKERS)
    # The Service is the first thing whose name is taken: it is the old run's too.
    until_refused(second, "NameTaken")
    assert {name: pod["metadata"]["uid"] for name, pod in second.pods().items()} == {
        name: pod["metadata"]["uid"] for name, pod in before.items()
    }
    run_space.kubectl("delete", "service,pod", "--all", "--wait=false")
    after = second.until_running(*FOUR)
    assert nothing_counted(second)
    assert not {pod["metadata"]["uid"] for pod in after.values()} & {
        pod["metadata"]["uid"] for pod in before.values()
    }


@pytest.mark.parametrize("template", [{"spec": {"containers": []}}, {"spec": {}}])
def test_a_run_of_which_no_pods_can_be_made_says_why_and_is_over(
    run_space: Space, template: Any
) -> None:
    """What the API's own rules let through is judged by the plan; the status has every problem."""
    live = create_run(run_space, "impossible", framework="jax", replicas=WORKERS, template=template)
    status = live.until_phase("Failed")
    failed = live.condition("Failed")
    assert (failed["status"], failed["reason"]) == ("True", "InvalidRun")
    assert "containers" in failed["message"]
    assert status["message"] == failed["message"]
    live.until("an Event says so", lambda: live.events() != [])
    assert [event["reason"] for event in live.events()] == ["InvalidRun"]
    assert live.pods() == {}
