"""The short form of each scenario: three replicas behind their Service, under load."""

from __future__ import annotations

import pytest

from tests.chaos import attacked, outage, overload, rolling, rotated, struck
from tests.chaos.ledger import CREATIONS
from tests.chaos.play_short import PlayShort


def test_with_every_replica_down_each_mode_does_what_it_says(play_short: PlayShort) -> None:
    """Refused, denied, or admitted with a warning; and never another pod."""
    tally = play_short("outage")
    for mode in outage.MODES:
        assert tally[f"`{mode}`: {outage.CREATIONS_DURING}"] > 0
    assert tally[f"`guarded-warn`: {outage.ADMITTED}"] > 0


@pytest.mark.parametrize(
    ("scenario", "counted"),
    [
        ("rolling", [rolling.RESTARTS, CREATIONS]),
        ("kill", [struck.KILLS, CREATIONS]),
        ("stop", [struck.STOPS]),
        ("rotate", [rotated.LEAVES, rotated.AUTHORITIES, rotated.CRASHES, CREATIONS]),
        ("overload", [overload.SHED, overload.DECIDED]),
        ("attacked", [attacked.ATTACKS, attacked.LOOKS]),
        ("steady", [CREATIONS]),
    ],
)
def test_what_must_hold_of_a_scenario_holds(
    play_short: PlayShort, scenario: str, counted: list[str]
) -> None:
    """By its own rules, of which each scenario says its own; and what goes wrong went wrong."""
    tally = play_short(scenario)
    assert all(tally[what] for what in counted), tally
