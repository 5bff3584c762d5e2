"""What the harness counts by, without a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos import isolation, routed, tables
from tests.chaos.ledger import FAILED
from tests.chaos.results import Results
from tests.chaos.scenarios import SCENARIOS
from tests.chaos.stage import Tally, none_of
from tests.wording import Wording, mentions
from webhook.errors import SandboxError

CALL = 'failed calling webhook "pods-0.fairlead.dev": failed to call webhook: Post "https://x":'


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("dial tcp 198.18.0.7:8443: connect: connection refused", routed.REFUSED),
        ("EOF", routed.BROKEN_OFF),
        (
            "read tcp 127.0.0.1:1->198.18.0.7:8443: read: connection reset by peer",
            routed.BROKEN_OFF,
        ),
        ("context deadline exceeded", routed.TIMED_OUT),
        ("tls: failed to verify certificate", routed.UNEXPLAINED),
        ("dial tcp 10.0.0.1:8443: connect: connection refused", routed.UNEXPLAINED),
    ],
)
def test_a_failure_is_explained_by_the_api_servers_message(words: str, reason: str) -> None:
    """What is none of the dead replica's is not counted as its."""
    assert routed.reason(f"Internal error occurred: {CALL} {words}") == reason


def test_what_was_never_counted_does_not_count_as_none() -> None:
    """A rule about something that nobody looked at is broken."""
    tally = Tally()
    tally.count("seen", 0)
    assert none_of(tally, "seen") == []
    assert none_of(tally, "unseen") == ["unseen: never counted"]


def test_more_failures_than_calls_that_were_routed_to_the_dead_are_reported(
    wording: Wording,
) -> None:
    """However they are explained."""
    tally = Tally({FAILED: 3, routed.STANDING: 1, routed.ATTEMPTS: 1})
    (message,) = routed.unrouted(tally)
    mentions(message, "failed creations: 3", "at most 2")
    wording(message)


def test_tallies_of_parts_add_up() -> None:
    """Counts are summed, measurements and examples joined."""
    whole, part = Tally(), Tally({"a": 1}, {"m": [1.0]}, ["why"])
    whole.add(part)
    whole.add(part)
    assert whole == Tally({"a": 2}, {"m": [1.0, 1.0]}, ["why"])
    assert Tally.from_json(json.loads(json.dumps(whole.as_json()))) == whole


def test_a_run_goes_on_where_it_ended(tmp_path: Path) -> None:
    """With its own seed; another one is refused."""
    results = Results(tmp_path, 7)
    played = results.of("kill")
    played.parts, played.rounds = 2, 40
    played.tally.count("replicas killed", 40)
    results.save()
    resumed = Results.resumed(tmp_path, None)
    assert resumed is not None
    assert (resumed.seed, resumed.of("kill")) == (7, played)
    with pytest.raises(ValueError, match="the seed 7"):
        Results.resumed(tmp_path, 8)


def test_without_results_there_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    """A first run with --resume is a run."""
    assert Results.resumed(tmp_path, None) is None


def test_without_the_tools_the_cure_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Never skipped."""
    monkeypatch.setattr(isolation, "_FOLDERS", "")
    with pytest.raises(SandboxError, match="install iproute2"):
        isolation.command([])


def test_the_namespace_of_others_is_left_alone() -> None:
    """Addresses are given only to a namespace that was made for it."""
    here = Path("/proc/self/ns/net").readlink()
    with pytest.raises(SandboxError, match="this very network namespace"):
        isolation.furnish(str(here))


def test_the_document_has_a_place_for_every_scenario() -> None:
    """Before the hours of work, not after."""
    tables.check(SCENARIOS)


def test_an_unknown_scenario_is_reported_with_the_known_ones(wording: Wording) -> None:
    """Before anything is made."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos", "nonsense"], capture_output=True, text=True
    )
    assert done.returncode == 1
    mentions(done.stderr, "no scenario nonsense", "rolling, upgrade, kill")
    wording(done.stderr)
