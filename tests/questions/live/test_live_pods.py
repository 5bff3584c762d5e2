"""A live pod, compared with what policies would do with a new one."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.laws.strategies import document, excepted_lists, pods
from tests.laws.world import policy_set
from tests.objects import an_object
from webhook.decision.arrival import Cluster
from webhook.errors import InvalidPod
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.templates import templates_of
from webhook.evaluation.world import World
from webhook.names import HISTORY, RUN
from webhook.policy.policy_set import PolicySet
from webhook.questions.live.live_pods import compare_pod
from webhook.times import to_second
from webhook.workloads.object import ANSWERED, Object
from webhook.workloads.template import PodTemplate

Json = dict[str, Any]


def world_of(policies: PolicySet, now: datetime | None = None) -> World:
    return World(
        policies=policies,
        cluster=Cluster(),
        namespaces={},
        now=now,
        configuration=None,
        classes=None,
        plugins=UNREAD,
        nodes=None,
        server=None,
        history=None,
    )


# Policy and author wrote the same value, which only fills what is empty.
BOTH = document(
    "PlacementPolicy",
    "p",
    {
        "defaults": {
            "nodeSelector": {"pool": "a"},
            "schedulerName": "own",
            "patchStrategy": "IsNull",
        }
    },
)
WRITTEN: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {RUN: "r"}},
    "spec": {
        "containers": [{"name": "m", "image": "i"}],
        "nodeSelector": {"pool": "a", "gen": "1"},
    },
}
# Its author wants what no node has: a policy that writes one of the two is not what leaves no node.
CONTRADICTS = document("PlacementPolicy", "p", {"overrides": {"nodeSelector": {"pool": "a"}}})
NOWHERE: Json = {
    **WRITTEN,
    "spec": {
        **WRITTEN["spec"],
        "nodeSelector": {"pool": "a"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["b"]}]}
                    ]
                }
            }
        },
    },
}


@settings(max_examples=examples(400), deadline=None)
@given(pods(), excepted_lists(), st.booleans())
@example(WRITTEN, [BOTH], False)
@example(NOWHERE, [CONTRADICTS], False)
def test_a_pod_that_was_placed_a_moment_ago_is_placed_as_a_new_one(
    pod: Json, policies: list[Json], owned: bool
) -> None:
    """Whatever its author wrote, with and without the template of its owner."""
    world = world_of(policy_set(policies))
    try:
        found = world.evaluate(pod, "default", led=False)
    except InvalidPod:
        assume(False)
    assume(found.allowed and found.decision.identity is not None)
    stored = found.stored()
    metadata = {**stored["metadata"], "namespace": "default", "uid": "u"}
    job = an_object("batch/v1", "Job", "j", {"template": pod})
    template = PodTemplate(Object(ANSWERED, job), ("spec", "template"))
    live = compare_pod(
        world, Object(ANSWERED, {**stored, "metadata": metadata}), [template] if owned else ()
    )
    assert live.state == "same", live.reason


NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
FALLBACK = [
    document("CapacityClass", "spot", {"nodes": [{"labels": {"spot": "true"}}]}),
    document(
        "PlacementPolicy",
        "on-spot",
        {
            "overrides": {
                "capacity": [
                    {
                        "class": "spot",
                        "mode": "Constrain",
                        "fallback": {"afterDisruptions": 1, "returnAfter": "1h"},
                    }
                ]
            }
        },
    ),
]
RUN_OBJECT: Json = {
    "apiVersion": "fairlead.dev/v1alpha1",
    "kind": "Run",
    "metadata": {"name": "r", "namespace": "default", "uid": "u", "resourceVersion": "1"},
    "spec": {
        "template": {"spec": {"containers": [{"name": "main", "image": "a.invalid/a"}]}},
        "replicas": {"worker": {"count": 1}},
    },
}


def _lost(*hours: int) -> Json:
    """The history of a replica under which nodes were lost so many hours before NOW."""
    events = [{"class": "spot", "time": to_second(NOW - timedelta(hours=each))} for each in hours]
    return {"asOf": to_second(NOW - timedelta(hours=max(hours))), "events": events}


@pytest.mark.parametrize(
    ("then", "since", "words"),
    [
        ((2,), (2,), ("given up until 2026-11-30T11:00:00Z", "of now it is required")),
        ((), (0,), ("created it was required", "given up until 2026-11-30T13:00:00Z")),
        ((0,), (0,), ()),
        ((2,), (2, 0), ()),
        ((), (), ()),
        ((0,), (), ("given up until 2026-11-30T13:00:00Z", "of now it is required")),
        ((2,), None, ("given up until 2026-11-30T11:00:00Z", "of now it is required")),
        ((0,), None, ()),
    ],
    ids=["over", "since", "as then", "again", "none", "forgotten", "over, no Run", "then, no Run"],
)
def test_a_pod_of_a_run_is_compared_with_a_new_one_by_the_history_of_now(
    then: tuple[int, ...], since: tuple[int, ...] | None, words: tuple[str, ...]
) -> None:
    """By that of its Run; if there is none any more (`since` is None), by what the pod knows."""
    policies = policy_set(FALLBACK)
    run = copy.deepcopy(RUN_OBJECT)
    history = [{"indexes": "0", **_lost(*since)}] if since else []
    run["status"] = {"replicas": {"worker": {"history": history}}}
    templates = templates_of(Object(ANSWERED, run))
    pod = templates[0].pod(0)
    if then:
        pod["metadata"].setdefault("annotations", {})[HISTORY] = json.dumps(_lost(*then))
    created = NOW - timedelta(hours=max(then, default=1))
    stored = world_of(policies, created).evaluate(pod, "default", led=False).stored()
    stored["metadata"] |= {"namespace": "default", "uid": "p"}
    known = () if since is None else templates
    live = compare_pod(world_of(policies, NOW), Object(ANSWERED, stored), known)
    assert live.state == ("otherwise" if words else "same"), live.reason
    for each in words:
        assert each in live.reason
