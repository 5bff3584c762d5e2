"""A Run's life as a picture: when it was active, when replicas were down, and why."""

from __future__ import annotations

from datetime import timedelta
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.run.incidents import KEPT_INCIDENTS
from webhook.run.model.status import READY
from webhook.run_client.status_text import where_of
from webhook.shortening import harmless
from webhook.times import elapsed, format_span, parse_time, to_second

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from webhook.run_client.report import Report

# Classes of the pages' sheet, and texts.
LEGEND: Final = (
    ("tl active", "every replica ready"),
    ("tl unready", "runs, not ready"),
    ("tl down", "replicas down"),
    ("tl waiting", "waits"),
    ("tl", "▼ disruption"),
    ("tl", "✕ failure"),
    ("tl", "■ not charged yet"),
)
# Both readable on white and on black.
_COLOURS: Final = {
    "waiting": "#9aa3ab",
    "not ready": "#5b9bd0",
    "active": "#3a9d5d",
    "down": "#c98a1b",
    "Disruption": "#c98a1b",
    "Failure": "#cf3b3b",
    "Unknown": "#7a6fb0",
    "text": "#808080",
}
_WIDTH: Final = 900
_BAND: Final = 22
_TOP: Final = 18
_ATTEMPTS: Final = 16
_HEIGHT: Final = 96
# The end of the axis moves in steps of a part of the run's life, so that little else moves.
_PARTS_OF_LIFE: Final = 50
# Pixels that the number of an attempt needs.
_LEAST_NUMBERED: Final = 20.0
# Seconds between two marks of the axis, at least so many pixels apart.
_STEPS: Final = (10, 30, 60, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 604800)
_APART: Final = 110.0


class Segment(NamedTuple):
    """A part of the band: what the run was then, from and to in seconds since its creation."""

    what: str
    begin: float
    end: float


class Mark(NamedTuple):
    """An incident. cause: as in the status; seconds: since the run's creation."""

    cause: str
    seconds: float
    text: str


class Timeline(NamedTuple):
    """seconds: from the run's creation to its end, or to now; attempts: from start to incident, and
    from incident to incident."""

    seconds: float
    segments: Sequence[Segment]
    marks: Sequence[Mark]
    attempts: Sequence[Segment] = ()


def timeline_of(report: Report, now: datetime) -> Timeline:
    """Return what the status still knows: it keeps the last incidents."""
    status = report.status
    created = report.created or to_second(now)

    ended = parse_time(status.completion_time) if status.completion_time else now
    end = max(0.0, elapsed(created, ended))

    def since(moment: str) -> float:
        # The clocks that wrote the moments may differ.
        return min(end, max(0.0, elapsed(created, parse_time(moment))))

    started = since(status.start_time) if status.start_time else end
    whole = end
    for condition in () if status.ended else status.conditions:
        if condition.type == READY and condition.status == "False":
            whole = since(condition.last_transition_time)
    # A run that was never whole waits or is not ready, whatever it has lost meanwhile.
    segments = [Segment("waiting", 0.0, started if whole > started else end)]
    if whole <= started and status.phase == "Running":
        segments = [Segment("waiting", 0.0, started), Segment("not ready", started, end)]
    downs, marks = [(whole, end)], []
    for incident in status.incidents:
        at = since(incident.began)
        lost = whole - at if incident.seconds_lost is None else float(incident.seconds_lost)
        downs.append((at, min(whole, at + lost)))
        after = (
            "" if incident.seconds_lost is None else f", all ran again after {format_span(lost)}"
        )
        text = f"{incident.cause}: {where_of(incident)}: {incident.reason}{after}"
        marks.append(Mark(incident.cause, at, harmless(text)))
    at = started
    for begins, stops in sorted(downs) if whole > started else ():
        # Incidents of the same moments count once.
        segments += [Segment("active", at, begins), Segment("down", max(at, begins), stops)]
        at = max(at, stops)
    return Timeline(
        max(end, 1.0),
        [segment for segment in segments if segment.end > segment.begin],
        marks,
        _attempts(started, end, marks),
    )


def _attempts(started: float, end: float, marks: Sequence[Mark]) -> list[Segment]:
    """Return the attempts, with their numbers as far as the status still has all incidents."""
    cuts = sorted({mark.seconds for mark in marks if started < mark.seconds < end})
    bounds = [*pairwise((started, *cuts, end))] if started < end else []
    if len(marks) < KEPT_INCIDENTS:
        return [Segment(f"attempt {at}", *bound) for at, bound in enumerate(bounds, 1)]
    return [Segment("attempt" if at else "earlier", *bound) for at, bound in enumerate(bounds)]


