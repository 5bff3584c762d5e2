"""An upgrade from an earlier version, and the way back, under load and in the middle of runs."""

from __future__ import annotations

from tests.chaos import upgraded
from tests.chaos.ledger import CREATIONS, FAILED
from tests.chaos.play_short import PlayShort
from webhook.progress import Progress


def test_an_upgrade_and_its_rollback_lose_no_pod_and_no_run(play_short: PlayShort) -> None:
    """Definitions, webhook and controllers; both ways."""
    # Before the network namespace, which has no way to the packages.
    upgraded.earlier(Progress())
    tally = play_short("upgrade")
    assert tally[upgraded.ROLLOUTS] == 2 * upgraded.SCENARIO.short
    assert tally[upgraded.CHANGES] == 2 * upgraded.SCENARIO.short
    assert tally[CREATIONS] > 100
    assert tally[FAILED] == 0
