"""A Run's life as a picture: every incident is in it, and nothing in it can do harm."""

from __future__ import annotations

from datetime import datetime, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from webhook.run.model import RunStatus
from webhook.run_client.report import Report
from webhook.run_client.timeline import svg, timeline_of
from webhook.times import parse_time, to_second

BEGIN = parse_time("2026-01-01T00:00:00Z")
SVG = "{http://www.w3.org/2000/svg}"


def after(seconds: float) -> str:
    """A moment, so many seconds after the creation."""
    return to_second(BEGIN + timedelta(seconds=seconds))


def report(**status: object) -> Report:
    """A Run that was created at the beginning."""
    found = RunStatus.model_validate(status)
    return Report("ns", "mnist", "training", "", after(0), False, False, found, ())


def incident(began: float, lost: int | None = None, cause: str = "Failure", **more: str) -> object:
    """An incident as a status has it."""
    found = {"cause": cause, "reason": "Error", "replica": "mnist-worker-1", **more}
    return {**found, "began": after(began), "secondsLost": lost}


def at(seconds: float) -> datetime:
    """As `after`."""
    return BEGIN + timedelta(seconds=seconds)


def test_waiting_and_active_and_down_times_are_there() -> None:
    """From creation to end; an incident that is not over lasts until now."""
    found = timeline_of(
        report(startTime=after(60), incidents=[incident(100, 20), incident(180)]), at(200)
    )
    assert found.seconds == 200
    assert [(each.what, each.begin, each.end) for each in found.segments] == [
        ("waiting", 0, 60),
        ("active", 60, 100),
        ("down", 100, 120),
        ("active", 120, 180),
        ("down", 180, 200),
    ]
    assert "all ran again after 20s" in found.marks[0].text
    assert [tuple(each) for each in found.attempts] == [
        ("attempt 1", 60, 100),
        ("attempt 2", 100, 180),
        ("attempt 3", 180, 200),
    ]


def test_attempts_have_no_number_once_the_status_has_lost_incidents() -> None:
    """It keeps the last five, and others before them are not known."""
    incidents = [incident(began, 1) for began in (100, 110, 120, 130, 140)]
    found = timeline_of(report(startTime=after(60), incidents=incidents), at(200))
    assert [each.what for each in found.attempts] == ["earlier", *["attempt"] * 5]


def test_little_of_the_picture_moves_with_the_time() -> None:
    """So an update of a page is small: the last parts grow, and all else stays for a while."""
    run = report(startTime=after(60), incidents=[incident(began, 9) for began in (100, 900, 1900)])
    before, now = (set(svg(run, at(moment)).splitlines()) for moment in (3601, 3605))
    assert len(now - before) <= 4


def test_an_end_ends_the_picture() -> None:
    """However long ago."""
    ended = report(startTime=after(1), completionTime=after(50), phase="Succeeded")
    assert timeline_of(ended, at(9999)).seconds == 50


@pytest.mark.property
@settings(max_examples=examples(200))
@given(
    now=st.integers(0, 10**7),
    start=st.none() | st.integers(0, 10**7),
    incidents=st.lists(
        st.builds(
            incident,
            st.integers(0, 10**7),
            st.none() | st.integers(0, 10**7),
            st.sampled_from(["Failure", "Disruption", "Unknown"]),
            reason=st.text(max_size=20),
            node=st.text(max_size=20),
        ),
        max_size=10,
    ),
)
def test_the_picture_is_valid_and_has_every_incident(
    now: int, start: int | None, incidents: list[object]
) -> None:
    """Whatever clocks and authors do: inside its frame, and only text of theirs."""
    run = report(startTime=None if start is None else after(start), incidents=incidents)
    found = timeline_of(run, at(now))
    ends = [0.0]
    for each in found.segments:
        assert each.begin == ends[-1] < each.end
        ends.append(each.end)
    assert max(1.0, ends[-1]) == found.seconds, "the parts are the whole"
    root = ElementTree.fromstring(svg(run, at(now)))  # noqa: S314  (of our own making)
    assert len(root.findall(f"{SVG}path")) == len(incidents)
    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= {
        "svg",
        "title",
        "rect",
        "path",
        "text",
    }
    keys = [key for each in root.iter() for key in each.attrib]
    assert not any(key.startswith("on") or "href" in key for key in keys)


def test_a_run_that_is_not_whole_is_not_active() -> None:
    """Since it lost a replica it is down; if it was never whole, it waits, whatever it lost."""

    def not_ready(since: float) -> list[dict[str, str]]:
        moment = after(since)
        return [{"type": "Ready", "status": "False", "lastTransitionTime": moment, "reason": "R"}]

    lost = report(startTime=after(10), incidents=[incident(100)], conditions=not_ready(100))
    assert [(each.what, each.begin, each.end) for each in timeline_of(lost, at(200)).segments] == [
        ("waiting", 0, 10),
        ("active", 10, 100),
        ("down", 100, 200),
    ]
    never = report(startTime=after(10), incidents=[incident(100, 20)], conditions=not_ready(10))
    found = timeline_of(never, at(200))
    assert [(each.what, each.begin, each.end) for each in found.segments] == [("waiting", 0, 200)]
    assert len(found.marks) == 1


def test_the_nodes_of_an_incident_are_named_and_many_are_counted() -> None:
    """The first has its class."""
    found = incident(9, node="a")
    assert isinstance(found, dict)
    found |= {"class": "spot", "otherNodes": ["b", "c", "d"]}
    (mark,) = timeline_of(report(startTime=after(1), incidents=[found]), at(20)).marks
    assert "mnist-worker-1 on a of class spot and b and c and 1 more:" in mark.text


def test_a_run_whose_replicas_run_and_were_never_ready_is_not_waiting() -> None:
    """The fourth state, beside waiting, active and down."""
    condition = {
        "type": "Ready",
        "status": "False",
        "lastTransitionTime": after(10),
        "reason": "NotReady",
    }
    run = report(startTime=after(10), conditions=[condition], phase="Running")
    assert [(each.what, each.begin, each.end) for each in timeline_of(run, at(200)).segments] == [
        ("waiting", 0, 10),
        ("not ready", 10, 200),
    ]
