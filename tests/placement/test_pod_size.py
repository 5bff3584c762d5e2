"""A pod brings no more placement than can be decided on while others wait."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wording import Wording, mentions
from webhook.placement import pod
from webhook.placement.node_affinity import MAX_REQUIREMENTS, MAX_TERMS, MAX_VALUES
from webhook.placement.pod_size import MAX_ENTRIES, excess


def expression(*values: str) -> dict[str, Any]:
    """One that a label has one of these values."""
    return {"key": "k", "operator": "In", "values": list(values) or ["v"]}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    """A spec with these terms."""
    return {"affinity": {"nodeAffinity": {pod.REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def preferred(kind: str, count: int) -> dict[str, Any]:
    """A spec with so many entries of one list."""
    return {"affinity": {kind: {pod.PREFERRED: [{}] * count}}}


def of_spec(spec: dict[str, Any]) -> str:
    """What a pod with this spec brings too much of."""
    return excess(pod.read({"metadata": {}, "spec": spec}))


def terms(count: int) -> dict[str, Any]:
    """So many terms."""
    return required(*[{"matchExpressions": [expression()]}] * count)


def requirements(count: int) -> dict[str, Any]:
    """So many requirements, of both kinds, in a few terms."""
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n"]}]
    return required(
        {"matchFields": fields},
        {"matchExpressions": [{"key": "k", "operator": "Exists"}] * (count - 1)},
    )


def values(count: int) -> dict[str, Any]:
    """So many values of one expression."""
    return required({"matchExpressions": [expression(*map(str, range(count)))]})


LIMITS = {
    "terms": (terms, MAX_TERMS),
    "requirements": (requirements, MAX_REQUIREMENTS),
    "values": (values, MAX_VALUES),
    "tolerations": (lambda count: {"tolerations": [{}] * count}, MAX_ENTRIES),
    "constraints": (lambda count: {"topologySpreadConstraints": [{}] * count}, MAX_ENTRIES),
    "preferred nodes": (lambda count: preferred("nodeAffinity", count), MAX_ENTRIES),
    "pods to be near": (lambda count: preferred("podAffinity", count), MAX_ENTRIES),
    "pods to be far from": (lambda count: preferred("podAntiAffinity", count), MAX_ENTRIES),
}


@pytest.mark.parametrize("what", LIMITS)
def test_each_part_of_a_pods_placement_has_a_limit(what: str, wording: Wording) -> None:
    """As many are decided on; one more is told with its field, the figure and the limit."""
    spec_with, most = LIMITS[what]
    assert of_spec(spec_with(most)) == ""
    message = of_spec(spec_with(most + 1))
    mentions(message, "spec.", str(most + 1), f"at most {most}")
    wording(message)


def test_a_pod_without_placement_brings_nothing() -> None:
    """Nor does one whose affinity is empty."""
    assert of_spec({}) == ""
    assert of_spec(required()) == ""
