"""Which results a live pod has in a policy report."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.policy_tests.writing import policy
from webhook import names
from webhook.controller.policies.pod_results import (
    AUDITED,
    UNPLACED,
    UNREADABLE,
    PodJudge,
    judge_pod,
)
from webhook.decision.arrival import Cluster
from webhook.decision.audit import MOST_ALONE
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
    history=None,
)


def pod(**metadata: Any) -> dict[str, Any]:
    own = {"name": "p", "namespace": "research", "uid": "1", "labels": {names.RUN: "r"}}
    return {
        "metadata": {**own, **metadata},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": "Running"},
    }


def test_a_pod_without_a_stamp_is_a_failure() -> None:
    """But not in a namespace whose pods no installation places."""
    judged = judge_pod(pod(), WORLD, None, led=False)
    assert judged is not None
    assert [each.policy for each in judged.results] == [UNPLACED]
    system = judge_pod(pod(namespace="kube-system"), WORLD, None, led=False)
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
    assert judge_pod(other, WORLD, None, led=False) is None


def test_a_pod_that_cannot_be_judged_is_an_error() -> None:
    broken = pod()
    broken["spec"]["tolerations"] = "all"
    judged = judge_pod(broken, WORLD, None, led=False)
    assert judged is not None
    assert [(each.policy, each.result) for each in judged.results] == [(UNREADABLE, "error")]


LEADERS = policy(
    "leaders",
    "enforcement: Audit, match: {coordinator: true}, requirements: {nodeSelector: {pool: a}}",
)


def replica(role: str) -> dict[str, Any]:
    """The first pod of a PaddleJob's role, as its operator labels it."""
    labels = {
        "training.kubeflow.org/job-name": "paddle",
        "training.kubeflow.org/operator-name": "paddlejob-controller",
        "training.kubeflow.org/replica-type": role,
        "training.kubeflow.org/replica-index": "0",
    }
    return pod(name=f"paddle-{role}-0", labels=labels)


@pytest.mark.parametrize("order", [("worker", "master"), ("master", "worker"), ("worker",)])
def test_the_first_worker_leads_where_no_pod_leads_by_its_role(order: tuple[str, ...]) -> None:
    judge = PodJudge(replace(WORLD, policies=load({"p.yaml": LEADERS.encode()}).policies), None)
    found = [*judge.judge([replica(role) for role in order]), *judge.judge_rest()]
    tried = {
        each.name: [result.result for result in each.results if result.policy == "leaders"]
        for each in found
    }
    leader = "paddle-master-0" if "master" in order else "paddle-worker-0"
    assert {name for name, results in tried.items() if results == ["warn"]} == {leader}
    assert len(tried) == len(order)


def tried(name: str, spec: str) -> str:
    return policy(name, f"enforcement: Audit, {spec}")


CONTRADICTING = [
    tried("first", "requirements: {nodeSelector: {pool: a}}"),
    tried("second", "requirements: {nodeSelector: {pool: b}}"),
    tried("third", "overrides: {labels: {run: r}}"),
]


def results_of(policies: list[str], labels: dict[str, str]) -> list[tuple[str, str, str]]:
    world = replace(WORLD, policies=load({"p.yaml": "".join(policies).encode()}).policies)
    judged = judge_pod(pod(labels={names.RUN: "r", **labels}), world, None, led=False)
    assert judged is not None
    return [(e.policy, e.result, e.message) for e in judged.results if e.rule == "audit"]


def test_a_policy_under_audit_is_charged_with_its_own_effect_alone() -> None:
    """The third one changes nothing; what only two together do has a result of its own."""
    first, second, together = results_of(CONTRADICTING, {"run": "r"})
    changes = "under Audit; it would change the placement: nodeSelector[pool]"
    assert (first, second) == (("first", "warn", changes), ("second", "warn", changes))
    assert together[:2] == (AUDITED, "fail")
    assert "first, second, third would reject the pod: nodeSelector[pool]" in together[2]


def test_a_report_says_which_policies_are_not_judged() -> None:
    """Where more are under Audit than are evaluated for one pod."""
    several = [
        tried(f"p{at:02}", "requirements: {labels: {run: r}}") for at in range(MOST_ALONE + 1)
    ]
    (last,) = results_of(several, {"run": "r"})
    assert last[:2] == (f"p{MOST_ALONE}", "skip")
    assert "not judged" in last[2]
