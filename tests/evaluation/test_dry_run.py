"""The question to an API server is about the pod as it comes, but for what nobody can give it."""

from __future__ import annotations

from webhook import names
from webhook.evaluation.dry_run import question
from webhook.sources.kind_model import UNKNOWN


def test_owners_and_what_only_controllers_know_are_left_out() -> None:
    """And everything else stays, but for the priority of a stored pod, which is derived."""
    metadata = {
        "name": "train-0",
        "namespace": "research",
        "ownerReferences": [{"kind": "Job"}],
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
            "name": "fairlead-dry-run",
            "labels": {names.RUN: "r", "training.kubeflow.org/job-name": "r", "team": "vision"},
            "annotations": {"note": "kept", names.PLACEMENT: names.AS_DECIDED},
        },
        "spec": spec,
    }
