"""How long replicas wait before they start again, and when that is forgotten."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.backoff import RESTART_DELAYS
from webhook.run import intervals
from webhook.run.model.status import Recovering
from webhook.times import elapsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from webhook.backoff import Delays
    from webhook.run.failure import Failure

# A replica that has run so long, in seconds, begins at the first delay again.
STABLE: Final = 600.0
# Within so many seconds runs begin again that lost nodes at the same moment.
JITTER: Final = 2.0

# A replica whose pod kubelets refuse so many times in a row fails the run: after half an hour.
MOST_REFUSALS: Final = 10


class Row(NamedTuple):
    """What a replica went through without being stable in between, and how long it waits now.

    failures: of the program, and pods that a kubelet refused; refusals: of these, the last ones in
    a row; disruptions: all others. wait: seconds from `since` on.
    """

    failures: int = 0
    disruptions: int = 0
    refusals: int = 0
    wait: float = 0.0
    since: str = ""

    def after(self, failure: Failure, delays: Delays, jitter: float, since: str) -> Row:
        """Return the row with one more: the first disruption waits for nothing but the jitter."""
        failures, disruptions, refusals = self[:3]
        if failure.disruption and not failure.refused:
            disruptions += 1
            wait = delays.after(disruptions - 1) if disruptions > 1 else jitter
            return Row(failures, disruptions, 0, wait, since)
        failures += 1
        refusals = refusals + 1 if failure.refused else 0
        return Row(failures, disruptions, refusals, delays.after(failures), since)


def worst(rows: Iterable[Row]) -> Row:
    """Return the row of replicas that begin again together: the most of each."""
    known = list(rows) or [Row()]
    return Row(
        max(row.failures for row in known),
        max(row.disruptions for row in known),
        max(row.refusals for row in known),
    )


def jitter_of(uid: str, since: str) -> float:
    """Return seconds below JITTER, the same for the same run and moment."""
    return round(zlib.crc32(f"{uid} {since}".encode()) / 2**32 * JITTER, 3)


def by_index(entries: Iterable[Recovering]) -> dict[int, Recovering]:
    """For each index the entry that names it."""
    return {index: entry for entry in entries for index in intervals.read(entry.indexes)}


def row_of(entry: Recovering | None) -> Row:
    """Return what an entry says of each of its replicas."""
    if entry is None:
        return Row()
    counts = (entry.failures, entry.disruptions, entry.refusals)
    return Row(*counts, wait_of(entry), entry.since)


def wait_of(entry: Recovering) -> float:
    """Seconds that the replicas of an entry wait in all; of an older status, by their failures."""
    if entry.wait_milliseconds is not None:
        return entry.wait_milliseconds / 1000
    return RESTART_DELAYS.after(entry.failures) if entry.failures else 0.0


def grouped(rows: Mapping[int, Row]) -> tuple[Recovering, ...]:
    """Entries for rows by index, those that are alike together."""
    groups: dict[Row, list[int]] = {}
    for index, row in rows.items():
        groups.setdefault(row, []).append(index)
    return tuple(
        Recovering(
            indexes=intervals.written(indexes),
            failures=row.failures,
            disruptions=row.disruptions,
            refusals=row.refusals,
            wait_milliseconds=round(row.wait * 1000),
            since=row.since,
        )
        for row, indexes in sorted(groups.items(), key=lambda item: min(item[1]))
    )


def remaining(entry: Recovering | None, now: datetime) -> float:
    """Seconds until the replicas of an entry may start; 0 if they may now.

    Never more than the whole wait: a clock that was set back must not hold a run for a day.
    """
    if entry is None:
        return 0.0
    whole = wait_of(entry)
    return min(whole, max(0.0, whole - elapsed(entry.since, now)))
