"""A question about pods as a PolicyTest, for a file beside the policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.evaluation.result import result_of
from webhook.policy_tests.policy_test_model import WITH_REASON, WITHOUT_PLACEMENT
from webhook.sources.kind_model import UNKNOWN
from webhook.text.yaml_out import yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.evaluation.replicas import Replicas
    from webhook.evaluation.result import PodsResult
    from webhook.placement.shapes import JsonObject
    from webhook.questions.offline import Offline

# Kinds that policy tests take as what the cluster has.
_OF_CLUSTER: Final = ("PriorityClass", "RuntimeClass", "LimitRange", "ResourceFlavor")


def policy_test(offline: Offline, groups: Sequence[Replicas], nodes: Iterable[JsonObject]) -> str:
    """Return the text of a PolicyTest with a case for each group; `nodes` are v1.Nodes."""
    cluster = {
        "defaultPriorityClass": offline.world.cluster.default_priority_class,
        "objects": [source.value for source in offline.objects if source.kind in _OF_CLUSTER],
    }
    document: dict[str, Any] = {
        "apiVersion": names.API_VERSION,
        "kind": "PolicyTest",
        "policies": ["policies.yaml"],
        "cluster": {key: value for key, value in cluster.items() if value},
        "nodes": [_node_of_test(node) for node in nodes],
        "tests": [_case(replicas, result_of(replicas)) for replicas in groups],
    }
    return yaml_text({key: value for key, value in document.items() if value})


def _node_of_test(node: JsonObject) -> JsonObject:
    fields = {
        "name": node["metadata"]["name"],
        "labels": node["metadata"].get("labels"),
        "taints": (node.get("spec") or {}).get("taints"),
        "unschedulable": (node.get("spec") or {}).get("unschedulable"),
        "allocatable": (node.get("status") or {}).get("allocatable"),
    }
    return {key: value for key, value in fields.items() if value}


def _case(replicas: Replicas, result: PodsResult) -> JsonObject:
    """Return the pods and what happens to them as a case of a PolicyTest."""
    arrival = replicas.arrival
    metadata = arrival.pod.get("metadata") or {}
    labels = {
        key: value for key, value in (metadata.get("labels") or {}).items() if value != UNKNOWN
    }
    expected: JsonObject = {"result": result.result}
    if result.result in WITH_REASON:
        expected["reason"] = result.reason
    expected["policies"] = [
        policy_answer.name for policy_answer in result.policies if policy_answer.answer == "applies"
    ]
    last = result.nodes and (result.nodes.after or result.nodes.before)
    if last and result.result not in WITHOUT_PLACEMENT:
        expected["runsOn"] = last.admitted
    case = {
        "name": replicas.subject,
        "namespace": arrival.namespace,
        "namespaceLabels": dict(arrival.namespace_labels),
        "now": arrival.now and arrival.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "user": arrival.user,
        "pod": {"metadata": {**metadata, "labels": labels}, "spec": arrival.pod.get("spec")},
        "expect": expected,
    }
    return {key: value for key, value in case.items() if value}
