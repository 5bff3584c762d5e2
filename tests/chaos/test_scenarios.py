"""The short form of each scenario: three replicas behind their Service, under load."""

from __future__ import annotations

from tests.chaos import attacked, killed, outage, overload, rolling, rotated, routed, stopped
from tests.chaos.ledger import CREATIONS, FAILED
from tests.chaos.play_short import PlayShort


def test_rolling_restarts_fail_no_creation(play_short: PlayShort) -> None:
    """And no pod of a run is created as it came."""
    tally = play_short("rolling")
    assert tally[rolling.RESTARTS] == rolling.SCENARIO.short
    assert tally[CREATIONS] > 100
    assert tally[FAILED] == 0


def test_a_killed_replica_fails_no_creation_that_was_not_sent_to_it(
    play_short: PlayShort,
) -> None:
    """At most as many fail as connections stood to it, or were begun to it afterwards."""
    tally = play_short("kill")
    assert tally[killed.KILLS] == killed.SCENARIO.short
    assert tally[FAILED] <= tally[routed.STANDING] + tally[routed.ATTEMPTS]


def test_a_replica_that_stands_still_fails_no_creation_that_was_not_sent_to_it(
    play_short: PlayShort,
) -> None:
    """The API server waits for its answer until the webhook's time is up."""
    tally = play_short("stop")
    assert tally[stopped.STOPS] == stopped.SCENARIO.short


def test_rotations_and_crashes_in_the_middle_of_them_fail_no_creation(
    play_short: PlayShort,
) -> None:
    """Of the leaf and of the authority; the controller dies after each of its writes."""
    tally = play_short("rotate")
    assert (tally[rotated.LEAVES], tally[rotated.AUTHORITIES]) == (1, 1)
    assert tally[rotated.CRASHES] > 3
    assert tally[FAILED] == 0


def test_with_every_replica_down_each_mode_does_what_it_says(play_short: PlayShort) -> None:
    """Refused, denied, or admitted with a warning; and never another pod."""
    tally = play_short("outage")
    for mode in outage.MODES:
        assert tally[f"{mode}: {outage.CREATIONS_DURING}"] > 0
    assert tally[f"guarded-warn: {outage.ADMITTED}"] > 0


def test_under_five_times_its_load_a_replica_sheds_and_comes_back(play_short: PlayShort) -> None:
    """It stays up, within the memory that its Deployment allows."""
    tally = play_short("overload")
    assert tally[overload.SHED] > 0
    assert tally[overload.DECIDED] > 0


def test_under_attack_a_replica_answers_honest_reviews_and_is_ready(play_short: PlayShort) -> None:
    """And it stays within the memory that its Deployment allows."""
    tally = play_short("attacked")
    assert tally[attacked.ATTACKS] > 0
    assert tally[attacked.LOOKS] > 0


def test_under_steady_load_nothing_grows(play_short: PlayShort) -> None:
    """Nor does any creation fail."""
    tally = play_short("steady")
    assert tally[CREATIONS] > 100
