"""A pod that the API server has stored is as admission left it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from webhook.workloads.object import Object
from webhook.workloads.stored_pod import as_admitted, is_bound, is_stored, normal
from webhook.workloads.template import PodTemplate

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
OWN = {"key": "app", "operator": "In", "values": ["x"]}


def merged(key: str, operator: str, value: str) -> Json:
    """An expression as the API server makes it."""
    return {"key": key, "operator": operator, "values": [value]}


def term(*expressions: Json, **more: object) -> Json:
    return {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [*expressions]}, **more}


WRITTEN: Json = {
    "affinity": {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                term(OWN, matchLabelKeys=["team"], mismatchLabelKeys=["shard"])
            ]
        },
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": term(OWN, mismatchLabelKeys=["team"])}
            ]
        },
    },
    "topologySpreadConstraints": [
        {"topologyKey": ZONE, "labelSelector": {}, "matchLabelKeys": ["team"]},
        term(OWN, merged("team", "In", "a")),
    ],
}


def stored(**fields: Any) -> Json:
    """The pod as the API server has it, bound by a scheduler unless its fields say otherwise."""
    spec: Json = {"nodeName": "n1", **copy.deepcopy(WRITTEN), **fields}
    affinity = spec["affinity"]
    (near,) = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    near["labelSelector"]["matchExpressions"] += [
        merged("team", "In", "a"),
        merged("shard", "NotIn", "3"),
    ]
    (apart,) = affinity["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    apart["podAffinityTerm"]["labelSelector"]["matchExpressions"] += [merged("team", "NotIn", "a")]
    spread = spec["topologySpreadConstraints"][0]
    spread["labelSelector"] = {"matchExpressions": [merged("team", "In", "a")]}
    labels = {"team": "a", "shard": "3", ZONE: "b"}
    return {"kind": "Pod", "metadata": {"name": "p", "uid": "u", "labels": labels}, "spec": spec}


def test_what_the_api_server_merged_into_selectors_is_taken_out() -> None:
    """What stands there without a list of keys is its author's; the pod itself stays as it is."""
    pod = stored()
    before = copy.deepcopy(pod)
    found = as_admitted(pod)
    assert found["spec"] == WRITTEN
    assert pod == before
    assert as_admitted(found) == found


def test_the_node_and_its_labels_are_not_the_authors() -> None:
    """A scheduler's binding sets both, whatever the pod had there."""
    found = as_admitted(stored())
    assert "nodeName" not in found["spec"]
    assert found["metadata"]["labels"] == {"team": "a", "shard": "3"}


@pytest.mark.parametrize(
    ("managed", "bound"),
    [
        ([{"fieldsV1": {"f:spec": {"f:nodeName": {}}}}], False),
        ([{"fieldsV1": {"f:spec": {"f:containers": {}}}}, {"fieldsV1": {"f:status": {}}}], True),
        ([], True),
        ("no list", True),
        ([7, {"fieldsV1": None}, {"fieldsV1": {"f:spec": []}}], True),
    ],
)
def test_an_author_who_named_the_node_is_in_the_managed_fields(managed: Any, bound: bool) -> None:
    """A binding is not."""
    pod = stored()
    pod["metadata"]["managedFields"] = managed
    assert is_bound(pod) is bound
    assert ("nodeName" in as_admitted(pod)["spec"]) is not bound
    assert (ZONE in as_admitted(pod)["metadata"]["labels"]) is not bound


def test_a_pod_that_waits_is_not_bound() -> None:
    """Its labels are its author's."""
    pod = stored(nodeName="")
    assert not is_bound(pod)
    assert as_admitted(pod)["metadata"]["labels"] == pod["metadata"]["labels"]


def test_what_is_printed_of_a_stored_pod_is_on_its_node() -> None:
    """So that nothing else of it changes."""
    pod = stored()
    template = PodTemplate(Object("cluster", pod), ())
    printed = template.mutated(0, template.pod(0))
    assert printed["spec"]["nodeName"] == "n1"
    assert printed["metadata"] == pod["metadata"]


@pytest.mark.parametrize(
    "spec",
    [
        {"affinity": 5, "topologySpreadConstraints": {"labelSelector": [{}]}},
        {"affinity": {"labelSelector": {"matchExpressions": 5}, "matchLabelKeys": ["a"]}},
        {"affinity": {"labelSelector": {"matchExpressions": [5, {}]}, "matchLabelKeys": 7}},
    ],
)
def test_fields_of_the_wrong_shape_stay(spec: Json) -> None:
    """The engine names them."""
    pod = {"kind": "Pod", "metadata": {"uid": "u"}, "spec": spec}
    assert is_stored(pod)
    assert as_admitted(pod) == pod
    assert not is_stored({"metadata": {"uid": "u"}, "spec": []})
    assert not is_stored({"metadata": {}, "spec": {}})


def test_empty_parts_are_not_stored() -> None:
    """But for a selector of everything, and values that are texts themselves."""
    written: Json = {
        "labelSelector": {"matchLabels": {}, "matchExpressions": []},
        "namespaceSelector": {},
        "namespaces": [],
        "minDomains": None,
        "value": "",
        "tolerationSeconds": 0,
    }
    assert normal([written]) == [
        {"labelSelector": {}, "namespaceSelector": {}, "tolerationSeconds": 0}
    ]
    labels = {"matchLabels": {"a": ""}}
    assert normal(labels) == labels
