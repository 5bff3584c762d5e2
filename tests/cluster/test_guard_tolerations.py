"""Tolerations that are added to pods of runs after their creation, and the guard against them."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.guards import guarded, type_warnings
from tests.cluster.manifests import Json, pod
from tests.cluster.spaces import Space
from tests.control_planes import clear_namespace
from tests.wording import mentions
from webhook import names
from webhook.guards import capacity_guard
from webhook.interception import select_sources, webhooks
from webhook.placement.shapes import Toleration
from webhook.placement.tolerations import covered
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl

SOURCES = ("fairlead", "polyaxon", "namespace")
MARKS = [mark for source in select_sources(SOURCES) for mark in source.marks]
SPOT = "cloud.google.com/gke-spot"
GPU = "nvidia.com/gpu"
EXEMPT = "system:serviceaccount:queues:controller"
REFUSED = "cannot be added to an existing pod"

ON_SPOT: Toleration = {"key": SPOT, "operator": "Equal", "value": "true", "effect": "NoSchedule"}
ANY_SPOT: Toleration = {"key": SPOT, "operator": "Exists"}
TOLERATIONS: list[Toleration] = [
    ON_SPOT,
    ANY_SPOT,
    {"key": SPOT, "value": "true"},
    {"key": SPOT, "value": "false", "effect": "NoSchedule"},
    {"key": SPOT, "operator": "Exists", "effect": "NoSchedule"},
    {"key": SPOT, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5},
    {"operator": "Exists", "effect": "NoSchedule"},
    {"operator": "Exists"},
    {"key": GPU, "operator": "Exists"},
    {"key": "elsewhere", "operator": "Exists"},
    {"key": "elsewhere", "value": "x", "effect": "NoExecute"},
]


class Hall(Space):
    """A space whose pods are guarded; updates of them are tried, and not stored."""

    def updated(self, before: Json, after: Json, user: str = "") -> str:
        """Why the pod may not become `after`; empty if it may."""
        name = before["metadata"]["name"]
        assert after["metadata"]["name"] == name
        path = f"/api/v1/namespaces/{self.name}/pods/{name}?dryRun=All"
        if user:
            whose = ("--as", user, "--as-group", "system:masters")
            done = self.kubectl.run(
                "replace", "--dry-run=server", *whose, "-f", "-", stdin=json.dumps(after)
            )
            return done.stderr
        status, answer = self.plane.api.call("PUT", path, after)
        return "" if status == 200 else answer["message"]

    def made(self, name: str = "", labels: Json | None = None, **spec: Any) -> Json:
        """A pod, as the API server has stored it; nobody schedules it meanwhile."""
        stored: Json = self.plane.api.create(
            f"/api/v1/namespaces/{self.name}/pods",
            pod(name or f"p-{uuid.uuid4().hex[:8]}", labels=labels, schedulerName="nobody", **spec),
        )
        return stored


def with_tolerations(seen: Json, *added: Toleration) -> Json:
    """The pod with these, too."""
    after = copy.deepcopy(seen)
    after["spec"]["tolerations"] = [*seen["spec"].get("tolerations", ()), *added]
    return after


@pytest.fixture(scope="module")
def hall(control_plane: ControlPlane, cluster_kubectl: Kubectl) -> Iterator[Hall]:
    """A namespace whose pods of runs are guarded, those of Polyaxon among them."""
    name = f"test-{uuid.uuid4().hex[:10]}"
    control_plane.create_namespace(name)
    hall = Hall(control_plane, cluster_kubectl.within(name), name)
    entries = webhooks(SOURCES, only_namespaces=[name])
    first = hall.made("first", {names.RUN: "r"})
    other = hall.made("other", {"app.kubernetes.io/managed-by": "polyaxon"})

    def in_effect() -> bool:
        found = [hall.updated(each, with_tolerations(each, ANY_SPOT)) for each in (first, other)]
        return all(REFUSED in each for each in found)

    with guarded(control_plane, capacity_guard(entries, MARKS, [EXEMPT]), in_effect):
        yield hall
    clear_namespace(control_plane, name)


def test_the_expressions_are_sound(hall: Hall) -> None:
    """The API server's own check of their types finds nothing."""
    assert type_warnings(hall.plane, names.TOLERATIONS_GUARD) == []


@pytest.mark.parametrize("at", range(len(TOLERATIONS)))
def test_only_existing_tolerations_may_be_repeated(hall: Hall, at: int) -> None:
    """The guard agrees with the algebra of placement on each pair of tolerations."""
    own = TOLERATIONS[at]
    before = hall.made(tolerations=[own])
    # The API server's own tolerations of nodes that are lost cover nothing here.
    for added in TOLERATIONS:
        wider = not covered(added, [own])
        said = hall.updated(before, with_tolerations(before, added))
        assert (REFUSED in said) is wider, (own, added, said)
        assert wider or said == ""


