"""How long replicas wait before they start again, and when that is forgotten."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.run.scene import BEGIN, Scene, workers
from tests.wording import Wording, mentions
from webhook.backoff import RESTART_DELAYS, Delays
from webhook.run.backoff import (
    JITTER,
    MOST_REFUSALS,
    STABLE,
    Row,
    by_index,
    grouped,
    jitter_of,
    remaining,
    row_of,
)
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


def test_the_first_restart_after_a_disruption_comes_at_once_and_others_wait() -> None:
    """A node that evicts everything would be asked without end."""
    scene = Scene(**workers(1))
    waited = []
    for _ in range(4):
        scene.runs().vanishes("worker-0")
        assert scene.pods == []
        waited.append(waits(scene))
    assert 0 < waited[0] < JITTER
    assert waited[1:] == [10, 20, 40]


def test_failures_and_disruptions_wait_by_rows_of_their_own() -> None:
    """Neither makes the other wait longer."""
    scene = Scene(**workers(1), backoffLimit=9)
    scene.runs().exits("worker-0", 1)
    assert waits(scene) == 10
    scene.runs().vanishes("worker-0")
    assert waits(scene) < JITTER
    scene.runs().exits("worker-0", 1)
    assert waits(scene) == 20
    scene.runs().vanishes("worker-0")
    assert waits(scene) == 10


def test_disruptions_are_forgiven_after_a_stable_time() -> None:
    """The next one is the first again."""
    scene = Scene(**workers(1))
    for _ in range(3):
        scene.runs().vanishes("worker-0")
        waits(scene)
    scene.runs().later(STABLE).vanishes("worker-0")
    assert waits(scene) < JITTER


def test_runs_begin_again_at_different_moments() -> None:
    """Those that lose their nodes at the same time; one run always at the same."""
    moments = {jitter_of(f"run-{number}", "now") for number in range(50)}
    assert len(moments) > 40
    assert all(0 <= each < JITTER for each in moments)
    assert jitter_of("run-1", "now") in moments


@pytest.mark.parametrize("reason", ["NodeAffinity", "OutOfcpu", "UnexpectedAdmissionError"])
def test_a_pod_that_its_kubelet_refuses_waits_as_after_a_failure(reason: str) -> None:
    """Else it would be made and refused without end: the scheduler's view is the same."""
    scene = Scene(**workers(1), backoffLimit=0)
    waited = []
    for _ in range(3):
        scene.fails("worker-0", reason=reason, node="node-a")
        waited.append(waits(scene))
    assert waited == [10, 20, 40]
    assert (scene.role("worker").failed, scene.role("worker").restarts) == (0, 3)


def test_a_pod_that_kubelets_refuse_again_and_again_ends_the_run(wording: Wording) -> None:
    """After half an hour; a pod that was admitted in between begins the count anew."""
    scene = Scene(**workers(1))
    for _ in range(MOST_REFUSALS - 1):
        scene.fails("worker-0", reason="OutOfcpu", node="node-a")
        waits(scene)
    scene.runs().vanishes("worker-0")
    waits(scene)
    for _ in range(MOST_REFUSALS - 1):
        scene.fails("worker-0", reason="OutOfcpu", node="node-a")
        waits(scene)
    assert scene.status.phase != "Failed"
    scene.fails("worker-0", reason="OutOfcpu", node="node-a")
    failed = scene.condition("Failed")
    assert failed is not None
    assert failed.reason == "PodRefused"
    mentions(failed.message, "worker-0", "OutOfcpu", "node-a", str(MOST_REFUSALS))
    wording(failed.message)


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
    tomorrow = to_second(BEGIN + timedelta(days=1))
    entry = Recovering(indexes="0", failures=2, wait_milliseconds=20_000, since=tomorrow)
    assert remaining(entry, BEGIN) == 20
    assert remaining(None, BEGIN) == 0


def test_a_status_without_a_wait_is_read_by_its_failures() -> None:
    """An older controller wrote none: replicas in backoff must not start at once after it."""
    entry = Recovering(indexes="0", failures=3, since=to_second(BEGIN))
    assert remaining(entry, BEGIN) == 40
    assert row_of(entry) == Row(3, 0, 0, 40.0, to_second(BEGIN))
    assert remaining(Recovering(indexes="0", disruptions=1, since=to_second(BEGIN)), BEGIN) == 0


def test_a_clock_that_was_ahead_holds_a_run_no_longer_than_its_longest_wait() -> None:
    """What it wrote of the future counts from now on: backoff, and failures that wait."""
    scene = Scene(incident_window=90.0, **workers(2), backoffLimit=9).runs()
    scene.now += timedelta(days=1)
    scene.exits("worker-0", 1)
    scene.now -= timedelta(days=1)
    scene.look()
    assert scene.after == 10
    scene.later(10)
    assert scene.pod("worker-0").phase == "Pending"
    scene.later(80)
    assert scene.role("worker").failed == 1


ONE = Row(1, 0, 0, 10.0, "a")


@pytest.mark.parametrize(
    "rows", [{}, {0: ONE, 1: ONE, 3: Row(2, 0, 1, 20.0, "a"), 2: Row(1, 3, 0, 0.5, "b")}]
)
def test_what_waits_is_kept_together_and_read_again(rows: dict[int, Row]) -> None:
    """A gang of thousands that went down at once is one entry."""
    entries = grouped(rows)
    assert {index: row_of(entry) for index, entry in by_index(entries).items()} == rows
    assert len(entries) == len(set(rows.values()))
