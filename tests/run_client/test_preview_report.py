"""Replicas of which the same becomes are together, and each kind is decided on once."""

from __future__ import annotations

from typing import Any

from tests.policy_tests.writing import CLASS, policy
from tests.run.runs import a_run, containers, spec_of
from webhook.decision.arrival import Cluster
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.world import World
from webhook.policy.load import load
from webhook.run.plan import plan
from webhook.run_client.preview_report import Group, groups
from webhook.run_client.run_files import Planned


def world(*texts: str) -> World:
    """Who decides by these policies."""
    policies = load({"policies.yaml": (CLASS + "".join(texts)).encode()}).policies
    return World(policies, Cluster(), {}, None, None, {}, UNREAD, None, None, None)


def planned(spec: dict[str, Any]) -> Planned:
    """A Run of a file, with its plan."""
    run = a_run("r", spec)
    return Planned("run.yaml:1:1", run, plan(run))


def grouped(count: int, special: int | None, *texts: str) -> list[tuple[list[int], list[str]]]:
    """Indexes and policies of each group of the workers of a run."""
    resources = {"limits": {"cpu": 1}}
    by_index = [] if special is None else [{"index": special, "resources": resources}]
    spec = {
        "template": spec_of(containers("main")),
        "framework": "jax",
        "replicas": {"worker": {"count": count, "byIndex": by_index}},
    }
    found = groups(planned(spec), world(*texts))
    return [
        (list(each.indexes), list(each.decision.policies if each.decision else ()))
        for each in found
    ]


FIRST = policy("first", "match: {replicaIndexes: [0]}, overrides: {nodeSelector: {a: b}}")


def test_replicas_that_are_alike_are_together() -> None:
    """What they are made of tells them apart, and what policies make of them."""
    assert grouped(5, 2) == [([0, 1, 3, 4], []), ([2], [])]
    assert grouped(4, 2, FIRST) == [([0], ["first"]), ([1, 3], []), ([2], [])]


def test_replicas_after_the_thousandth_are_looked_at_where_policies_turn() -> None:
    """And where they are made otherwise."""
    last = policy("last", "match: {replicaIndexes: [1200]}, overrides: {nodeSelector: {a: b}}")
    usual = [index for index in range(1500) if index != 1200]
    assert grouped(1500, 1200, last) == [(usual, []), ([1200], ["last"])]
    assert grouped(1500, None, last) == [(usual, []), ([1200], ["last"])]


def test_the_patch_of_a_group_fits_each_of_its_pods() -> None:
    """It is made for the first of them."""
    spec = {
        "template": spec_of(containers("main")),
        "framework": "jax",
        "replicas": {"worker": {"count": 3}},
    }
    everywhere = policy("all", "overrides: {nodeSelector: {a: b}}")
    (group,) = groups(planned(spec), world(everywhere))
    assert isinstance(group, Group)
    pods = [group.pod_at(index) for index in group.replicas.all_indexes]
    assert [pod["metadata"]["name"] for pod in pods] == ["r-worker-0", "r-worker-1", "r-worker-2"]
    assert all(pod["spec"]["nodeSelector"] == {"a": "b"} for pod in pods)
    came = group.replicas.arrival.pod
    assert "nodeSelector" not in came["spec"], "the pod as it came is left as it is"
