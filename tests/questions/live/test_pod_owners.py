"""What is asked of an API server about the owner that a pod names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.fake_clusters import CLUSTER, paths_of
from tests.kube.fake_api import answer_of
from webhook.questions.live.live_answers import ask
from webhook.questions.live.live_objects import ObjectReference

PODS = "/api/v1/namespaces/ml/pods"
OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "uid-train"}


# Owners that the API server takes, as it looks at no more than that a name is not empty.
@pytest.mark.parametrize(
    "owner",
    [
        {"name": "../../../ml/pods/own/proxy/x"},
        {"name": "train?watch=1"},
        {"apiVersion": "../api/v1/namespaces/ml/pods/own/proxy"},
        {"apiVersion": "../v1"},
        {"apiVersion": "v1?x"},
    ],
)
def test_no_pod_leads_who_asks_to_another_path(tmp_path: Path, owner: dict[str, str]) -> None:
    """An admin's rights read what the admin asks for, and a pod's author names its owner freely."""
    solo: dict[str, Any] = CLUSTER[PODS][0]
    references = [{**OWNER, **owner, "controller": True}]
    led = {**solo, "metadata": {**solo["metadata"], "ownerReferences": references}}
    there, paths = paths_of({PODS: [led]}), list[str]()
    objects = [ObjectReference("pod", "solo")]
    answers = answer_of(
        there, tmp_path, lambda client: ask(client, objects, "ml", (), None), (), paths
    )
    assert answers.pods[0].origin.evidence.startswith("the pod itself")
    others = {each for each in paths if "/customresourcedefinitions/" not in each}
    flavors = "/apis/kueue.x-k8s.io/v1beta2/resourceflavors"
    devices = "/apis/resource.k8s.io/v1/deviceclasses"
    assert others <= {*there, "/api/v1/namespaces/ml/limitranges", flavors, devices}