def test_several_at_once_are_judged_one_by_one(hall: Hall) -> None:
    """One that is there does not hide another; the message names the one."""
    before = hall.made(tolerations=[ON_SPOT])
    said = hall.updated(before, with_tolerations(before, ON_SPOT, {"key": GPU, "value": "x"}))
    assert f"a toleration of {GPU} cannot" in said
    assert names.CAPACITY in said
    said = hall.updated(before, with_tolerations(before, ON_SPOT, {"operator": "Exists"}))
    mentions(said, REFUSED, "of every taint")


def test_other_updates_and_other_pods_are_left_alone(hall: Hall) -> None:
    """Labels, annotations, a deletion; and pods that belong to no run."""
    before = hall.made(tolerations=[ON_SPOT])
    after = copy.deepcopy(before)
    after["metadata"]["labels"]["stage"] = "debug"
    after["metadata"]["annotations"] = {"note": "x"}
    assert hall.updated(before, after) == ""
    assert (
        hall.updated(before, {**before, "spec": {**before["spec"], "activeDeadlineSeconds": 9}})
        == ""
    )
    hall.kubectl("delete", "pod", before["metadata"]["name"], "--wait=false")
    free = hall.made(labels={"app.kubernetes.io/managed-by": "helm"})
    assert hall.updated(free, with_tolerations(free, ANY_SPOT)) == ""


@pytest.mark.parametrize(
    ("labels", "then"),
    [
        ({names.RUN: "r"}, {}),
        ({"app.kubernetes.io/managed-by": "polyaxon"}, {}),
        (
            {"app.kubernetes.io/managed-by": "polyaxon"},
            {"app.kubernetes.io/managed-by": "helm"},
        ),
    ],
)
def test_a_mark_is_not_taken_off(hall: Hall, labels: Json, then: Json) -> None:
    """Or an update later the pod would be nobody's business."""
    before = hall.made(labels=labels)
    after = copy.deepcopy(before)
    after["metadata"]["labels"] = then
    assert "keeps the labels that mark it" in hall.updated(before, after)


def test_a_mark_may_change_its_value_where_any_value_marks(hall: Hall) -> None:
    """It still marks the pod."""
    before = hall.made()
    after = copy.deepcopy(before)
    after["metadata"]["labels"][names.RUN] = "another"
    assert hall.updated(before, after) == ""


def test_the_cluster_s_own_programs_may_do_their_work(hall: Hall) -> None:
    """A kubelet and the node lifecycle controller write a status, a controller takes off a
    finalizer, the scheduler binds the pod."""
    path = f"/api/v1/namespaces/{hall.name}/pods"
    held = pod("held", labels={names.RUN: "r"}, schedulerName="nobody")
    held["metadata"]["finalizers"] = ["example.com/held"]
    stored = hall.plane.api.create(path, held)
    lost = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager"}
    status = json.dumps({"status": {"conditions": [lost]}})
    hall.kubectl("patch", "pod", "held", "--subresource=status", "--type=merge", "-p", status)
    hall.kubectl("patch", "pod", "held", "--type=merge", "-p", '{"metadata": {"finalizers": null}}')
    node = hall.kubectl.json("get", "nodes")["items"][0]["metadata"]["name"]
    bound = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "held"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    hall.plane.api.create(f"{path}/held/binding", bound)
    seen = hall.plane.api.get(f"{path}/held")
    assert seen["spec"]["nodeName"] == node
    assert seen["spec"]["tolerations"] == stored["spec"]["tolerations"]
    assert "finalizers" not in seen["metadata"]


def test_a_gate_opens_without_a_toleration(hall: Hall) -> None:
    """A queue narrows the selector of a pod when its turn comes, whoever the queue is; what its
    flavor tolerates may be added by exempt users only."""
    before = hall.made(schedulingGates=[{"name": "example.com/queue"}])
    after = copy.deepcopy(before)
    after["spec"]["schedulingGates"] = []
    after["spec"]["nodeSelector"] = {"pool": "a"}
    assert hall.updated(before, after) == ""
    assert REFUSED in hall.updated(before, with_tolerations(after, ANY_SPOT))
    assert hall.updated(before, with_tolerations(after, ANY_SPOT), user=EXEMPT) == ""


def test_who_is_exempt_may(hall: Hall) -> None:
    """A queue that gives pods their nodes when their turn comes; and nobody else."""
    before = hall.made()
    after = with_tolerations(before, ANY_SPOT)
    assert hall.updated(before, after, user=EXEMPT) == ""
    assert REFUSED in hall.updated(before, after, user="somebody")


def test_a_long_list_is_within_the_bounds_of_what_an_expression_may_cost(hall: Hall) -> None:
    """Tolerations beside tolerations are compared in pairs; nobody has so many."""
    many: list[Toleration] = [
        {"key": SPOT, "value": f"v{at}", "effect": "NoSchedule"} for at in range(100)
    ]
    before = hall.made(tolerations=many)
    assert hall.updated(before, with_tolerations(before, many[-1])) == ""
    assert REFUSED in hall.updated(before, with_tolerations(before, ANY_SPOT))
