"""Which of a Run's own terms decide whether waiting for a class counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.objects import required_affinity
from tests.run.runs import a_run, containers, spec_of
from webhook.placement import capacity
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import Node
from webhook.run.observed import OwnedPod
from webhook.run.own_terms import uncounted_waits
from webhook.run.plan import Plan, plan

Json = dict[str, Any]
SPOT = capacity.compiled("spot", [capacity.shape({"lifecycle": "spot"}, [])], [])
NODES = NodeGroups(
    (Node("a", {"lifecycle": "spot", "zone": "a"}, []), Node("b", {"zone": "b"}, []))
)
ZONE = {"nodeSelector": {"zone": "b"}}


def planned(template: Json | None = None, **worker: Any) -> Plan:
    spec = {
        "framework": "jax",
        "replicas": {"worker": {"count": 2, **worker}},
        "template": spec_of(containers("main"), **(template or {})),
    }
    return plan(a_run("r", spec))


def waiting(index: int, **selector: str) -> OwnedPod:
    """A pod with this nodeSelector that waits for a node of spot."""
    pod = OwnedPod(f"r-worker-{index}", f"uid-{index}", "", "worker", index, 0, "Pending")
    return replace(
        pod,
        unscheduled="0/2 nodes are available",
        fallback=(("spot", 60),),
        selector=tuple(selector.items()),
    )


def uncounted(plan: Plan, *pods: OwnedPod) -> list[int]:
    """The indexes of the pods whose waiting does not count."""
    found = uncounted_waits(plan, pods, {"spot": SPOT}.get, NODES)
    return [pod.index for pod in pods if (pod.name, "spot") in found]


@pytest.mark.parametrize(
    "made",
    [
        planned(ZONE),
        planned(environment=ZONE),
        planned(
            {
                "affinity": required_affinity(
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
                )
            }
        ),
    ],
)
def test_terms_of_template_and_environment_are_the_authors(made: Plan) -> None:
    """Whatever else the pods have."""
    assert uncounted(made, waiting(0, zone="b"), waiting(1, zone="b", team="x")) == [0, 1]


def test_a_term_of_one_replica_decides_for_that_one() -> None:
    """The others wait for the class."""
    made = planned(byIndex=[{"index": 1, "environment": ZONE}])
    assert uncounted(made, waiting(0), waiting(1, zone="b")) == [1]


def test_what_a_policy_sets_is_not_the_authors() -> None:
    """Neither a key that it adds, nor one that it replaced or removed."""
    assert uncounted(planned(), waiting(0, zone="b")) == []
    assert uncounted(planned(ZONE), waiting(0), waiting(1, zone="a")) == []


@pytest.mark.parametrize(
    "changes", [{"node": "b"}, {"unscheduled": ""}, {"fallback": (("spot", None),)}], ids=str
)
def test_pods_that_wait_for_no_class_are_left_out(changes: Json) -> None:
    """With a node, held by a gate, or of a policy without afterPending."""
    assert uncounted(planned(ZONE), replace(waiting(0, zone="b"), **changes)) == []


def test_every_wait_for_a_class_that_is_not_known_counts() -> None:
    """The webhook's policies may be files, and the controller watches none."""
    pod = replace(waiting(0, zone="b"), fallback=(("other", 60),))
    assert uncounted_waits(planned(ZONE), [pod], {"spot": SPOT}.get, NODES) == {}
