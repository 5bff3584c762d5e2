"""Policy sets, pods and comparisons in a line, for tests of comparing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.policy_tests.writing import CLASS
from webhook import names
from webhook.comparison.compare import Comparison, Same
from webhook.comparison.difference import Difference
from webhook.decision.arrival import Arrival, Cluster
from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.world import World
from webhook.placement.nodes import Node
from webhook.policy.load import load
from webhook.policy.policy_set import PolicySet

CLUSTER = Cluster()


def policies(*texts: str) -> PolicySet:
    """The set of these policies and the class spot."""
    return load({"p.yaml": (CLASS + "".join(texts)).encode()}).policies


def arrival(
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    namespace: str = "research",
    **spec: object,
) -> Arrival:
    """A pod of a run, unless told otherwise by its labels."""
    metadata = {
        "labels": {names.RUN: "r"} if labels is None else dict(labels),
        "annotations": dict(annotations or {}),
    }
    pod = {"metadata": metadata, "spec": {"containers": [{"name": "main"}], **spec}}
    return Arrival(pod, namespace, {})


def compared_sets(
    sets: tuple[PolicySet, PolicySet],
    pod: Arrival,
    nodes: Sequence[Node] | None = None,
    cluster: Cluster = CLUSTER,
) -> Difference | Same:
    """What becomes of the pod otherwise, at the time of the arrival."""
    namespaces = {pod.namespace: pod.namespace_labels}
    old, new = (
        World(each, cluster, namespaces, pod.now, None, None, UNREAD, nodes, None, None).evaluate(
            pod.pod, pod.namespace, led=False
        )
        for each in sets
    )
    return Comparison(*sets).compare(old, new)


def different(
    old: Sequence[str],
    new: Sequence[str],
    pod: Arrival,
    nodes: Sequence[Node] | None = None,
) -> Difference:
    """The same, of a pod of which something else becomes."""
    found = compared_sets((policies(*old), policies(*new)), pod, nodes)
    assert isinstance(found, Difference), found
    return found
