"""The question to an API server is about the pod as it comes, but for what nobody can give it."""

from __future__ import annotations

from webhook import names
from webhook.evaluation.dry_run import describe_difference, question
from webhook.sources.kind_model import UNKNOWN


def test_what_only_controllers_know_is_left_out() -> None:
    """And everything else stays, but for the priority of a stored pod, which is derived."""
    metadata = {
        "name": "train-0",
        "namespace": "research",
        "ownerReferences": [{"kind": "Job", "blockOwnerDeletion": True}],
        "labels": {
            names.RUN: "r",
            "training.kubeflow.org/job-name": "r",
            "batch.kubernetes.io/controller-uid": UNKNOWN,
            "team": "vision",
        },
        "annotations": {names.PLACEMENT: "{}", names.HISTORY: "{}", "note": "kept"},
    }
    spec = {"containers": [], "priority": 7, "priorityClassName": "high"}
    stored = {**metadata, "uid": "u"}
    own = {"containers": [], "priorityClassName": "high"}
    assert question({"metadata": stored, "spec": spec})["spec"] == own
    assert question({"metadata": metadata, "spec": spec}) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "train-0",
            "ownerReferences": [{"kind": "Job", "uid": names.NO_UID}],
            "labels": {names.RUN: "r", "training.kubeflow.org/job-name": "r", "team": "vision"},
            "annotations": {"note": "kept", names.PLACEMENT: names.AS_DECIDED},
        },
        "spec": spec,
    }


def test_how_the_pod_asked_about_differs_from_the_one_that_comes_is_said() -> None:
    """A pod that its author creates differs in nothing; a controller names and owns its pods."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u"}
    for metadata, words in (
        ({"name": "train-0"}, ""),
        ({}, "another name and no owner and you as its creator"),
        ({"ownerReferences": [owner]}, "another name and you as its creator"),
        ({"name": "train-0", "ownerReferences": [owner]}, "you as its creator"),
    ):
        said = describe_difference({"metadata": metadata})
        assert said == (f"it was asked about a pod with {words}" if words else "")
    asked = question({"metadata": {"ownerReferences": [owner]}, "spec": {}})["metadata"]
    assert (asked["name"], asked["ownerReferences"]) == ("fairlead-dry-run", [owner])
