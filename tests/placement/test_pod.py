"""Reading a pod's placement: what is there, and the path of what has the wrong shape."""

from __future__ import annotations

from typing import Any

import pytest

from tests.wording import Wording, mentions
from webhook.errors import InvalidPod
from webhook.placement import pod
from webhook.placement.pod import REQUIRED

Json = dict[str, Any]


def raw(**spec: Any) -> Json:
    """A pod with a spec."""
    return {"metadata": {}, "spec": spec}


def test_what_is_absent_or_null_is_empty() -> None:
    """Required affinity alone tells "none" from "an empty list"."""
    empty = pod.read(raw())
    nulls = dict.fromkeys(("nodeSelector", "tolerations", "affinity", "schedulerName", "os"))
    assert pod.read(raw(**nulls)) == empty
    assert empty.required is None
    affinity: Json = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}
    assert pod.read(raw(affinity=affinity)).required == []


def test_a_toleration_with_a_null_member_is_read() -> None:
    """As the API server would."""
    assert pod.read(raw(tolerations=[{"key": None, "operator": "Exists"}])).tolerations


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
            {
                "affinity": {
                    "nodeAffinity": {
                        REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [{"values": [1]}]}]}
                    }
                }
            },
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
        pod.read(raw(**spec))
    mentions(str(caught.value), f"{path}: ", wanted, f"not {seen}")
    wording(str(caught.value))


@pytest.mark.parametrize("part", ["metadata", "spec"])
def test_a_pod_without_metadata_or_spec_is_no_pod(part: str) -> None:
    """Nothing could be patched into it."""
    what = raw()
    del what[part]
    with pytest.raises(InvalidPod, match=f"{part}: want an object"):
        pod.read(what)
