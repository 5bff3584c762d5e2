"""Objects of any shape, from a file: an answer or a FairleadError, and never a fault of ours."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlead
from tests.policy.examples import GONE, changed, places

LABELS = {"fairlead.dev/run": "r"}
GPU = {"requests": {"nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
SPEC: dict[str, Any] = {
    "restartPolicy": "Never",
    "containers": [{"name": "c", "image": "example.invalid/x", "resources": GPU}],
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
    "runtimeClassName": "c",
}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": LABELS}, "spec": SPEC}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": SPEC}
GROUP = {"groupName": "g", "replicas": 2, "template": TEMPLATE}
MANIFESTS: list[dict[str, Any]] = [
    POD,
    {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"parallelism": 2, "template": TEMPLATE},
    },
    {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "r"},
        "spec": {"headGroupSpec": {"template": TEMPLATE}, "workerGroupSpecs": [GROUP]},
    },
    {
        "apiVersion": "fairlead.dev/v1alpha1",
        "kind": "Run",
        "metadata": {"name": "r"},
        "spec": {"replicas": {"worker": {"count": 2}}, "template": TEMPLATE},
    },
]
SURROUNDINGS: list[dict[str, Any]] = [
    {"kind": "Namespace", "metadata": {"name": "default", "labels": {"a": "b"}}},
    {
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "1"}}]},
    },
    {
        "kind": "RuntimeClass",
        "metadata": {"name": "c"},
        "handler": "c",
        "overhead": {"podFixed": {"cpu": "1"}},
        "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "a"}]},
    },
    {"kind": "PriorityClass", "metadata": {"name": "p"}, "value": 3, "globalDefault": True},
]
NODE: dict[str, Any] = {
    "kind": "Node",
    "metadata": {"name": "n", "labels": {"a": "b"}},
    "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}], "unschedulable": True},
    "status": {"allocatable": {"cpu": "1", "pods": "110", "nvidia.com/gpu": "1"}},
}
PARTS = {"manifests": MANIFESTS, "namespaces": SURROUNDINGS, "nodes": [NODE]}
CHANGES = [
    (part, at, path)
    for part, objects in PARTS.items()
    for at, each in enumerate(objects)
    for path in places(each)
]
POLICY = """
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {name: odd}
spec: {match: {resources: [nvidia.com/gpu]}, defaults: {nodeSelector: {a: b}}}
"""
ODD = st.sampled_from([GONE, None, 3, -1, 1.5, True, "", "x", [], {}, [1], [None], {"a": 1}])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("odd")
    (made / "policy.yaml").write_text(POLICY)
    return made


def evaluated(folder: Path) -> fairlead.Evaluated:
    manifests, namespaces, nodes = (folder / f"{part}.json" for part in PARTS)
    policies = folder / "policy.yaml"
    return fairlead.evaluate(manifests, policies=policies, namespaces=namespaces, nodes=nodes)


@given(st.lists(st.tuples(st.sampled_from(CHANGES), ODD), min_size=1, max_size=2))
def test_an_odd_object_ends_in_no_fault_of_ours(folder: Path, changes: list[Any]) -> None:
    """One or two values of any object are something else, or gone."""
    given_parts = PARTS
    for (part, at, path), odd in changes:
        objects = given_parts[part]
        if path in places(objects[at]):
            made = changed(objects[at], path, odd)
            given_parts = {**given_parts, part: [*objects[:at], made, *objects[at + 1 :]]}
    for part, objects in given_parts.items():
        (folder / f"{part}.json").write_text(json.dumps({"kind": "List", "items": objects}))
    with suppress(fairlead.FairleadError):
        evaluated(folder)


def test_without_a_change_all_are_judged(folder: Path) -> None:
    """So that the test above changes something that was good before."""
    for part, objects in PARTS.items():
        (folder / f"{part}.json").write_text(json.dumps({"kind": "List", "items": objects}))
    found = evaluated(folder)
    assert [each.result.object_ for each in found.pods] == [
        "Pod/p", "Job/j", "RayCluster/r", "RayCluster/r", "Run/r",
    ]  # fmt: skip
