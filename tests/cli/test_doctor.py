"""A diagnosis as text and as a document."""

from __future__ import annotations

import click

from tests.wording import Wording, mentions
from webhook.cli.doctor import lines
from webhook.installation.doctor.cluster_state import ReadKind, error, note, warning
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
    """It is unknown, and what could not be read is named; nor is all said to be well then."""
    unread = Outcome("unplaced pods", (), (ReadKind.NAMESPACES, ReadKind.PODS_OF_RUNS))
    unknown, *checks, verdict = plain((OUTCOMES[0], unread))
    assert unknown.startswith("unknown  unplaced pods: ")
    mentions(unknown, "read namespaces, pods of runs")
    assert checks == ["ok       leader", ""]
    mentions(verdict, "could be read")
    wording(f"{unknown}\n{verdict}")
    made = document((OUTCOMES[0], unread))
    assert (made["unknown"], made["ok"]) == (["unplaced pods"], ["leader"])


def test_programs_get_the_same() -> None:
    """With the numbers of errors and of warnings."""
    made = document(OUTCOMES)
    assert (made["errors"], made["warnings"], made["ok"]) == (1, 1, ["leader", "trust"])
    assert [each["severity"] for each in made["findings"]] == ["error", "warning", "note"]
    assert made["findings"][1] == {
        "check": "versions",
        "severity": "warning",
        "what": "one is older",
        "cure": "make it new",
    }


def test_where_nothing_could_be_read_nothing_is_called_well(wording: Wording) -> None:
    """Not even in what could be read."""
    *_, verdict = plain((Outcome("policies", (), (ReadKind.POLICIES,)),))
    assert "No problem" not in verdict
    wording(verdict)
