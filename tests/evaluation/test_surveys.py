"""What of a pod also decides about nodes: by the scheduler's plugins that no node answers alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from webhook.evaluation.answer import nodes_of
from webhook.evaluation.plugins import running_plugins
from webhook.evaluation.surveys import not_judged
from webhook.names import RUN
from webhook.placement.nodes import Node
from webhook.placement.pod_requests import device_resources, lacking, requests, with_devices
from webhook.placement.shapes import Taint
from webhook.policy.load import load
from webhook.questions.offline import unread_world, with_nodes

FPGA = "example.com/fpga"
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
    assert list(not_judged(spec, with_devices(requests(spec), {DEVICE}, ()))) == found


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
    asked = with_devices(requests(WITH_DEVICE), {DEVICE}, ())
    assert lacking(asked, {"pods": 1, "cpu": 1000}) is None
    lack = lacking(asked, {"pods": 1, "cpu": 10})
    assert lack is not None
    assert lack[0] == "cpu"


@pytest.mark.parametrize(
    ("provided", "has", "lacks"),
    [
        ({FPGA}, None, False),
        ({FPGA}, 0, False),
        # A device plugin runs there.
        ({FPGA}, 1, True),
        ({FPGA}, 2, False),
        (set(), None, True),
        ({DEVICE}, None, True),
    ],
)
def test_a_class_gives_devices_where_a_node_has_no_amount(
    provided: set[str], has: int | None, *, lacks: bool
) -> None:
    """As the scheduler does: the class's resource has the name of an extended one."""
    room = {"pods": 1, **({} if has is None else {FPGA: has})}
    asked = with_devices({FPGA: 2}, provided, ())
    lack = lacking(asked, room)
    assert (lack is not None) is lacks
    assert lack is None or (lack.resource, lack.asked, lack.available) == (FPGA, 2, has or 0)


@pytest.mark.parametrize(
    ("rooms", "delegated"),
    [
        ([{"pods": 1}], True),
        ([{"pods": 1, FPGA: 0}], True),
        ([{"pods": 1, FPGA: 1}, {"pods": 1}], False),
        # It does not say what it has.
        ([None, {"pods": 1}], False),
    ],
)
def test_where_classes_are_not_known_no_node_has_what_they_may_provide(
    rooms: list[dict[str, int] | None], *, delegated: bool
) -> None:
    """A resource that a node has is a device plugin's, as far as anybody knows."""
    asked = with_devices({FPGA: 9, "cpu": 1}, None, rooms)
    assert (asked != {FPGA: 9, "cpu": 1}) is delegated


def test_classes_provide_their_own_name_and_their_resource() -> None:
    """None is not known; no class provides nothing."""
    named = {"spec": {"extendedResourceName": FPGA}}
    implicit = "deviceclass.resource.kubernetes.io/x"
    found = device_resources({"gpu": {"spec": {}}, "x": named})
    assert found == frozenset({DEVICE, FPGA, implicit})
    assert device_resources({}) == frozenset()
    assert device_resources(None) is None


@pytest.mark.parametrize(("owner", "admitted"), [("DaemonSet", ()), ("ReplicaSet", ("n",))])
def test_a_daemon_sets_controller_knows_nothing_of_what_plugins_add(
    owner: str, admitted: tuple[str, ...]
) -> None:
    """It makes no pod for a node whose taint the template does not tolerate."""
    taint: Taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    nodes = [Node("n", {}, [taint], allocatable={"pods": 1, "nvidia.com/gpu": 1})]
    world = with_nodes(unread_world(load({}).policies), nodes)
    running = running_plugins(["ExtendedResourceToleration"])
    world = replace(world, plugins=world.plugins._replace(running=running))
    by = {"apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "1", "controller": True}
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    pod = {
        "metadata": {"name": "p", "labels": {RUN: "r"}, "ownerReferences": [by]},
        "spec": {"containers": [{"name": "c", "resources": limits}]},
    }
    found = world.evaluate(pod, "research", led=False).nodes
    assert found is not None
    assert (found.last.admitted, found.unread.what) == (admitted, "")
