"""Counts of decided and rejected pods, continued after restarts and changes of the leader.

Each process of the webhook counts from zero, and forgets a deleted policy. The leader reads the
counts now and then, and adds the increase since the last time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from webhook.policy.status_model import PolicyStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from webhook.crd.conditions import Time
    from webhook.policy.status_model import ObservedObject


class Count(NamedTuple):
    """Of one policy. last_match: RFC 3339 in UTC, to the second; "" if it never matched."""

    decided: int = 0
    rejected: int = 0
    last_match: Time = ""

    def moved(self, before: Count, now: Count, last_match: Time) -> Count:
        """Return it with what has come between two counts."""
        return Count(
            self.decided + now.decided - before.decided,
            self.rejected + now.rejected - before.rejected,
            last_match,
        )


_NOTHING = Count()


class Report(NamedTuple):
    """The report of one replica. process: identifies its process in its pod."""

    process: str
    hash: str
    counts: Mapping[str, Count]


class Base(NamedTuple):
    """The start of an object's count: its status then, and the sum of its name then."""

    since: Time
    status: Count
    sum: Count


@dataclass(frozen=True, slots=True)
class Ledger:
    """The counts since this process leads.

    initial_keys: the replicas at the first reading, by key. Their counts until then are not added,
    because
        the former leader may have added them. None before that reading
    last:  by key the last report of each replica
    sums:  by policy's name all that was added
    bases: by the object's uid
    """

    initial_keys: frozenset[str] | None = None
    last: Mapping[str, Report] = field(default_factory=dict)
    sums: Mapping[str, Count] = field(default_factory=dict)
    bases: Mapping[str, Base] = field(default_factory=dict)


def met(ledger: Ledger, objects: Iterable[ObservedObject], now: Time) -> Ledger:
    """Return the ledger with a base for each existing policy, and for no other."""
    bases: dict[str, Base] = {}
    sums: dict[str, Count] = {}
    for observed_object in objects:
        if isinstance(observed_object.status, PolicyStatus):
            base = ledger.bases.get(observed_object.uid)
            bases[observed_object.uid] = base or _base(
                observed_object, ledger.sums.get(observed_object.name, _NOTHING), now
            )
            if observed_object.name in ledger.sums:
                sums[observed_object.name] = ledger.sums[observed_object.name]
    return replace(ledger, bases=bases, sums=sums)


def _base(observed: ObservedObject, counted: Count, now: Time) -> Base:
    status = observed.status
    if isinstance(status, PolicyStatus) and status.since:
        had = Count(status.pods_decided, status.pods_rejected, status.last_match or "")
        return Base(status.since, had, counted)
    return Base(now, _NOTHING, counted)


def counted(ledger: Ledger, listed: Collection[str], reports: Mapping[str, Report]) -> Ledger:
    """Return the ledger after one reading of the replicas.

    listed:  the keys of all replicas
    reports: the reports of those that answered, by key
    """
    initial_keys = frozenset(listed) if ledger.initial_keys is None else ledger.initial_keys
    # Should one come back under its old key, what it had counted is not counted again.
    initial_keys |= ledger.last.keys() - set(listed)
    sums = dict(ledger.sums)
    last = {key: report for key, report in ledger.last.items() if key in listed}
    for key, report in reports.items():
        old = _counted_by_then(report, last.get(key), is_initial=key in initial_keys)
        for name, count in report.counts.items():
            sums[name] = _added(sums.get(name, _NOTHING), count, old.get(name, _NOTHING))
        last[key] = report
    return replace(ledger, initial_keys=initial_keys, last=last, sums=sums)


def total(ledger: Ledger, uid: str, name: str) -> tuple[Time, Count]:
    """Since when an object is counted, and what there is; it must have been met."""
    since, status, before = ledger.bases[uid]
    now = ledger.sums.get(name, before)
    last = status.last_match
    # That of a policy which had the name before is none of its own.
    if now.last_match != before.last_match:
        last = max(last, now.last_match)
    return since, status.moved(before, now, last)


def _counted_by_then(
    report: Report, last_report: Report | None, *, is_initial: bool
) -> Mapping[str, Count]:
    """Return the part of a report that is already counted."""
    if last_report is not None:
        # Another process in the same pod has begun from nothing.
        return last_report.counts if last_report.process == report.process else {}
    return report.counts if is_initial else {}


def _added(sum_: Count, count: Count, old: Count) -> Count:
    if count.decided < old.decided or count.rejected < old.rejected:
        # The replica has forgotten the policy, and met it again.
        old = _NOTHING
    return sum_.moved(old, count, max(sum_.last_match, count.last_match))
