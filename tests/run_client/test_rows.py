"""Runs as rows of a list."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from webhook.crd.conditions import ConditionUpdate
from webhook.run.model import RunStatus
from webhook.run.reading import held_status
from webhook.run_client.rows import NOT_COUNTED, row_of

NOW = datetime(2026, 11, 21, 20, tzinfo=UTC)
STATUS: dict[str, Any] = {
    "phase": "Running",
    "replicasReady": "3/3",
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": "2026-11-21T19:00:00Z",
            "reason": "AllReady",
            "message": "3 replicas are ready",
        }
    ],
}


def row_with(status: dict[str, Any]) -> Any:
    return row_of({"metadata": {"name": "r", "namespace": "n"}, "spec": {}, "status": status})


def test_of_a_run_that_is_held_no_replica_is_called_ready() -> None:
    """Its counts are those of the time before."""
    held = ConditionUpdate("Understood", "False", "UnknownSpec", "spec.gang: no such field")
    status = held_status(STATUS, held, 1, NOW)
    assert (row_with(STATUS).ready, row_with(status).ready) == ("3/3", NOT_COUNTED)
    assert RunStatus.read(status).held
    ready = next(each for each in status["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("Unknown", "NotUnderstood")
    assert held_status(status, held, 1, NOW) == status


def test_a_run_that_goes_on_with_an_unknown_word_is_not_held() -> None:
    """It is counted as any other."""
    words = ConditionUpdate("Understood", "False", "UnknownWords", "status.phase: not known")
    status = held_status({**STATUS, "conditions": []}, words, 1, NOW)
    assert not RunStatus.read(status).held
    assert row_with(status).ready == "3/3"
