"""A fallback: when the nodes of a class are no longer required, by what happened before.

A history has events, not a state: what a policy makes of them is computed here, and so a policy
may change. The controller counts, the webhook decides.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.errors import UnreadableText
from webhook.foreign_text import parse_count, parse_list, parse_moment, parse_object
from webhook.times import format_span

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.placement.capacity import Mode

# The longest time until a return.
MAX_RETURN: Final = timedelta(days=1)
# The most disruptions that a fallback may wait for.
MOST_DISRUPTIONS: Final = 10
# The events of a history that is read; the controller writes at most 50 (run/history.py).
_MOST_EVENTS: Final = 200
# Seconds, about 30 years.
_LONGEST_WAIT: Final = 10**9


class Event(NamedTuple):
    """Nodes of a class were lost or, if `waited` is not None, did not come for so many seconds."""

    capacity: str
    time: datetime
    waited: int | None = None


class History(NamedTuple):
    """What happened to replicas that restart together, until their latest start."""

    as_of: datetime
    events: tuple[Event, ...] = ()


class Fallback(NamedTuple):
    """The rule of one capacity setting; each of `disruptions` and `pending` is None if unset."""

    then: Mode
    disruptions: int | None
    within: timedelta
    pending: timedelta | None
    return_after: timedelta

    def lasts_until(self, capacity: str, history: History) -> datetime | None:
        """Return until when the mode is `then`; None if it is not."""
        end, times, recent = None, 0, list[datetime]()
        for event in sorted(history.events, key=lambda event: event.time):
            if event.capacity != capacity or (end is not None and event.time < end):
                continue
            if event.waited is not None:
                falls = self.pending is not None and event.waited >= self.pending.total_seconds()
            else:
                recent = [moment for moment in recent if event.time - moment <= self.within]
                recent.append(event.time)
                falls = self.disruptions is not None and len(recent) >= self.disruptions
            if falls:
                end = event.time + min(self.return_after * 2 ** min(times, 20), MAX_RETURN)
                times, recent = times + 1, []
        return end if end is not None and history.as_of < end else None

    @property
    def words(self) -> str:
        """When it applies: after 3 disruptions within 6h, or 20m without a node."""
        parts = []
        if self.disruptions is not None:
            noun = "disruption" if self.disruptions == 1 else "disruptions"
            within = format_span(self.within.total_seconds())
            parts.append(f"{self.disruptions} {noun} within {within}")
        if self.pending is not None:
            parts.append(f"{format_span(self.pending.total_seconds())} without a node")
        return f"after {', or '.join(parts)}"


def parse_history(text: str) -> History:
    """Parse the annotation of a pod. Raises UnreadableText."""
    history = parse_object(text)
    return History(parse_moment(history.get("asOf")), parse_events(history.get("events")))


def parse_events(events: object) -> tuple[Event, ...]:
    """Parse the events of a history. Raises UnreadableText."""
    return tuple(map(_event, parse_list(events, _MOST_EVENTS)))


def _event(event: object) -> Event:
    if not isinstance(event, dict) or not isinstance(name := event.get("class"), str):
        raise UnreadableText("want events with a class and a time")
    waited = event.get("waitedSeconds")
    seconds = None if waited is None else parse_count(waited, 0, _LONGEST_WAIT)
    return Event(name, parse_moment(event.get("time")), seconds)


def assumed(now: datetime, classes: Mapping[str, tuple[int, timedelta | None]]) -> History:
    """Return a history as of now: by class, how many nodes were lost, and how long one waited."""
    losses = [Event(name, now) for name, (count, _) in classes.items() for _ in range(count)]
    waits = [
        Event(name, now, round(wait.total_seconds()))
        for name, (_, wait) in classes.items()
        if wait is not None
    ]
    return History(now, (*losses, *waits))


def fallen(classes: Iterable[str], now: datetime) -> History:
    """Return a history after which every fallback of these classes applies."""
    return assumed(now, dict.fromkeys(classes, (MOST_DISRUPTIONS, MAX_RETURN)))