def svg(report: Report, now: datetime) -> str:
    """Return the picture as one SVG, which loads nothing."""
    timeline = timeline_of(report, now)
    title = f"Run {report.name} in {report.namespace}: {report.status.phase}"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
            f"<title>{escape(harmless(title))}</title>",
            *_parts(timeline),
            *_axis(timeline, parse_time(report.created) if report.created else now),
            "</svg>",
        )
    )


def _scale(timeline: Timeline) -> float:
    """Return the pixels of a second."""
    steps = [step for step in _STEPS if step <= timeline.seconds / _PARTS_OF_LIFE]
    step = steps[-1] if steps else timeline.seconds
    return _WIDTH / (-(-timeline.seconds // step) * step)


def _parts(timeline: Timeline) -> Iterator[str]:
    scale = _scale(timeline)
    for segment in timeline.segments:
        what = f"{segment.what}: {format_span(segment.end - segment.begin)}"
        width = max(1.0, (segment.end - segment.begin) * scale)
        yield (
            f'<rect x="{segment.begin * scale:.1f}" y="{_TOP}" width="{width:.1f}" '
            f'height="{_BAND}" '
            f'fill="{_COLOURS[segment.what]}"><title>{escape(what)}</title></rect>'
        )
    for mark in timeline.marks:
        x = min(_WIDTH - 5, max(5.0, mark.seconds * scale))
        # A shape for each cause, for those who see no colours.
        shape = {
            "Failure": f"M{x - 5:.1f} 4l10 10m0 -10l-10 10",
            "Disruption": f"M{x - 5:.1f} 4h10l-5 10z",
        }.get(mark.cause, f"M{x - 4:.1f} 5h8v8h-8z")
        colour = _COLOURS.get(mark.cause, _COLOURS["Unknown"])
        yield (
            f'<path d="{shape}" fill="{colour}" stroke="{colour}" stroke-width="2">'
            f"<title>{escape(mark.text)}</title></path>"
        )
    top = _TOP + _BAND + 2
    for number, attempt in enumerate(timeline.attempts):
        x, width = attempt.begin * scale, max(1.0, (attempt.end - attempt.begin) * scale - 1)
        what = f"{attempt.what}: {format_span(attempt.end - attempt.begin)}"
        yield (
            f'<rect x="{x:.1f}" y="{top}" width="{width:.1f}" height="{_ATTEMPTS - 4}" '
            f'fill="{_COLOURS["text"]}" fill-opacity="{0.2 + 0.15 * (number % 2):.2f}">'
            f"<title>{escape(what)}</title></rect>"
        )
        if width >= _LEAST_NUMBERED:
            text = attempt.what if width > 5 * _LEAST_NUMBERED else attempt.what.split()[-1]
            yield (
                f'<text x="{x + width / 2:.1f}" y="{top + _ATTEMPTS - 6}" text-anchor="middle" '
                f'font-family="sans-serif" font-size="11" fill="{_COLOURS["text"]}">'
                f"{escape(text)}</text>"
            )
    y = _TOP + _BAND + _ATTEMPTS + 34
    text = f'y="{y}" font-family="sans-serif" font-size="12" fill="{_COLOURS["text"]}"'
    counts = {segment.what: 0.0 for segment in timeline.segments}
    for segment in timeline.segments:
        counts[segment.what] += segment.end - segment.begin
    summary = ", ".join(f"{what} {format_span(seconds)}" for what, seconds in counts.items())
    yield f'<text x="{_WIDTH // 2}" text-anchor="middle" {text}>{escape(summary)}</text>'


def _axis(timeline: Timeline, created: datetime) -> Iterator[str]:
    """Yield the axis below the band: times of day, in UTC, of long runs with the day."""
    scale = _scale(timeline)
    step = next((step for step in _STEPS if step * scale >= _APART), _STEPS[-1])
    while step * scale < _APART:
        step *= 2
    form = "%H:%M:%S" if step < 60 else "%H:%M" if step < 43200 else "%d %b %H:%M"
    top = _TOP + _BAND + _ATTEMPTS
    style = f'font-family="sans-serif" font-size="12" fill="{_COLOURS["text"]}"'
    yield f'<rect y="{top}" width="{_WIDTH}" height="1" fill="{_COLOURS["text"]}"/>'
    first = -created.timestamp() % step
    for number in range(int((timeline.seconds - first) // step) + 1):
        seconds = first + number * step
        x = seconds * scale
        moment = (created + timedelta(seconds=seconds)).strftime(form)
        anchor = "start" if x < 40 else "end" if x > _WIDTH - 40 else "middle"
        yield f'<rect x="{x:.1f}" y="{top}" width="1" height="5" fill="{_COLOURS["text"]}"/>'
        yield f'<text x="{x:.1f}" y="{top + 17}" text-anchor="{anchor}" {style}>{moment}</text>'
