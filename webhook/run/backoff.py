"""How long replicas wait before they start again, and when that is forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.run import intervals
from webhook.run.model.status import Recovering
from webhook.times import elapsed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from webhook.backoff import Delays

# A replica that has run so long, in seconds, begins at the first delay again.
STABLE: Final = 600.0


def by_index(entries: Iterable[Recovering]) -> dict[int, Recovering]:
    """For each index the entry that names it."""
    return {index: entry for entry in entries for index in intervals.read(entry.indexes)}


def grouped(failures: Mapping[int, tuple[int, str]]) -> tuple[Recovering, ...]:
    """Entries for index -> (failures in a row, since when), those that are alike together."""
    groups: dict[tuple[int, str], list[int]] = {}
    for index, key in failures.items():
        groups.setdefault(key, []).append(index)
    return tuple(
        Recovering(indexes=intervals.written(indexes), failures=count, since=since)
        for (count, since), indexes in sorted(groups.items(), key=lambda item: min(item[1]))
    )


def remaining(entry: Recovering | None, now: datetime, delays: Delays) -> float:
    """Seconds until the replicas of an entry may start; 0 if they may now.

    Never more than the whole delay: a clock that was set back must not hold a run for a day.
    """
    if entry is None:
        return 0.0
    whole = delays.after(entry.failures)
    return min(whole, max(0.0, whole - elapsed(entry.since, now)))
