"""How long replicas wait before they start again, and when that is forgotten."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.run.scene import BEGIN, Scene, workers
from webhook.backoff import RESTART_DELAYS, Delays
from webhook.run.backoff import STABLE, by_index, grouped, remaining
from webhook.run.model import Recovering
from webhook.times import to_second


def waits(scene: Scene) -> float:
    """Seconds until worker-0 is made anew, looked at as often as the run asks for."""
    begin = scene.now
    while "worker-0" not in scene.pods or scene.pod("worker-0").phase == "Failed":
        assert scene.after is not None
        scene.later(scene.after)
    return (scene.now - begin).total_seconds()


def test_the_delay_doubles_from_10_seconds_to_6_minutes() -> None:
    """As in Kubernetes' Job controller and kubelet."""
    assert [RESTART_DELAYS.after(row) for row in range(1, 9)] == [
        10,
        20,
        40,
        80,
        160,
        320,
        360,
        360,
    ]
    assert RESTART_DELAYS.after(10**6) == 360


def test_a_replica_that_fails_again_and_again_waits_ever_longer() -> None:
    """The pod that failed stays until then: its log can be read."""
    scene = Scene(**workers(1), backoffLimit=9)
    waited = []
    for _ in range(7):
        scene.runs().exits("worker-0", 1)
        assert scene.pods == ["worker-0"]
        waited.append(waits(scene))
    assert waited == [10, 20, 40, 80, 160, 320, 360]


def test_an_admin_sets_the_first_and_the_longest_wait() -> None:
    """The wait doubles in between, as it does by default."""
    scene = Scene(**workers(1), backoffLimit=9, restart_delays=Delays(first=2.0, longest=6.0))
    waited = []
    for _ in range(4):
        scene.runs().exits("worker-0", 1)
        waited.append(waits(scene))
    assert waited == [2, 4, 6, 6]


def test_disruptions_wait_too() -> None:
    """A node that evicts everything would be asked without end."""
    scene = Scene(**workers(1))
    waited = []
    for _ in range(3):
        scene.runs().vanishes("worker-0")
        assert scene.pods == []
        waited.append(waits(scene))
    assert waited == [10, 20, 40]


def test_a_replica_that_was_stable_begins_at_10_seconds_again() -> None:
    """It has shown that it can run."""
    scene = Scene(**workers(1), backoffLimit=9)
    for _ in range(3):
        scene.runs().exits("worker-0", 1)
        waits(scene)
    scene.runs().later(STABLE)
    assert scene.role("worker").recovering == ()
    scene.exits("worker-0", 1)
    assert waits(scene) == 10


def test_each_replica_waits_for_itself() -> None:
    """The others are left alone."""
    scene = Scene(**workers(3), backoffLimit=9).runs()
    kept = scene.pod("worker-1").uid
    scene.exits("worker-0", 1).later(5).exits("worker-2", 1)
    assert scene.after == 5
    scene.later(5)
    assert [scene.pod(each).phase for each in scene.pods] == ["Pending", "Running", "Failed"]
    scene.later(5)
    assert [scene.pod(each).phase for each in scene.pods] == ["Pending", "Running", "Pending"]
    assert scene.pod("worker-1").uid == kept


def test_a_clock_that_was_set_back_holds_nobody_longer_than_the_whole_delay() -> None:
    """A failure of tomorrow waits no longer than one of now."""
    entry = Recovering(indexes="0", failures=2, since=to_second(BEGIN + timedelta(days=1)))
    assert remaining(entry, BEGIN, RESTART_DELAYS) == 20
    assert remaining(None, BEGIN, RESTART_DELAYS) == 0


@pytest.mark.parametrize("failures", [{}, {0: (1, "a"), 1: (1, "a"), 3: (2, "a"), 2: (1, "b")}])
def test_what_waits_is_kept_together_and_read_again(failures: dict[int, tuple[int, str]]) -> None:
    """A gang of thousands that went down at once is one entry."""
    entries = grouped(failures)
    known = by_index(entries)
    assert {index: (one.failures, one.since) for index, one in known.items()} == failures
    assert len(entries) == len(set(failures.values()))
