"""Reading a pod's placement: what is there, and the path of what has the wrong shape."""

from __future__ import annotations

from typing import Any

import pytest

from tests.objects import required_affinity
from tests.wording import Wording, mentions
from webhook.errors import InvalidPod
from webhook.placement import pod
from webhook.placement.node_affinity import MAX_REQUIREMENTS, MAX_TERMS, MAX_VALUES
from webhook.placement.pod import MAX_ENTRIES, REQUIRED, excess

Json = dict[str, Any]


def raw(**spec: Any) -> Json:
    return {"metadata": {}, "spec": spec}


def test_what_is_absent_or_null_is_empty() -> None:
    """Required affinity alone tells "none" from "an empty list"."""
    empty = pod.parse_pod(raw())
    nulls = dict.fromkeys(("nodeSelector", "tolerations", "affinity", "schedulerName", "os"))
    assert pod.parse_pod(raw(**nulls)) == empty
    assert empty.required is None
    affinity: Json = required_affinity()
    assert pod.parse_pod(raw(affinity=affinity)).required == []


def test_a_toleration_with_a_null_member_is_read() -> None:
    """As the API server would."""
    assert pod.parse_pod(raw(tolerations=[{"key": None, "operator": "Exists"}])).tolerations


@pytest.mark.parametrize(
    ("spec", "path", "wanted", "seen"),
    [
        ({"nodeSelector": []}, "spec.nodeSelector", "object", "list"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector[a]", "string", "int"),
        ({"tolerations": {}}, "spec.tolerations", "list", "dict"),
        ({"tolerations": ["x"]}, "spec.tolerations[0]", "object", "str"),
        ({"tolerations": [{"key": 1}]}, "spec.tolerations[0].key", "string", "int"),
        (
            {"tolerations": [{"tolerationSeconds": 1.5}]},
            "spec.tolerations[0].tolerationSeconds",
            "integer",
            "float",
        ),
        ({"affinity": "x"}, "spec.affinity", "object", "str"),
        ({"schedulerName": 1}, "spec.schedulerName", "string", "int"),
        ({"securityContext": []}, "spec.securityContext", "object", "list"),
        (
            {"affinity": {"nodeAffinity": {REQUIRED: []}}},
            f"spec.affinity.nodeAffinity.{REQUIRED}",
            "object",
            "list",
        ),
        (
            {"affinity": required_affinity({"matchExpressions": [{"values": [1]}]})},
            "matchExpressions[0].values",
            "list of strings",
            "list",
        ),
        (
            {"affinity": {"podAffinity": {REQUIRED: {}}}},
            f"spec.affinity.podAffinity.{REQUIRED}",
            "list",
            "dict",
        ),
    ],
)
def test_a_field_of_the_wrong_type_is_named_by_its_path(
    spec: Json, path: str, wanted: str, seen: str, wording: Wording
) -> None:
    """What stands there is named by its type."""
    with pytest.raises(InvalidPod) as caught:
        pod.parse_pod(raw(**spec))
    mentions(str(caught.value), f"{path}: ", wanted, f"not {seen}")
    wording(str(caught.value))


@pytest.mark.parametrize("part", ["metadata", "spec"])
def test_a_pod_without_metadata_or_spec_is_not_a_pod(part: str) -> None:
    """Nothing could be patched into it."""
    what = raw()
    del what[part]
    with pytest.raises(InvalidPod, match=f"{part}: want an object"):
        pod.parse_pod(what)


def expression(*values: str) -> dict[str, Any]:
    """One that a label has one of these values."""
    return {"key": "k", "operator": "In", "values": list(values) or ["v"]}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": required_affinity(*terms)}


def preferred(kind: str, count: int) -> dict[str, Any]:
    """A spec with so many entries of one list."""
    return {"affinity": {kind: {pod.PREFERRED: [{}] * count}}}


def of_spec(spec: dict[str, Any]) -> str:
    """What a pod with this spec brings too much of."""
    return excess(pod.parse_pod({"metadata": {}, "spec": spec}))


def terms(count: int) -> dict[str, Any]:
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
