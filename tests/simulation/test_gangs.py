"""Runs that share too few nodes: each by itself, and all at once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulation.scenes import played_together, run_of, scenario
from tests.wording import mentions
from webhook.run.model import Run
from webhook.simulation.play import Ending

GPU = {"nvidia.com/gpu": 8}
HERE: dict[str, Any] = {"name": "here", "nodes": 6, "boot": "0s", "allocatable": GPU}
LATER: dict[str, Any] = {
    "name": "later",
    "nodes": 2,
    "allocatable": GPU,
    "events": [{"at": "0s", "soldOut": "4h"}],
}
PROGRAM = {"work": "6h", "checkpoint": "30m"}


def team(name: str, gang: str | None = "20m", workers: int = 4, **spec: Any) -> Run:
    """A Run of a team; without `gang` each replica starts by itself."""
    run = run_of(
        restartScope="Replica",
        replicas={"worker": {"count": workers, "resources": {"limits": GPU}}},
        **({"gang": {"startWithin": gang}} if gang else {}),
        **spec,
    )
    return run.model_copy(update={"metadata": run.metadata.model_copy(update={"name": name})})


def together(text: bytes, *runs: Run) -> dict[str, Ending]:
    """The endings by name of the run."""
    endings = played_together({}, text, runs)
    return {run.name: ending for run, ending in zip(runs, endings, strict=True)}


def whats(ending: Ending, reason: str) -> list[str]:
    return [each.what for each in ending.happenings if each.what.startswith(f"{reason}: ")]


def test_two_runs_hold_the_nodes_of_each_other() -> None:
    """Without gangs, for ever; with them, one after the other, and none holds what it cannot
    use."""
    text = scenario([HERE], program=PROGRAM, limit="48h")
    plain = together(text, team("a", None), team("b", None))
    assert {each.phase for each in plain.values()} == {"Starting"}
    assert [each.held for each in plain.values()] == [3 * 48, 3 * 48]
    gangs = together(text, team("a"), team("b"))
    assert {each.phase for each in gangs.values()} == {"Succeeded"}
    assert (gangs["a"].seconds, gangs["a"].held) == (6 * 3600, 0)
    # The nodes of the second are free at once. It tries again within ten minutes.
    assert 12 * 3600 <= gangs["b"].seconds <= 12.2 * 3600
    assert 0 < gangs["b"].held < 2 * 6


def test_what_gives_way_holds_no_node_and_is_charged_nothing() -> None:
    """Two of four replicas have a node for the time of each try, and that is all."""
    text = scenario([HERE, LATER], program=PROGRAM)
    gangs = together(text, team("a"), team("b"))
    tries = len(whats(gangs["b"], "GaveNodesBack"))
    assert tries > 3
    assert gangs["b"].held == pytest.approx(tries * 2 * 20 / 60 + 2 * 2 / 60, abs=0.1)
    assert gangs["b"].lost == pytest.approx(gangs["b"].held, abs=0.1)
    assert gangs["b"].incidents == 0


def test_gangs_start_in_their_order() -> None:
    """The older one first, whatever comes first in the file."""
    text = scenario([HERE], program=PROGRAM, runs=[{"name": "a", "at": "1m"}])
    endings = together(text, team("a"), team("b"))
    assert endings["b"].seconds == 6 * 3600
    assert endings["a"].seconds > 11 * 3600


def test_a_run_begins_at_its_time_and_works_for_its_own() -> None:
    """Its time counts from its creation."""
    own = [{"name": "b", "at": "7h", "work": "1h"}]
    text = scenario([HERE], program=PROGRAM, runs=own)
    endings = together(text, team("a", None), team("b", None))
    assert [each.seconds for each in endings.values()] == [6 * 3600, 3600]
    assert endings["b"].happenings[0].at == 7 * 3600
    assert [each.held for each in endings.values()] == [0, 0]


def test_a_gang_that_never_fits_holds_nothing() -> None:
    """Its reason is that of the controller."""
    text = scenario([HERE], program=PROGRAM, limit="12h")
    endings = together(text, team("a", workers=7), team("b"))
    assert (endings["a"].phase, endings["a"].held) == ("Pending", 0)
    mentions(endings["a"].reason, "at most 6 of 7 replicas", "nvidia.com/gpu")
    assert endings["b"].seconds == 6 * 3600


def test_a_whole_gang_that_loses_a_node_goes_on() -> None:
    """Its replica is replaced before the other one starts, and no other of its pods goes."""
    spare = {**HERE, "nodes": 4, "events": [{"at": "1h", "lose": 1}]}
    text = scenario([spare], program=PROGRAM)
    endings = together(text, team("a"), team("b"))
    began = [each for each in endings["a"].happenings if "runs in pool" in each.what]
    assert len(began) == 5
    assert endings["a"].incidents == 1
    assert endings["a"].seconds < 6.6 * 3600
    assert endings["b"].held < 2 * 6
