"""Nodes and pods of a control plane with the real kube-scheduler, and where it puts the pods."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.eventually import eventually
from webhook.sandbox.control_plane import ControlPlane

Json = dict[str, Any]
# The host port of pods that only look whether a node is there.
PROBES = 65535


def create_nodes(plane: ControlPlane, nodes: list[Json]) -> None:
    """Create the nodes with their taints alone; the scheduler may not know them yet."""
    for node in nodes:
        created = plane.api.create("/api/v1/nodes", node)
        # Without the taint that every node is born with, and that nobody here takes away.
        created["spec"]["taints"] = node.get("spec", {}).get("taints", [])
        path = f"/api/v1/nodes/{node['metadata']['name']}"
        status, answer = plane.api.call("PUT", path, created)
        assert status == 200, answer


def await_node(plane: ControlPlane, namespace: str, node: Json) -> None:
    """Return once the scheduler knows the node: it binds a pod to it, which is then deleted."""
    pods = f"/api/v1/namespaces/{namespace}/pods"
    name = f"probe-{node['metadata']['name']}"
    plane.api.create(pods, schedulable(probe(node), name, PROBES))
    eventually("the probe is bound", partial(is_bound, plane, f"{pods}/{name}"), period=0.005)
    plane.api.call("DELETE", f"{pods}/{name}?gracePeriodSeconds=0")


def probe(node: Json) -> Json:
    """A pod that fits onto this very node, which has a label `world`."""
    metadata, taints = node["metadata"], node.get("spec", {}).get("taints", [])
    field = {"key": "metadata.name", "operator": "In", "values": [metadata["name"]]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    return {
        "spec": {
            # A node of this name was in the world before, too.
            "nodeSelector": {"world": metadata["labels"]["world"]},
            "affinity": {"nodeAffinity": affinity},
            "tolerations": [{"key": taint["key"], "operator": "Exists"} for taint in taints],
        }
    }


def schedulable(pod: Json, name: str, port: int) -> Json:
    """The pod with what the model knows of, and a host port of its own."""
    result: Json = {"metadata": {"name": name}, "spec": {}}
    spec = pod["spec"]
    for field in ("nodeSelector", "tolerations"):
        if spec.get(field):
            result["spec"][field] = spec[field]
    affinity = spec.get("affinity", {}).get("nodeAffinity")
    if affinity:
        result["spec"]["affinity"] = {"nodeAffinity": affinity}
    ports = [{"containerPort": 1, "hostPort": port, "hostIP": "127.0.0.1"}]
    result["spec"]["containers"] = [{"name": "main", "image": "i", "ports": ports}]
    return result


def is_bound(plane: ControlPlane, pod: str) -> bool:
    """Whether the pod of this path has a node."""
    return "nodeName" in plane.api.get(pod)["spec"]


def landings(plane: ControlPlane, namespace: str) -> dict[str, list[str]]:
    """The nodes of the pods by the first part of their names, once the scheduler judged all."""

    def judged() -> list[Json]:
        created: list[Json] = plane.api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
        return created if all(_judged(pod) for pod in created) else []

    # Each look is a list of hundreds of pods.
    pods = eventually("every pod is judged", judged, period=0.3, budget=120)
    landed: dict[str, list[str]] = {}
    for pod in pods:
        where = landed.setdefault(pod["metadata"]["name"].partition("-")[0], [])
        if "nodeName" in pod["spec"]:
            where.append(pod["spec"]["nodeName"])
    return {name: sorted(where) for name, where in landed.items()}


def _judged(pod: Json) -> bool:
    conditions = pod["status"].get("conditions", [])
    reasons = [entry.get("reason") for entry in conditions if entry["type"] == "PodScheduled"]
    return "nodeName" in pod["spec"] or reasons == ["Unschedulable"]
