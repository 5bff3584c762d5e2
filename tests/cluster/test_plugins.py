"""What plugins do to a pod before webhooks is what the API server does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.manifests import Json, pod
from tests.cluster.spaces import NewNamespace, Space
from webhook.evaluation.plugins import PluginInputs, admit, conflicts, limit_faults
from webhook.placement.nodes import by_name, parse_node
from webhook.sandbox.control_plane import ControlPlane

pytest_plugins = ["tests.cluster.webhook_fixtures"]

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "zoned",
        "labels": {
            "topology.kubernetes.io/zone": "za",
            "topology.kubernetes.io/region": "r",
            "node": "other",
        },
    },
}
KATA = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "plugins-kata"},
    "handler": "kata",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "100Mi"}},
    "scheduling": {
        "nodeSelector": {"pool": "std"},
        "tolerations": [
            {"key": "kata", "operator": "Exists"},
            {"key": "drain", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
        ],
    },
}
PLAIN = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "plugins-plain"},
    "handler": "runc",
}
CLASSES: list[Json] = [KATA, PLAIN]
RANGES = (
    [{"type": "Container", "defaultRequest": {"cpu": "100m"}, "default": {"memory": "1Gi"}}],
    [{"type": "Container", "max": {"cpu": "4"}}],
    [{"type": "Container", "min": {"cpu": "10m"}}],
)
LIMITED = {"limits": {"cpu": "2"}}
MAIN = {"name": "main", "image": "example.invalid/none"}
PODS = {
    "plain": {},
    "kata": {"runtimeClassName": "plugins-kata"},
    "kata, with its selector": {
        "runtimeClassName": "plugins-kata",
        "nodeSelector": {"pool": "std", "a": "b"},
    },
    "kata, with tolerations": {
        "runtimeClassName": "plugins-kata",
        "tolerations": [
            {"key": "kata", "operator": "Equal", "value": "x"},
            {"key": "drain", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9},
            {"key": "drain", "operator": "Exists", "effect": "NoExecute"},
        ],
    },
    "kata, and everything tolerated": {
        "runtimeClassName": "plugins-kata",
        "tolerations": [{"operator": "Exists"}],
    },
    "a class without anything": {"runtimeClassName": "plugins-plain"},
    "limits": {"containers": [{**MAIN, "resources": LIMITED}]},
    "init containers": {
        "initContainers": [{**MAIN, "name": "first"}, {**MAIN, "name": "second"}],
        "containers": [{**MAIN, "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
    },
    "a node": {"nodeName": "zoned"},
    "another node": {"nodeName": "gone"},
}


@pytest.fixture(scope="module")
def objects(control_plane: ControlPlane) -> Iterator[None]:
    """The node and the classes."""
    made = ["/api/v1/nodes", *(["/apis/node.k8s.io/v1/runtimeclasses"] * len(CLASSES))]
    pairs = list(zip(made, [NODE, *CLASSES], strict=True))
    for path, each in pairs:
        control_plane.api.create(path, each)
    yield
    for path, each in pairs:
        control_plane.api.delete(f"{path}/{each['metadata']['name']}")


def inputs(*ranges: Json) -> PluginInputs:
    """What the plugins read, as the API server has it."""
    by_name_of = {each["metadata"]["name"]: each for each in CLASSES}
    return PluginInputs(by_name_of, {"here": list(ranges)})


def relevant(made: Json) -> dict[str, Any]:
    """What plugins set; every container's limit is its request where it has none."""
    spec = made["spec"]
    containers = [*spec.get("initContainers", ()), *spec["containers"]]
    resources = [each.get("resources") or {} for each in containers]
    return {
        "labels": made["metadata"]["labels"],
        "annotations": made["metadata"].get("annotations", {}),
        "selector": spec.get("nodeSelector") or {},
        # But for those of every pod, of another plugin.
        "tolerations": [
            each
            for each in spec.get("tolerations", ())
            if not each.get("key", "").startswith("node.kubernetes.io/")
        ],
        "overhead": spec.get("overhead") or {},
        "limits": [each.get("limits") or {} for each in resources],
        "requests": [{**each.get("limits", {}), **each.get("requests", {})} for each in resources],
    }


@pytest.mark.usefixtures("objects")
@pytest.mark.parametrize("fields", PODS.values(), ids=PODS.keys())
@pytest.mark.parametrize("limits", [None, *RANGES], ids=["none", "defaults", "max", "min"])
def test_the_pod_is_as_the_api_server_makes_it(
    new_namespace: NewNamespace, fields: Json, limits: list[Json] | None
) -> None:
    """Before any webhook."""
    space = new_namespace({})
    ranges = []
    if limits:
        spec = {"limits": limits}
        head = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}}
        space.create({**head, "spec": spec})
        ranges = [{**head, "spec": spec}]
    sent = pod("p", **fields)
    made = space.create(sent, dry_run=True)
    foreseen = admit(sent, "here", inputs(*ranges), by_name([parse_node(NODE)]))
    assert relevant(foreseen) == relevant(made)


SMALL = {"requests": {"cpu": "5m"}, "limits": {"cpu": "1"}}


@pytest.mark.parametrize(
    "limits",
    [
        {"default": {"cpu": "4"}},
        {"max": {"cpu": "20"}},
        {"min": {"cpu": "10m"}},
        {"min": {"cpu": "10m"}, "max": {"cpu": "4", "memory": "1Gi"}},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "resources",
    [{}, {"requests": {"cpu": "6"}}, {"limits": {"cpu": "22"}}, {"limits": {"cpu": "3"}}, SMALL],
    ids=str,
)
@pytest.mark.parametrize("key", ["containers", "initContainers"])
def test_what_a_limit_range_refuses(
    new_namespace: NewNamespace, limits: Json, resources: Json, key: str
) -> None:
    """Of the limits on containers, by their names."""
    space = new_namespace({})
    head = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}}
    range_ = {**head, "spec": {"limits": [{"type": "Container", **limits}]}}
    space.create(range_)
    fields: Json = {key: [{**MAIN, "name": "it", "resources": resources}]}
    sent = pod("p", **fields)
    foreseen = admit(sent, "here", inputs(range_), None)
    path = f"/api/v1/namespaces/{space.name}/pods?dryRun=All"
    status, answer = space.plane.api.call("POST", path, sent)
    found = list(limit_faults(foreseen["spec"], [range_]))
    assert bool(found) == (status in (403, 422)), (found, answer.get("message"))
    assert all("container it: " in text for text in found)


@pytest.mark.usefixtures("objects")
def test_a_conflict_is_refused(new_namespace: NewNamespace) -> None:
    """With the key that both select."""
    space: Space = new_namespace({})
    sent = pod("p", runtimeClassName="plugins-kata", nodeSelector={"pool": "gpu"})
    path = f"/api/v1/namespaces/{space.name}/pods?dryRun=All"
    status, answer = space.plane.api.call("POST", path, sent)
    assert status == 403, answer
    ((_, text),) = conflicts(sent["spec"], inputs().runtime_classes)
    assert "pool" in text
    assert "nodeSelector[pool]" in answer["message"]
