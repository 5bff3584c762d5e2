"""A diagnosis as text and as a document."""

from __future__ import annotations

import click

from tests.wording import Wording, mentions
from webhook.cli.doctor import lines
from webhook.installation.doctor.cluster_state import (
    ReadKind,
    Unread,
    error,
    not_checked,
    note,
    warning,
)
from webhook.installation.doctor.diagnose import Outcome
from webhook.installation.doctor.result import document

OUTCOMES = (
    Outcome("leader", ()),
    Outcome("versions", (note("all is old"), warning("one is older", "make it new"))),
    Outcome("programs", (error("nothing runs " * 12, "start it"),)),
    Outcome("trust", ()),
)


def plain(outcomes: tuple[Outcome, ...]) -> list[str]:
    return [click.unstyle(line) for line in lines(outcomes)]


def test_the_worst_comes_first_and_the_sum_last() -> None:
    """Each with its cure under it; long lines go on below their own beginning."""
    shown = plain(OUTCOMES)
    assert shown[0].startswith("error    programs: nothing runs")
    assert shown[1].startswith("         nothing runs")
    assert shown[2:] == [
        "         cure: start it",
        "warning  versions: one is older",
        "         cure: make it new",
        "note     versions: all is old",
        "ok       leader, trust",
        "",
        "1 error and 1 warning.",
    ]
    assert all(len(line) <= 100 for line in shown)


def test_where_all_is_well_it_says_so(wording: Wording) -> None:
    """In two lines."""
    *checks, verdict = plain(OUTCOMES[:1])
    assert checks == ["ok       leader", ""]
    mentions(verdict, "No problem found")
    assert "could" not in verdict
    wording(verdict)


def test_what_could_not_be_looked_at_is_not_called_well(wording: Wording) -> None:
    """It is unknown, with the reason and the cure, whatever else was found; exit code 2."""
    refused = Unread("pods is forbidden", "ask an admin")
    some = {ReadKind.PODS_OF_RUNS: refused}
    unread = Outcome("unplaced pods", (note("one is old"),), some)
    both = Outcome("agents", (), some)
    outcomes = (OUTCOMES[0], unread, both)
    old, unknown, cure, *checks, verdict = plain(outcomes)
    mentions(old, "one is old")
    assert unknown.startswith("unknown  unplaced pods, agents: ")
    mentions(unknown, "could not read pods of runs: pods is forbidden")
    mentions(cure, "cure: ask an admin")
    assert checks == ["ok       leader", ""]
    mentions(verdict, "could be read")
    wording(f"{unknown}\n{verdict}")
    made = document(outcomes)
    assert (made["unknown"], made["ok"]) == (["unplaced pods", "agents"], ["leader"])
    assert made["unread"] == [
        {"what": "pods of runs", **refused._asdict(), "checks": ["unplaced pods", "agents"]}
    ]


def test_programs_get_the_same() -> None:
    """With the numbers of errors and of warnings."""
    made = document(OUTCOMES)
    assert (made["errors"], made["warnings"], made["ok"]) == (1, 1, ["leader", "trust"])
    assert [each["severity"] for each in made["findings"]] == ["error", "warning", "note"]
    assert made["findings"][1] == {
        "check": "versions",
        "severity": "warning",
        "message": "one is older",
        "cure": "make it new",
    }


def test_where_nothing_could_be_read_nothing_is_called_well(wording: Wording) -> None:
    """Not even in what could be read."""
    unread = Outcome("policies", (), {ReadKind.POLICIES: Unread("forbidden", "ask")})
    for outcome in (unread, Outcome("policies", (not_checked("it runs elsewhere"),))):
        *_, verdict = plain((outcome,))
        assert "No problem" not in verdict
        wording(verdict)
