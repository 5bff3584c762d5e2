"""The question to an API server has none of the marks that send a pod to the webhook."""

from __future__ import annotations

from webhook import names
from webhook.evaluation.dry_run import question
from webhook.sources import SHIPPED
from webhook.sources.kind_model import UNKNOWN


def test_marks_owners_and_unknown_labels_are_left_out() -> None:
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
        "annotations": {names.PLACEMENT: "{}", "note": "kept"},
    }
    spec = {"containers": [], "priority": 7, "priorityClassName": "high"}
    stored = {**metadata, "uid": "u"}
    own = {"containers": [], "priorityClassName": "high"}
    assert question({"metadata": stored, "spec": spec}, SHIPPED)["spec"] == own
    assert question({"metadata": metadata, "spec": spec}, SHIPPED) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "fairlead-dry-run",
            "labels": {"team": "vision"},
            "annotations": {"note": "kept", names.PLACEMENT: names.AS_DECIDED},
        },
        "spec": spec,
    }
