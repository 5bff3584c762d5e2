"""A live pod, compared with what policies would do with a new one."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.laws.strategies import document, excepted_lists, pods
from tests.laws.world import policy_set
from tests.objects import an_object
from webhook.decision.arrival import Cluster
from webhook.errors import InvalidPod
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.world import World
from webhook.names import RUN
from webhook.policy.policy_set import PolicySet
from webhook.questions.live.live_pods import compare_pod
from webhook.workloads.object import ANSWERED, Object
from webhook.workloads.template import PodTemplate

Json = dict[str, Any]


def world_of(policies: PolicySet) -> World:
    return World(
        policies=policies,
        cluster=Cluster(),
        namespaces={},
        now=None,
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


@settings(max_examples=examples(400), deadline=None)
@given(pods(), excepted_lists(), st.booleans())
@example(WRITTEN, [BOTH], False)
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
