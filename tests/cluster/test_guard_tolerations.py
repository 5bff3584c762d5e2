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
KEYS = {SPOT, GPU}
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

    with guarded(control_plane, capacity_guard(entries, MARKS, KEYS, [EXEMPT]), in_effect):
        yield hall
    clear_namespace(control_plane, name)


def test_the_expressions_are_sound(hall: Hall) -> None:
    """The API server's own check of their types finds nothing."""
    assert type_warnings(hall.plane, names.TOLERATIONS_GUARD) == []


@pytest.mark.parametrize("at", range(len(TOLERATIONS)))
def test_only_existing_tolerations_may_be_repeated(hall: Hall, at: int) -> None:
    """Of each toleration beside each other one: as the algebra of placement says it."""
    own = TOLERATIONS[at]
    before = hall.made(tolerations=[own])
    # The API server's own tolerations of nodes that are lost cover nothing here.
    for added in TOLERATIONS:
        wider = added.get("key", SPOT) in KEYS and not covered(added, [own])
        said = hall.updated(before, with_tolerations(before, added))
        assert (REFUSED in said) is wider, (own, added, said)
        assert wider or said == ""


def test_where_policies_say_which_are_allowed_none_may_be_added(
    control_plane: ControlPlane, cluster_kubectl: Kubectl, namespace: str
) -> None:
    """Whatever its key: which policy matches the pod is not the guard's to know."""
    space = Hall(control_plane, cluster_kubectl.within(namespace), namespace)
    before = space.made(labels={names.RUN: "r"}, tolerations=[ON_SPOT])
    elsewhere: Toleration = {"key": "elsewhere", "operator": "Exists"}
    made = capacity_guard(webhooks(SOURCES, only_namespaces=[namespace]), MARKS, None)
    # Beside that of the hall.
    name = f"{names.TOLERATIONS_GUARD}-every"
    guard = json.loads(json.dumps(made).replace(names.TOLERATIONS_GUARD, name))

    def refuses() -> bool:
        return REFUSED in space.updated(before, with_tolerations(before, elsewhere))

    with guarded(control_plane, guard, refuses):
        assert type_warnings(control_plane, name) == []
        assert space.updated(before, with_tolerations(before, ON_SPOT)) == ""


def test_several_at_once_are_judged_one_by_one(hall: Hall) -> None:
    """One that is harmless does not hide another; the message names the one."""
    before = hall.made()
    elsewhere: Toleration = {"key": "elsewhere", "operator": "Exists"}
    said = hall.updated(before, with_tolerations(before, elsewhere, {"key": GPU, "value": "x"}))
    assert f"a toleration of {GPU} cannot" in said
    assert names.CAPACITY in said
    said = hall.updated(before, with_tolerations(before, elsewhere, {"operator": "Exists"}))
    mentions(said, REFUSED, "of every taint")


def test_other_updates_and_other_pods_are_left_alone(hall: Hall) -> None:
    """Labels, annotations, a deletion; and pods that belong to no run."""
    before = hall.made(tolerations=[ON_SPOT])
    after = copy.deepcopy(before)
    after["metadata"]["labels"]["stage"] = "debug"
    after["metadata"]["annotations"] = {"note": "x"}
    assert hall.updated(before, after) == ""
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
    assert hall.updated(before, with_tolerations(before, {"key": "other", "value": "x"})) == ""
    assert REFUSED in hall.updated(before, with_tolerations(before, ANY_SPOT))
