"""Pods of which only the object that made them shows whether they lead."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.admission.reviews import Json, Webhook, pod, policy_set, review
from tests.policy_tests.writing import policy
from tests.wording import mentions
from webhook import names
from webhook.decision.arrival import may_have_history
from webhook.decision.notice import Owner
from webhook.errors import ClusterError
from webhook.placement.owner_selector import CountedPods
from webhook.sources import SHIPPED
from webhook.sources.marks import ObjectRef
from webhook.sources.table import SourceTable

LEADS = policy("leads", 'match: {coordinator: true}, overrides: {labels: {leads: "yes"}}')
_PADDLE = "training.kubeflow.org"
PADDLE = {
    f"{_PADDLE}/operator-name": "paddlejob-controller",
    f"{_PADDLE}/job-name": "train",
    f"{_PADDLE}/replica-type": "worker",
    f"{_PADDLE}/replica-index": "0",
}
_SET = "jobset.sigs.k8s.io"
JOB_SET = {
    f"{_SET}/jobset-name": "train",
    f"{_SET}/replicatedjob-name": "workers",
    f"{_SET}/replicatedjob-replicas": "1",
    f"{_SET}/job-index": "0",
    "batch.kubernetes.io/job-completion-index": "0",
}


CONTROLLED = {
    "apiVersion": "fairlead.dev/v1alpha1",
    "kind": "Run",
    "name": "r",
    "uid": "1",
    "controller": True,
}


@pytest.mark.parametrize(
    ("maker", "labels", "owner", "may"),
    [
        ("Run", {}, None, True),
        ("TFJob", {names.RUN: "r"}, None, False),
        ("Pod", {names.RUN: "r"}, None, True),
        ("Pod", {names.RUN: "r"}, CONTROLLED, True),
        ("Pod", {names.RUN: "r"}, {**CONTROLLED, "kind": "Job", "apiVersion": "batch/v1"}, False),
        ("Pod", {names.RUN: "r"}, {**CONTROLLED, "apiVersion": "mlrun.org/v1"}, False),
        ("Pod", PADDLE, None, False),
        ("Pod", {}, None, False),
    ],
)
def test_only_pods_of_runs_may_have_a_history(
    maker: str, labels: dict[str, str], owner: Json | None, *, may: bool
) -> None:
    """Of a pod that its author wrote down, its own label says whether it may be one of them."""
    metadata = {"labels": labels, **({"ownerReferences": [owner]} if owner else {})}
    assert may_have_history({"metadata": metadata, "spec": {}}, maker, SHIPPED) is may


class Read:
    """Answers about objects; `asked` has them."""

    def __init__(self, answer: Callable[[], bool]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, str]] = []

    async def led(self, namespace: str, ref: ObjectRef, name: str, sources: SourceTable) -> bool:
        assert sources.rows
        self.asked.append((namespace, ref.kind, name))
        return self.answer()

    async def counted(self, namespace: str, owner: Owner) -> CountedPods:
        raise AssertionError(f"no policy sets a label, and {owner} of {namespace} is asked for")


def unreachable() -> bool:
    """As if the API server were away."""
    raise ClusterError("no answer in 0.5 s")


def placed(labels: dict[str, str], read: Read | None) -> tuple[bool, list[str]]:
    """Whether the pod is placed as one that leads, and the warnings."""
    made = pod()
    made["metadata"]["labels"] = labels
    answer = Webhook(policy_set(LEADS), objects=read).post(review(made))
    response: Json = answer.response
    patched = str(answer.patch)
    return "'leads'" in patched or "/leads" in patched, response.get("warnings", [])


@pytest.mark.parametrize(
    ("labels", "kind"), [(PADDLE, "PaddleJob"), (JOB_SET, "JobSet")], ids=["PaddleJob", "JobSet"]
)
def test_the_object_decides_where_the_labels_leave_a_doubt(
    labels: dict[str, str], kind: str
) -> None:
    """Worker 0 leads if no other pod of its object does."""
    read = Read(lambda: False)
    assert placed(labels, read) == (True, [])
    assert read.asked == [("ml-team", kind, "train")]
    assert placed(labels, Read(lambda: True)) == (False, [])


def test_without_an_answer_the_labels_decide_and_the_pod_gets_a_warning() -> None:
    """The pod is created nevertheless: the read may fail for long."""
    leads, (warning,) = placed(PADDLE, Read(unreachable))
    assert leads
    mentions(warning, "PaddleJob train", "cannot be read", "0.5 s", "labels alone")
    assert placed(PADDLE, None) == (True, [])


@pytest.mark.parametrize(
    "labels",
    [
        {**PADDLE, f"{_PADDLE}/replica-index": "1"},
        {**PADDLE, f"{_PADDLE}/replica-type": "master"},
        {**JOB_SET, "batch.kubernetes.io/job-completion-index": "1"},
        {**JOB_SET, f"{_SET}/replicatedjob-name": "driver"},
        {**JOB_SET, f"{_SET}/coordinator": "train-workers-0-0.train"},
        {"fairlead.dev/run": "train"},
    ],
)
def test_no_object_is_read_for_other_pods(labels: dict[str, str]) -> None:
    """One pod of a run costs a read, and only if its labels do not tell."""
    read = Read(unreachable)
    _, warnings = placed(labels, read)
    assert (read.asked, warnings) == ([], [])
