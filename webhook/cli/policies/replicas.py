"""What the webhook's replicas say of their sets and counts: live, or by the controller's status."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.cli.policies.policies_in_force import Count, Served
from webhook.controller.policies.reading import report_of
from webhook.errors import ClusterError
from webhook.kube.replicas import read_by_replica
from webhook.times import to_second

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.kube.client import Client
    from webhook.policy.reporting.counting import Report


class Said(NamedTuple):
    """What replicas say; `served` is None if they could not be asked, and `note` says why.

    `since` is when the last of them began: what is not in `counts` never matched since then. Those
    that ended before took their counts with them. Empty if one does not say when it began.
    """

    served: Sequence[Served] | None
    counts: Mapping[str, Count]
    since: str = ""
    note: str = ""

    def of(self, policy: str) -> Count | None:
        """What they have counted of a policy; None if they could not be asked."""
        if self.served is None:
            return None
        return self.counts.get(policy) or Count(0, "", self.since)


async def ask(client: Client) -> Said:
    """What each replica says at this moment."""
    reports = {}
    try:
        for name, text in (await read_by_replica(client)).items():
            reports[name] = report_of(text)
    except ClusterError as error:
        return Said(None, {}, note=str(error))
    except ValueError as error:
        why = f"what {name} says at /metrics cannot be read ({error}): fairlead doctor"
        return Said(None, {}, note=why)
    served = [Served(name, report.hash) for name, report in sorted(reports.items())]
    began = [_began(each) for each in reports.values()]
    since = max(began, default="") if all(began) else ""
    return Said(served, _sums(reports.values(), since), since)


def by_status(statuses: Iterable[Mapping[str, Any]]) -> Sequence[Served] | None:
    """The sets that the controller has seen; None if it has seen none."""
    found = {
        str(each["replica"]): str(each["hash"])
        for status in statuses
        for each in status.get("servedHashes") or ()
    }
    return [Served(*each) for each in sorted(found.items())] or None


def count_of(status: Mapping[str, Any]) -> Count | None:
    """What a policy's status has counted; None if nothing is counted there."""
    if not status.get("since"):
        return None
    return Count(
        int(status.get("podsDecided") or 0),
        str(status.get("lastMatch") or ""),
        str(status["since"]),
    )


def _sums(reports: Iterable[Report], since: str) -> Mapping[str, Count]:
    found: dict[str, Count] = {}
    for report in reports:
        for policy, count in report.counts.items():
            had = found.get(policy, Count(0, "", since))
            last = max(had.last_match, count.last_match)
            found[policy] = Count(had.decided + count.decided, last, since)
    return found


def _began(report: Report) -> str:
    try:
        return to_second(datetime.fromtimestamp(float(report.process), UTC))
    except ValueError:
        return ""
