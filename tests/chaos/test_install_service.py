"""`fairlead install` with the webhook behind its Service, in a network namespace."""

from __future__ import annotations

import pytest

from tests.chaos import serviced
from tests.chaos.play_short import PlayShort


# Two installations wait for their programs, of which each starts in seconds on a busy machine.
@pytest.mark.timeout(600)
def test_an_installation_is_reached_through_its_service(play_short: PlayShort) -> None:
    """Installed and upgraded with no url: pods are placed, wrong policies are rejected."""
    tally = play_short("install")
    assert tally[serviced.INSTALLATIONS] == 2
    assert tally[serviced.REPLICAS] == 3
    assert tally[serviced.PLACED] == tally[serviced.REJECTED] == 2
    assert tally[serviced.FAULTS] == 0
