"""A Run whose text is not kept, and that has begun all the same: by an earlier version."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controller.runs import TEMPLATE, Json, raw_pod, raw_run
from tests.controller.test_reconciler import NOW, Stage
from tests.wording import mentions
from webhook.run.reading import MOST_BYTES
from webhook.times import to_second

LARGE: Json = {**TEMPLATE, "metadata": {"annotations": {"note": "x" * MOST_BYTES}}}
RUNS: Json = {
    "phase": "Running",
    "startTime": to_second(NOW.replace(minute=0)),
    "replicas": {"worker": {"desired": 3, "active": 3, "activeIndexes": "0-2"}},
}


def running(**changes: Any) -> Stage:
    """Its three pods run."""
    stage = Stage(status=RUNS, template=LARGE, **changes)
    stage.api.answers["delete", "*"] = {"kind": "Status"}
    for index in range(3):
        raw = raw_pod(index)
        stage.known.pods.put(f"lab/{raw['metadata']['name']}", stage.known.pods.keep(raw))
    return stage


def test_it_goes_on_and_its_pods_are_counted() -> None:
    """What only a plan reads is needed for nothing else."""
    stage = running()
    stage.known.services.put("lab/mnist", stage.known.services.keep(service()))
    stage.look()
    assert stage.api.named("create") == []
    assert stage.status["replicas"]["worker"]["active"] == 3
    assert not any(each["type"] == "Understood" for each in stage.status["conditions"])


def test_its_owner_can_suspend_it() -> None:
    """The status first, then the pods."""
    stage = running(suspend=True)
    stage.look()
    stage.look()
    assert stage.status["phase"] == "Suspended"
    assert len(stage.api.named("delete")) == 3


def test_its_deadline_ends_it() -> None:
    stage = running(activeDeadlineSeconds=40)
    stage.look()
    stage.look()
    assert stage.status["phase"] == "Failed"
    assert len(stage.api.named("delete")) == 3


def test_what_it_lacks_is_not_created_and_the_condition_says_what_can_be_done() -> None:
    """No upgrade would help."""
    stage = running()
    stage.look()
    assert stage.api.named("create") == []
    (condition,) = [each for each in stage.status["conditions"] if each["type"] == "Understood"]
    assert condition["reason"] == "TooLarge"
    mentions(condition["message"], "want at most 262144", "suspended", "deleted")
    assert "upgraded" not in condition["message"]


def service() -> Json:
    """The Service of the run."""
    metadata = {**raw_pod(0)["metadata"], "name": "mnist", "resourceVersion": "9"}
    return {"metadata": metadata, "spec": {"selector": {}}}


@pytest.mark.parametrize("labels", [{}, {"team": "a" * 63}])
def test_annotations_hold_nothing(labels: Json) -> None:
    """However long they are: the author of a Run may write them at any time."""
    stage = Stage(status=RUNS, suspend=True)
    raw = raw_run(status=RUNS, suspend=True, version=150)
    raw["metadata"] |= {"annotations": {"note": "x" * 2 * MOST_BYTES}, "labels": labels}
    stage.known.runs.put("lab/mnist", stage.known.runs.keep(raw))
    for index in range(3):
        pod = raw_pod(index)
        stage.known.pods.put(f"lab/{pod['metadata']['name']}", stage.known.pods.keep(pod))
    stage.look()
    assert stage.status["phase"] == "Suspended"
