"""The annotation `fairlead.dev/avoid-nodes`: required affinity, after all that policies set."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.policy_tests.writing import CLASS, policy
from webhook import names
from webhook.admission.arrival import Arrival, Cluster
from webhook.admission.engine import decide
from webhook.placement.node_affinity import MOST_AVOIDED
from webhook.policy.load import load
from webhook.workloads.object import from_answer
from webhook.workloads.template import PodTemplate
from webhook.workloads.workload_faults import template_faults

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TERM = {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}
DEFAULT = "defaults: " + json.dumps(
    {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [TERM]}}}}
)


def avoid(*nodes: str) -> list[dict[str, Any]]:
    return [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in nodes]


def decided(text: str, *, terms: list[Any] | None = None, policies: str = "") -> Any:
    """The decision on a pod of a run with this annotation."""
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "x"}]}
    if terms is not None:
        spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    metadata = {"labels": {names.RUN: "r"}, "annotations": {names.AVOID_NODES: text}}
    pod = {"metadata": metadata, "spec": spec}
    files = {"a.yaml": (CLASS + policies).encode()} if policies else {}
    return decide(Arrival(pod, "lab", {}), load(files).policies, Cluster())


@pytest.mark.parametrize("text", ["a,b", " a , b ,", "a,b,"])
def test_a_pod_without_policies_avoids_nodes(text: str) -> None:
    """With what it says, and why."""
    decision = decided(text)
    assert decision.placement.required == [{"matchFields": avoid("a", "b")}]
    (entry,) = [each for each in decision.trace if each.outcome == "set"]
    assert (entry.field, entry.part) == ("affinity.nodeAffinity.required", "pod")
    assert names.AVOID_NODES in entry.reason


def test_a_default_is_not_skipped_because_of_it() -> None:
    """It would be, if the affinity were the pod's own."""
    decision = decided("a", policies=policy("gpus", DEFAULT))
    assert decision.placement.required == [{**TERM, "matchFields": avoid("a")}]


def test_each_term_of_the_pod_avoids_them_and_a_second_call_changes_nothing() -> None:
    """An empty term matches no node, and stays so."""
    other = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}
    required = decided("a", terms=[TERM, other, {}]).placement.required
    assert required == [
        {**TERM, "matchFields": avoid("a")},
        {**other, "matchFields": avoid("a")},
        {},
    ]
    assert decided("a", terms=required).placement.required == required


def test_the_number_of_nodes_is_bounded() -> None:
    """And what would be too large is left out, with a warning; the pod is placed."""
    many = ",".join(f"n{number}" for number in range(3 * MOST_AVOIDED))
    found = decided(many)
    (term,) = found.placement.required
    assert len(term["matchFields"]) == MOST_AVOIDED
    assert any(names.AVOID_NODES in each for each in found.warnings)
    terms = [{"matchExpressions": [{"key": f"k{at}", "operator": "Exists"}]} for at in range(500)]
    decision = decided(many, terms=terms)
    assert decision.allowed
    assert decision.placement.required == terms
    assert any(names.AVOID_NODES in each for each in decision.warnings)


@pytest.mark.parametrize("text", ["", ",", " "])
def test_without_names_nothing_is_avoided(text: str) -> None:
    """An empty annotation is none."""
    assert decided(text).placement.required is None


def test_what_is_no_name_of_a_node_is_left_out_with_a_warning() -> None:
    """The API server would refuse the pod for it; long names of nodes are none of these."""
    long = ".".join(["n" * 60] * 3)
    decision = decided(f"Node_A,b,{long},*")
    assert decision.placement.required == [{"matchFields": avoid("b", long)}]
    assert any(names.AVOID_NODES in each for each in decision.warnings)
    pod = {"matchFields": avoid(long, "Node_A")}
    spec = {
        "containers": [{"name": "main", "image": "x"}],
        "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [pod]}}},
    }
    template = PodTemplate(from_answer("v1", "Pod", {"metadata": {"name": "p"}, "spec": spec}), ())
    (fault,) = template_faults(template)
    assert "Node_A" in fault.message
