"""Which nodes get a DaemonSet's pods, and on which they stay Pending."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wording import mentions
from webhook.decision.arrival import Cluster
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.replicas import Replicas, evaluate_template
from webhook.evaluation.templates import templates_of
from webhook.evaluation.world import World
from webhook.placement.nodes import Node, by_name
from webhook.policy.load import load
from webhook.workloads.object import Object

Json = dict[str, Any]
NO_POLICY = ""
REMOVING = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: few}
spec: {requirements: {allowedTolerations: {patterns: [], remove: true}}}
"""


def taint(key: str, effect: str = "NoSchedule") -> Json:
    return {"key": key, "effect": effect}


NODES = [
    Node("plain", {"kind": "plain"}, []),
    Node("cordoned", {}, [], unschedulable=True),
    Node("full-disk", {}, [taint("node.kubernetes.io/disk-pressure")]),  # type: ignore[list-item]
    Node("lost", {}, [taint("node.kubernetes.io/unreachable", "NoExecute")]),  # type: ignore[list-item]
    Node("no-network", {}, [taint("node.kubernetes.io/network-unavailable")]),  # type: ignore[list-item]
    Node("spot", {}, [taint("spot")]),  # type: ignore[list-item]
]
ALWAYS = ("plain", "cordoned", "full-disk", "lost")


def evaluated(policies: str, **spec: Any) -> list[Replicas]:
    """The pods of a DaemonSet with this pod spec."""
    template = {
        "metadata": {"labels": {"app": "e", "fairlead.dev/run": "r"}},
        "spec": {"containers": [{"name": "m", "image": "x"}], **spec},
    }
    value = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "team-a"},
        "spec": {"selector": {"matchLabels": {"app": "e"}}, "template": template},
    }
    world = World(
        policies=load({"p.yaml": policies.encode()} if policies else {}).policies,
        cluster=Cluster(node=by_name(NODES)),
        namespaces={},
        now=None,
        configuration=None,
        classes=None,
        plugins=UNREAD,
        nodes=NODES,
        server=None,
        history=None,
    )
    source = Object("f.yaml", value)
    (found,) = templates_of(source)
    return evaluate_template(world, found, "team-a")


@pytest.mark.parametrize(
    ("spec", "more"),
    [
        ({}, ()),
        ({"hostNetwork": True}, ("no-network",)),
        ({"tolerations": [{"key": "spot", "operator": "Exists"}]}, ("spot",)),
        ({"tolerations": [{"operator": "Exists"}]}, ("no-network", "spot")),
    ],
)
def test_the_controllers_own_tolerations_are_part_of_which_nodes_get_a_pod(
    spec: Json, more: tuple[str, ...]
) -> None:
    """Cordoned, lost and full nodes get one too."""
    (found,) = evaluated(NO_POLICY, **spec)
    assert found.evaluation.nodes is not None
    assert found.evaluation.nodes.last.admitted == (*ALWAYS, *more)


def test_pods_that_lose_their_templates_toleration_stay_pending_and_that_is_said() -> None:
    """The controller makes one for each node that its template tolerates, and no node takes it."""
    (found,) = evaluated(REMOVING, tolerations=[{"key": "spot", "operator": "Exists"}])
    assert found.evaluation.nodes is not None
    assert found.evaluation.nodes.last.admitted == ALWAYS
    mentions(
        " ".join(found.warnings), "takes away spot", "stay Pending on 1 of its 5 nodes", "spot"
    )


ON_PLAIN = """
---
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: plain-ones}
spec: {requirements: {nodeSelector: {kind: plain}}}
"""


def test_pods_that_are_rejected_because_of_their_node_do_not_stay_pending() -> None:
    """No pod is made for the node that a requirement excludes, whatever tolerations are left."""
    everywhere = [{"key": "spot", "operator": "Exists"}]
    whole, off = evaluated(REMOVING + ON_PLAIN, tolerations=everywhere)
    assert "spot" in off.nodes
    assert not any("stay Pending" in each for each in whole.warnings)


def test_what_the_controller_tolerates_is_not_taken_away() -> None:
    """Nothing is said of a DaemonSet whose template tolerates nothing else."""
    (found,) = evaluated(REMOVING)
    assert not found.warnings
    assert found.decision.result == "unchanged"


def test_the_template_is_printed_without_the_controllers_tolerations() -> None:
    """It adds them to each pod."""
    (found,) = evaluated(REMOVING, tolerations=[{"key": "spot", "operator": "Exists"}])
    assert "tolerations" not in found.mutated()["spec"]
