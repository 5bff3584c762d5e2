"""What autoscalers report about waiting pods; tests/cluster/test_run_status.py has it for real."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.controller.runs import Api, refused
from tests.run.whole_runs import a_run
from webhook.controller.waiting_pods import WaitingPods
from webhook.placement.node_groups import NodeGroups
from webhook.placement.nodes import Node
from webhook.run.observed import OwnedPod, Refusal
from webhook.run.plan import Plan, plan
from webhook.run.run_documents import run_of


def event(message: str, seen: str, who: str = "karpenter") -> dict[str, Any]:
    """An Event as components write them that use client-go's newer recorder."""
    return {
        "message": message,
        "eventTime": "2026-01-01T00:00:00.5Z",
        "series": {"lastObservedTime": seen},
        "reportingComponent": who,
    }


class Stage:
    """One pod that waits, Events that are there, and the time."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self.now = 100.0
        self.left = 0.0
        self.tried: list[str] = []
        self.api = Api({("list", "events"): {"items": list(events)}})
        self.waiting = WaitingPods(self.api.client, clock=lambda: self.now)

    def room(self, uid: str, planned: Plan, nodes: NodeGroups, always: bool = False) -> Any:
        """That of a Run whose pods are rejected if they are tried."""

        async def place() -> Refusal:
            self.tried.append(uid)
            return Refusal("worker-0", "Rejected", "no")

        found = self.waiting.room(uid, planned, nodes, place, always=always)
        return asyncio.run(found)

    def report(self, uid: str = "one", pause: float = 60.0) -> str:
        """What is said about a pod."""
        pod = OwnedPod(
            "mnist-worker-0", uid, "run", "worker", 0, 0, "Pending", unscheduled="0/3 nodes"
        )
        text, self.left = asyncio.run(self.waiting.report("lab", pod, pause))
        return text


def test_the_newest_event_counts_and_what_the_condition_says_does_not() -> None:
    """A repetition changes no text."""
    stage = Stage(
        event("two\n lines", "2026-01-01T00:02:00Z"),
        event("one", "2026-01-01T00:01:00Z"),
        event("0/3 nodes are available", "2026-01-01T00:03:00Z", who="my-scheduler"),
    )
    assert stage.report() == "karpenter since 2026-01-01T00:00:00.5Z: two lines"


@pytest.mark.parametrize(
    ("pause", "later", "reads"), [(60.0, 59.0, 1), (60.0, 60.0, 2), (0.0, 0.5, 1), (0.0, 1.0, 2)]
)
def test_reads_are_few(pause: float, later: float, reads: int) -> None:
    """For one pod after its pause, and for all of them after a second."""
    stage = Stage(event("one", "2026-01-01T00:01:00Z"))
    before = stage.report(pause=pause)
    assert (stage.report("other"), stage.left) == ("", 1.0)
    stage.now += later
    assert stage.report(pause=pause) == before != ""
    assert len(stage.api.calls) == reads
    assert stage.left == (1.0 if (pause, later) in ((60.0, 59.0), (0.0, 0.5)) else pause)


def test_events_that_cannot_be_read_hold_nothing_up() -> None:
    """As with the rights of an earlier version."""
    stage = Stage()
    stage.api.answers["list", "events"] = refused(403, "Forbidden")
    assert stage.report() == ""


def test_the_room_of_a_run_is_at_most_a_minute_old() -> None:
    """So its status changes at most once a minute, however often nodes come and go.

    Of several Runs in a second, the pods of one are tried, and of those that are to start.
    """
    stage, nodes = Stage(), NodeGroups()
    planned = plan(run_of(a_run(replicas={"worker": {"count": 2}}), "lab"))
    assert stage.room("one", planned, nodes).message == "no"
    nodes.update("n1", Node("n1", {}, [], allocatable={"pods": 1}))
    assert stage.room("one", planned, nodes).message == "no"
    assert stage.room("two", planned, nodes).most == 1
    assert stage.room("three", planned, nodes, always=True).message == "no"
    nodes.update("n2", Node("n2", {}, [], allocatable={"pods": 1}))
    assert stage.room("two", planned, nodes).most == 1
    stage.now += 60
    assert stage.room("two", planned, nodes).message == "no"
    assert stage.tried == ["one", "three", "two"]


def test_so_many_rooms_are_found_in_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more Runs that wait it is not known, and none is found again at each look."""
    monkeypatch.setattr("webhook.controller.waiting_pods._MOST_ROOMS", 2)
    stage, nodes = Stage(), NodeGroups()
    planned = plan(run_of(a_run(replicas={"worker": {"count": 2}}), "lab"))

    def is_found(uid: str) -> bool:
        return stage.room(uid, planned, nodes) is not None

    assert [is_found(uid) for uid in ("one", "two", "three", "one")] == [True, True, False, True]
    stage.now += 60
    assert is_found("three")
