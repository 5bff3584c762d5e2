"""What a cluster tells of where pods go: labels of namespaces, the default PriorityClass."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kube.fake_api import answer_of
from tests.policy_tests.writing import policy
from tests.wording import Wording
from webhook.errors import ClusterError
from webhook.evaluation.world import World
from webhook.kube.client import Client
from webhook.policy.load import load
from webhook.questions.cluster_surroundings import (
    read_classes,
    read_labels,
    read_world,
    with_selecting,
)
from webhook.questions.offline import unread_world

Json = dict[str, Any]
ML: Json = {"metadata": {"name": "ml", "labels": {"team": "vision"}}, "status": {}}
WEB: Json = {"metadata": {"name": "web"}}
NAME = "kubernetes.io/metadata.name"


def asked(
    folder: Path, question: Callable[[Client], Awaitable[object]], *classes: Json
) -> tuple[object, list[str]]:
    """The answer of a cluster with two namespaces, and the paths that it took."""
    paths: list[str] = []
    there = {
        "/api/v1/namespaces/ml": ML,
        "/api/v1/namespaces": [ML, WEB],
        "/apis/scheduling.k8s.io/v1/priorityclasses": list(classes),
    }
    forbidden = ["/apis/node.k8s.io/v1/runtimeclasses"]
    return answer_of(there, folder, question, forbidden, paths), paths


def test_labels_of_all_namespaces_come_in_one_list(tmp_path: Path) -> None:
    """Each has its own name for a label, whether or not the API server wrote it there."""
    labels, paths = asked(tmp_path, lambda client: read_labels(client, ""))
    assert labels == {"ml": {NAME: "ml", "team": "vision"}, "web": {NAME: "web"}}
    assert paths == ["/api/v1/namespaces"]


def test_of_one_namespace_no_other_is_read(tmp_path: Path, wording: Wording) -> None:
    """Who may read one only can ask about it; one that is not there is told by its name."""
    labels, paths = asked(tmp_path, lambda client: read_labels(client, "ml"))
    assert labels == {"ml": {NAME: "ml", "team": "vision"}}
    assert paths == ["/api/v1/namespaces/ml"]
    with pytest.raises(ClusterError) as unknown:
        asked(tmp_path, lambda client: read_labels(client, "nope"))
    wording(str(unknown.value))


def test_which_classes_there_are_is_known_as_far_as_they_may_be_listed(tmp_path: Path) -> None:
    """RuntimeClasses may not, here; and a cluster without DRA has no DeviceClass."""
    low, high = {"metadata": {"name": "low"}}, {"metadata": {"name": "high"}}
    found, paths = asked(tmp_path, read_classes, low, high)
    assert found == {"PriorityClass": {"low": low, "high": high}, "DeviceClass": {}}
    assert paths[1:3] == [
        "/apis/node.k8s.io/v1/runtimeclasses",
        "/apis/resource.k8s.io/v1/deviceclasses",
    ]


def test_the_default_priority_class_is_that_of_the_lowest_value(tmp_path: Path) -> None:
    """As the Priority plugin chooses among several; without any there is none."""
    low: Json = {"metadata": {"name": "low"}, "value": 1, "globalDefault": True}
    high: Json = {"metadata": {"name": "high"}, "value": 9, "globalDefault": True}
    plain: Json = {"metadata": {"name": "plain"}, "value": 0}
    notes: list[str] = []

    async def default(client: Client) -> str:
        world = await read_world(client, load({}).policies, ["ml"], None, notes)
        return world.cluster.default_priority_class

    assert asked(tmp_path, default, high, low, plain)[0] == "low"
    assert asked(tmp_path, default, plain)[0] == ""
    assert not any("priorityclasses" in each for each in notes)


def test_what_selects_pods_is_read_where_policies_set_labels(
    tmp_path: Path, wording: Wording
) -> None:
    """Of each object its selector alone; what may not be listed is unknown."""
    service: Json = {"metadata": {"name": "web", "namespace": "ml", "labels": {"a": "b"}}}
    service["spec"] = {"selector": {"team": "ml"}, "ports": []}
    core, apps = "/api/v1/namespaces/ml", "/apis/apps/v1/namespaces/ml"
    lists = (
        f"{core}/replicationcontrollers",
        f"{apps}/replicasets",
        f"{apps}/daemonsets",
        "/apis/batch/v1/namespaces/ml/jobs",
        "/apis/networking.k8s.io/v1/namespaces/ml/networkpolicies",
    )
    there = {f"{core}/services": [service], **{each: [] for each in lists}}
    forbidden = ["/apis/policy/v1/namespaces/ml/poddisruptionbudgets"]
    notes: list[str] = []
    paths: list[str] = []

    def read(text: str) -> World:
        world = unread_world(load({"p.yaml": text.encode()}).policies)

        async def ask(client: Client) -> World:
            return await with_selecting(client, world, ["ml"], notes)

        found: World = answer_of(there, tmp_path, ask, forbidden, paths)
        return found

    assert read(policy("pool", "defaults: {nodeSelector: {pool: a}}")).plugins.selecting == {}
    assert paths == []
    found = read(policy("team", "defaults: {labels: {team: ml}}")).plugins.selecting
    kept = {"metadata": {"name": "web", "namespace": "ml"}, "spec": {"selector": {"team": "ml"}}}
    assert found == {"ml": [("Service", kept)]}
    (note,) = notes
    wording(note)
