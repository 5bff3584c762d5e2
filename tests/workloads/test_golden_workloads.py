"""Golden cases: the pods that controllers make of objects, one file for each family of kinds.

A case gives `rule`, the sentence that it shows; `objects`, whose pods are found; and `beside`,
objects to which they may refer. A name that is left out is mnist. What becomes of them:

    pods    one entry for each template, in order. `are` describes them. An entry may also have
            `labelsAt`, where the author writes their labels; labels, annotations, owner, identity
            and spec of the first pod; `labelled`, some of its labels; `unknown`, those with values
            that only the controller knows; and `last`, what the last pod has instead
    unread  the lines about pods that are not known
    faults  of the templates; they are compared if the case names them
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.fast_yaml import load_yaml
from tests.marked_pods import shown
from webhook.identity import identify
from webhook.policy.findings import path_text
from webhook.sources.kind_model import UNKNOWN
from webhook.workloads.object import Object
from webhook.workloads.template import PodTemplate, find_unknown_labels
from webhook.workloads.template_search import pod_templates, unread
from webhook.workloads.workload_faults import template_faults

Json = dict[str, Any]
FILES = sorted((Path(__file__).parents[1] / "golden" / "workloads").glob("*.yaml"))
CASES = [(path.stem, case) for path in FILES for case in load_yaml(path.read_text())]


def objects_of(case: Json, part: str) -> list[Object]:
    return [
        Object("f.yaml", {**value, "metadata": {"name": "mnist", **(value.get("metadata") or {})}})
        for value in case.get(part, ())
    ]


def replica(template: PodTemplate, index: int) -> Json:
    pod = template.pod(index)
    metadata = pod["metadata"]
    labels, annotations = (metadata.get(key) or {} for key in ("labels", "annotations"))
    identity = identify(labels, annotations, {}, led=template.led)
    known = {key: value for key, value in labels.items() if value != UNKNOWN}
    return {
        "labels": known,
        "labelled": known,
        "unknown": sorted(find_unknown_labels(pod)),
        "annotations": {key: text for key, text in annotations.items() if text != UNKNOWN},
        "owner": (metadata.get("ownerReferences") or [{}])[0],
        "identity": shown(identity) if identity else {},
        "spec": pod["spec"],
    }


def described(template: PodTemplate, wanted: Json) -> Json:
    """What a case wants to know of a template."""
    found = {
        "are": template.describe(),
        "labelsAt": template.labels_path,
        **replica(template, 0),
        "last": replica(template, (template.count or 1) - 1),
    }
    return {key: _chosen(found[key], value, key) for key, value in wanted.items()}


def _chosen(found: Any, wanted: Any, key: str) -> Any:
    if key == "last":
        return {each: _chosen(found[each], value, "labelled") for each, value in wanted.items()}
    return {each: found.get(each) for each in wanted} if key == "labelled" else found


def whole(template: Json) -> Json:
    """A template with its metadata, of which nulls are left out."""
    metadata = template.get("metadata") or {}
    return {**template, "metadata": {k: v for k, v in metadata.items() if v is not None}}


def outcome(case: Json) -> Json:
    """Everything that a case may say of its objects."""
    objects, beside = objects_of(case, "objects"), objects_of(case, "beside")
    found = [each for source in objects for each in pod_templates(source, [*objects, *beside])]
    faults = [
        f"{path_text(fault.path)}: {fault.severity}: {fault.message}"
        for each in found
        for fault in template_faults(each)
    ]
    wanted = case.get("pods", ())
    assert len(found) == len(wanted), [each.describe() for each in found]
    pods = [described(*pair) for pair in zip(found, wanted, strict=True)]
    return {"pods": pods, "unread": unread(objects), "faults": faults}


@pytest.mark.parametrize(("family", "case"), CASES, ids=[f"{f}-{c['rule']}" for f, c in CASES])
def test_a_golden_workload_has_these_pods(family: str, case: Json) -> None:
    """And a pod that no policy changes gives back the template, and with it the object."""
    found = outcome(case)
    assert found["pods"] == case.get("pods", []), family
    assert found["unread"] == case.get("unread", [])
    assert found["faults"] == case.get("faults", found["faults"])
    objects, beside = objects_of(case, "objects"), objects_of(case, "beside")
    for source in objects:
        for each in pod_templates(source, [*objects, *beside]):
            written, same = each.template, each.mutated(0, each.pod(0))
            assert whole(same) == whole(written)
            assert each.put(copy.deepcopy(source.value), written) == source.value


def test_every_golden_workload_has_a_rule_of_its_own() -> None:
    """Two cases that show the same are one too many."""
    rules = [case["rule"] for _, case in CASES]
    assert len(set(rules)) == len(rules)
