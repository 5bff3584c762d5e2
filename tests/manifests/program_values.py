"""The chart's values of one program: its Deployment, its pods and its account."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.manifests.kustomize import Json
from tests.manifests.value_rows import How, Place, Value, on_deployment
from tests.manifests.value_schemas import (
    ANNOTATIONS,
    FLAG,
    NAME_OR_EMPTY,
    PORT,
    STRATEGY,
    TEXTS,
    field_of,
)

# The key of a value, what it does, its schema, its default, and its field in the Deployment.
_Row = tuple[str, str, Json, Any, str, How]


def program_values(program: str, deployment: Json) -> Iterator[Value]:
    """Yield the values of the program `webhook` or `controller`, in the order of values.yaml."""
    name = deployment["metadata"]["name"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    for key, about, schema, default, at, how in _of_deployment(deployment):
        yield Value(f"{program}.{key}", about, schema, default, (on_deployment(name, at, how),))
    yield Value(
        f"{program}.hostNetwork",
        "Use the network of the node, where a control plane cannot reach pods. The namespace needs "
        "the Pod Security level privileged, and each replica a node of its own.",
        FLAG,
        False,
        (
            on_deployment(name, "pod/hostNetwork"),
            on_deployment(name, "pod/dnsPolicy", item="ClusterFirstWithHostNet"),
        ),
    )
    yield Value(
        f"{program}.dnsPolicy",
        "Empty: ClusterFirst, and ClusterFirstWithHostNet with hostNetwork.",
        field_of("PodSpec", "dnsPolicy"),
        "",
        (on_deployment(name, "pod/dnsPolicy"),),
    )
    for port in container["ports"]:
        yield _port(program, name, port)
    # Options of one's own come last: the last of two counts.
    yield Value(
        f"{program}.extraArgs",
        "More options, such as --log-level=debug.",
        TEXTS,
        [],
        (on_deployment(name, "container/args", "append"),),
    )
    yield Value(f"{program}.podDisruptionBudget", "A drain evicts one pod at a time.", FLAG, True)
    yield Value(
        f"{program}.serviceAccountAnnotations",
        "Annotations of its ServiceAccount.",
        ANNOTATIONS,
        {},
        (Place("ServiceAccount", "metadata/annotations", "merge", name),),
    )


def _of_deployment(deployment: Json) -> Iterator[_Row]:
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    replicas = deployment["spec"]["replicas"]
    at_least_one = {"type": "integer", "minimum": 1}
    yield "replicas", "Pods.", at_least_one, replicas, "spec/replicas", "set"
    yield (
        "strategy",
        "How a rollout replaces pods; empty: a pod goes only when its successor is ready.",
        STRATEGY,
        {},
        "spec/strategy",
        "set",
    )
    annotations = "metadata/annotations"
    yield "annotations", "Annotations of the Deployment.", ANNOTATIONS, {}, annotations, "merge"
    yield (
        "resources",
        "Requests and limits.",
        field_of("Container", "resources"),
        container["resources"],
        "container/resources",
        "set",
    )
    yield (
        "extraEnv",
        "More variables of the container.",
        field_of("Container", "env"),
        [],
        "container/env",
        "append",
    )
    yield (
        "extraVolumes",
        "More volumes of the pods.",
        field_of("PodSpec", "volumes"),
        [],
        "pod/volumes",
        "append",
    )
    yield (
        "extraVolumeMounts",
        "Where the container has them.",
        field_of("Container", "volumeMounts"),
        [],
        "container/volumeMounts",
        "append",
    )
    yield (
        "priorityClassName",
        "Empty: the cluster's default.",
        NAME_OR_EMPTY,
        pod["priorityClassName"],
        "pod/priorityClassName",
        "set",
    )
    yield (
        "nodeSelector",
        "Labels that its nodes have.",
        field_of("PodSpec", "nodeSelector"),
        {},
        "pod/nodeSelector",
        "set",
    )
    yield (
        "tolerations",
        "Taints that it admits.",
        field_of("PodSpec", "tolerations"),
        [],
        "pod/tolerations",
        "set",
    )
    yield (
        "keepOffSpotNodes",
        "Never run on spot nodes, and only on Linux; false: on any node.",
        FLAG,
        True,
        "pod/affinity",
        "set",
    )
    yield (
        "affinity",
        "Affinity of its own; its nodeAffinity replaces that of keepOffSpotNodes.",
        field_of("PodSpec", "affinity"),
        {},
        "pod/affinity",
        "merge",
    )
    spread = "pod/topologySpreadConstraints"
    yield "spread", "Spread the pods over hosts and zones.", FLAG, True, spread, "set"
    yield (
        "topologySpreadConstraints",
        "Constraints of its own, in place of those over hosts and zones.",
        field_of("PodSpec", "topologySpreadConstraints"),
        [],
        spread,
        "set",
    )
    yield (
        "dnsConfig",
        "DNS settings of the pods.",
        field_of("PodSpec", "dnsConfig"),
        {},
        "pod/dnsConfig",
        "set",
    )


def _port(program: str, name: str, port: Json) -> Value:
    """The value of a port of the pods, which the program has to be told too."""
    key, option, about = {
        "https": ("port", "--port", "HTTPS port of the pods, which the control plane reaches."),
        "health": ("healthPort", "--health-port", "Port of the pods for probes and metrics."),
    }[port["name"]]
    places = (
        on_deployment(name, f"container/ports/{port['name']}/containerPort"),
        on_deployment(name, "container/args", "append", item=f"{option}=%v"),
    )
    return Value(f"{program}.{key}", about, PORT, port["containerPort"], places)
