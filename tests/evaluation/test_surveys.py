"""What of a pod also decides about nodes: by the scheduler's plugins that no node answers alone."""

from __future__ import annotations

from typing import Any

import pytest

from webhook.evaluation.answer import nodes_of
from webhook.evaluation.surveys import not_judged
from webhook.names import RUN
from webhook.placement.nodes import Node
from webhook.placement.pod_requests import lacking, requests
from webhook.policy.load import load
from webhook.questions.offline import unread_world, with_nodes

DEVICE = "deviceclass.resource.kubernetes.io/gpu"
IN_VAIN = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}
WISHED = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}
WITH_DEVICE = {"containers": [{"resources": {"limits": {DEVICE: "1", "cpu": "1"}}}]}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}, []),
        (
            {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]},
            ["topologySpreadConstraints"],
        ),
        ({"affinity": {"podAffinity": WISHED, "nodeAffinity": IN_VAIN}}, []),
        ({"affinity": {"podAffinity": IN_VAIN}}, ["podAffinity"]),
        ({"affinity": {"podAntiAffinity": IN_VAIN}}, ["podAntiAffinity"]),
        ({"volumes": [{"name": "a", "emptyDir": {}}]}, []),
        ({"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}]}, ["volumes"]),
        ({"volumes": [{"name": "a", "ephemeral": {"volumeClaimTemplate": {}}}]}, ["volumes"]),
        ({"resourceClaims": [{"name": "a"}]}, ["resourceClaims"]),
        (WITH_DEVICE, [DEVICE]),
        ({**WITH_DEVICE, "nodeName": "n1"}, []),
        ({"affinity": [], "volumes": {}, "topologySpreadConstraints": "x"}, []),
    ],
)
def test_what_is_not_judged(spec: dict[str, Any], found: list[str]) -> None:
    """Neither what is only preferred, nor what a bound pod asks for."""
    assert list(not_judged(spec)) == found


SPREAD = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: spread}
spec:
  defaults:
    topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
"""


@pytest.mark.parametrize(
    ("policy", "own", "said"),
    [
        (SPREAD, [], True),
        (SPREAD.replace("DoNotSchedule", "ScheduleAnyway"), [], False),
        (
            SPREAD.replace("defaults:", "overrides: {labels: {team: a}}").split("    topology")[0],
            [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
            False,
        ),
    ],
)
def test_whether_as_many_nodes_admit_it_as_before_is_known_only_if_as_much_is_judged(
    policy: str, own: list[dict[str, Any]], said: bool
) -> None:
    """A constraint of a policy may exclude nodes, and one of the author's excluded them before."""
    nodes = [Node("n", {"zone": "a"}, [])]
    world = with_nodes(unread_world(load({"p.yaml": policy.encode()}).policies), nodes)
    pod = {
        "metadata": {"name": "p", "labels": {RUN: "r"}},
        "spec": {"containers": [{"name": "c"}], "topologySpreadConstraints": own},
    }
    found = world.evaluate(pod, "research", led=False).nodes
    assert found is not None
    assert nodes_of(found).endswith(", 1 before") == said


def test_devices_of_a_class_are_no_resource_of_a_node() -> None:
    """Other resources still are, beside them."""
    asked = requests(WITH_DEVICE)
    assert asked[DEVICE] == 1
    assert lacking(asked, {"pods": 1, "cpu": 1000}) is None
    lack = lacking(asked, {"pods": 1, "cpu": 10})
    assert lack is not None
    assert lack[0] == "cpu"
