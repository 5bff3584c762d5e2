"""Which results a live pod has in a policy report."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from webhook import names
from webhook.admission.arrival import Cluster
from webhook.controller.policies.pod_results import UNPLACED, UNREADABLE, judge_pod
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.world import World
from webhook.policy.load import load

WORLD = World(
    load({}).policies,
    Cluster(),
    {},
    datetime(2026, 11, 24, tzinfo=UTC),
    configuration=None,
    classes={},
    plugins=UNREAD,
    nodes=None,
    server=None,
)


def pod(**metadata: Any) -> dict[str, Any]:
    """A stored pod of a run."""
    own = {"name": "p", "namespace": "research", "uid": "1", "labels": {names.RUN: "r"}}
    return {
        "metadata": {**own, **metadata},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": "Running"},
    }


def test_a_pod_without_a_stamp_is_a_failure() -> None:
    """But not in a namespace whose pods no installation places."""
    judged = judge_pod(pod(), WORLD, None)
    assert judged is not None
    assert [each.policy for each in judged.results] == [UNPLACED]
    system = judge_pod(pod(namespace="kube-system"), WORLD, None)
    assert system is not None
    assert system.results == ()


@pytest.mark.parametrize(
    "other",
    [
        pod(labels={"app": "x"}),
        pod(deletionTimestamp="2026-11-24T00:00:00Z"),
        pod(annotations={names.MIRROR_POD: "x"}),
        {**pod(), "status": {"phase": "Succeeded"}},
    ],
    ids=["no run", "being deleted", "mirror", "ended"],
)
def test_other_pods_are_in_no_report(other: dict[str, Any]) -> None:
    """Nothing can be done about them, or policies do not apply to them."""
    assert judge_pod(other, WORLD, None) is None


def test_a_pod_that_cannot_be_judged_is_an_error() -> None:
    """And does not end the pass."""
    broken = pod()
    broken["spec"]["tolerations"] = "all"
    judged = judge_pod(broken, WORLD, None)
    assert judged is not None
    assert [(each.policy, each.result) for each in judged.results] == [(UNREADABLE, "error")]
