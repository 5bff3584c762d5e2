"""Which gang the controller lets start; the order itself: tests/run/test_gang.py."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.controller.runs import Json, raw_node, raw_run
from tests.wording import mentions
from webhook.controller.observed_state import ObservedState
from webhook.controller.refusals import Refusals
from webhook.controller.starts import Starts
from webhook.run.model import Run
from webhook.run.plan import plan
from webhook.run.room import room_of_run
from webhook.run.start_order import NO_START, Start

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LIMITS: Json = {"limits": {"example.com/gpu": "1"}}


def gang(name: str, state: str = "", workers: int = 2, **status: Any) -> Json:
    """A stored Run; names that sort first are older."""
    if state:
        status = {"gang": {"state": state, "since": "2026-11-30T11:59:59Z"}, **status}
    worker = {"count": workers, "resources": LIMITS}
    found = raw_run(
        name=name,
        status={"startTime": "2026-11-30T11:00:00Z", **status} if status else None,
        gang={"startWithin": "10m"},
        replicas={"worker": worker},
    )
    found["metadata"]["creationTimestamp"] = f"2026-11-30T11:00:0{ord(name) - ord('a')}Z"
    return found


class Stage:
    """Some Runs, and some nodes of one GPU."""

    def __init__(self, *runs: Json, nodes: int | None = 2) -> None:
        self.state = ObservedState()
        self.woken: list[str] = []
        self.starts = Starts(self.state, Refusals(), self.woken.append, now=lambda: NOW)
        self.state.runs.replace({}, "1")
        for raw in runs:
            self.put(raw)
        self.nodes = nodes
        for number in range(nodes or 0):
            node = raw_node(f"n{number}")
            room = {"example.com/gpu": "1", "cpu": "8", "pods": "110"}
            node["status"] = {**node.get("status", {}), "allocatable": room}
            self.state.nodes.cache.put(f"n{number}", self.state.nodes.cache.keep(node))

    def put(self, raw: Json) -> None:
        """A Run is heard of."""
        key = f"lab/{raw['metadata']['name']}"
        self.state.runs.put(key, self.state.runs.keep(raw))

    def observe(self, raw: Json) -> Start:
        """What is known of its start."""
        run = Run.model_validate(raw, by_alias=True, by_name=False)
        planned = plan(run)
        known = self.nodes is not None
        room = room_of_run(planned, self.state.nodes.groups) if known else None
        return self.starts.observe(run, planned, room)


def test_a_grant_counts_before_its_status_is_heard_of() -> None:
    """Then the status does, and once it is over the others are looked at again."""
    first, second = gang("a"), gang("b")
    stage = Stage(first, second)
    assert stage.observe(first).granted
    mentions(stage.observe(second).why, "lab/a starts")
    stage.put(gang("a", "Starting"))
    assert not stage.observe(second).granted
    assert stage.woken == []
    stage.put(gang("a", "Whole"))
    assert stage.woken == ["uid-b"]
    assert stage.observe(second).granted


def test_one_that_never_fits_is_told_so_and_keeps_nobody_waiting() -> None:
    """If nodes can be made for it, it may try."""
    large, small = gang("a", workers=3), gang("b")
    stage = Stage(large, small)
    told = stage.observe(large)
    assert not told.granted
    mentions(told.why, "at most 2 of 3 replicas", "example.com/gpu")
    assert stage.observe(small).granted


def test_without_nodes_it_is_not_known_whether_all_fit() -> None:
    """Of a controller for one namespace; the start is granted all the same."""
    large = gang("a", workers=3)
    told = Stage(large, nodes=None).observe(large)
    assert told.granted
    mentions(told.why, "does not know the nodes")


def test_only_what_has_a_start_to_come_competes() -> None:
    """Not a Run that is whole, suspended, over or without a gang."""
    plain = raw_run(name="c")
    for other in (gang("a", "Whole"), gang("a", phase="Succeeded"), plain):
        assert Stage(other, gang("b")).observe(gang("b")).granted
        assert Stage(other).observe(other) == NO_START


def test_those_that_are_not_whole_are_counted() -> None:
    """With the longest time for which one was not, over its tries."""
    stage = Stage(gang("a"), gang("b", "Starting"))
    starts = stage.starts
    assert (starts.count("Waiting"), starts.count("Starting")) == (1, 1)
    assert starts.longest_wait() == 3600
    stage.put(gang("a", "Starting"))
    assert starts.longest_wait() == 3600
    stage.put(gang("a", "Whole"))
    assert (starts.count("Waiting"), starts.count("Starting"), starts.longest_wait()) == (0, 1, 1)
