"""Text output of `fairlead run status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from webhook import times
from webhook.run.deletion import BEING_DELETED
from webhook.run.effective_settings import setting_rows
from webhook.run.model.intervals import format_intervals
from webhook.shortening import harmless, shortened
from webhook.text.layout import aligned, section, wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from webhook.run.model.status import Incident
    from webhook.run_client.report import Replica, Report

_COLOURS: Final = {
    "Running": "green",
    "Succeeded": "green",
    "Starting": "yellow",
    "Pending": "yellow",
    "Restarting": "yellow",
    "Waiting": "yellow",
    "Missing": "yellow",
    "Terminating": "yellow",
    "Running, not ready": "yellow",
    "Suspended": "cyan",
    "Failed": "red",
}
# So many replicas have a line each; of a larger run those are put together that are alike.
_REPLICAS_WITH_A_LINE: Final = 24
# The last lines of a failure, and no more than these.
_LAST_LINES: Final = 20
_ROLE_HEAD: Final = (
    "role",
    "desired",
    "active",
    "ready",
    "succeeded",
    "failed",
    "restarts",
    "disruptions",
)
_INCIDENTS: Final = 3
_CAUSES: Final = {
    "Disruption": "disruption",
    "Failure": "failure",
    "Unknown": "not charged yet",
}
# Seconds in which a controller looks at a new Run; without a look it may be away.
_LOOK_SECONDS: Final = 10.0
_NOT_RECONCILED: Final = (
    "no controller has reconciled it yet. Is `fairlead controller` running? This shows the leader: "
    "kubectl get lease -A | grep fairlead"
)
_REPLICA_HEAD: Final = ("replica", "state", "node", "pool", "capacity", "note")


def lines(report: Report, now: datetime, *, everything: bool = False) -> Iterator[str]:
    """Yield the report, line by line. With `everything` each replica has a line."""
    status = report.status
    phase = click.style(harmless(status.phase), fg=_COLOURS.get(status.phase), bold=True)
    title = click.style(report.name, bold=True) + f": {phase}"
    first, *more = wrapped(message_of(report, now), 2)
    if len(click.unstyle(title)) + len(first) + 3 > 100 or more:
        yield title
        yield from (f"  {line}" for line in (first, *more) if line)
    else:
        yield f"{title}, {first}" if first else title
    yield from aligned(_head(report, now), 2)
    sections = (
        ("Conditions", _conditions(report, now)),
        ("Roles", _roles(report)),
        ("Replicas", _replicas(report.replicas, now, everything=everything)),
    )
    for name, rows in sections:
        yield from section(name, rows)
    yield from _incidents(report, now)
    yield from _last_failure(report, now)


def answer_of(report: Report, now: datetime) -> str:
    """Return the run's phase and why it is in it, in one sentence."""
    phase, message = harmless(report.status.phase), message_of(report, now)
    return f"{phase}, {message}" if message else phase


def message_of(report: Report, now: datetime) -> str:
    """Return why the run is in its phase, or that nobody reconciles it."""
    if report.deleted and not report.status.message.startswith(BEING_DELETED):
        return BEING_DELETED
    if not report.status.observed_generation:
        return describe_unreconciled(report.created, now)
    behind = " (its last change has not been reconciled yet)" if report.behind else ""
    return harmless(report.status.message) + _not_ready(report) + behind


def _not_ready(report: Report) -> str:
    """Return how many replicas are ready, if all run and not all are."""
    roles = report.status.replicas.values()
    ready = sum(counts.ready for counts in roles)
    wanted = sum(counts.desired - counts.succeeded for counts in roles)
    runs = all(replica.state.startswith(("Running", "Succeeded")) for replica in report.replicas)
    if report.status.phase != "Running" or not runs or ready >= wanted:
        return ""
    return f"; {ready:,} of {wanted:,} are ready"


def describe_unreconciled(created: str, now: datetime) -> str:
    """Return why a Run that was created at this time has no status, which is no fault at first."""
    new = created and times.elapsed(created, now) < _LOOK_SECONDS
    return "it was created just now" if new else _NOT_RECONCILED


def _head(report: Report, now: datetime) -> list[list[str]]:
    status = report.status
    rows = [
        ["namespace", report.namespace],
        ["kind", ", ".join(filter(None, (report.kind, report.framework)))],
        *setting_rows(report.settings),
        ["created", _ago(report.created, now)],
    ]
    if status.duration:
        rows.append(["took", status.duration])
    elif status.start_time:
        rows.append(["begun", _ago(status.start_time, now)])
    if status.completion_time:
        rows.append(["ended", _ago(status.completion_time, now)])
    fields = [(word, getattr(status, word)) for word in ("restarts", "disruptions", "address")]
    return [*rows, *([word, str(value)] for word, value in fields if value)]


def _conditions(report: Report, now: datetime) -> list[list[str]]:
    return [
        [
            condition.type,
            condition.status,
            condition.reason,
            f"{_ago(condition.last_transition_time, now)}: {text}",
        ]
        for condition in report.telling_conditions
        for text in [harmless(condition.message or condition.reason)]
    ]


def _roles(report: Report) -> list[list[str]]:
    rows = [
        [role, *(str(getattr(counts, word)) for word in _ROLE_HEAD[1:])]
        for role, counts in report.status.replicas.items()
    ]
    return [_headings(_ROLE_HEAD), *rows] if rows else []


def _replicas(replicas: Sequence[Replica], now: datetime, *, everything: bool) -> list[list[str]]:
    alone = everything or len(replicas) <= _REPLICAS_WITH_A_LINE
    rows = [
        [
            names_of(group),
            click.style(first.state, fg=_COLOURS.get(first.state)),
            nodes.pop() if len(nodes) == 1 else f"{len(nodes)} nodes" if nodes else "",
            first.pool,
            first.capacity,
            note_of(first, now),
        ]
        for group in ([[replica] for replica in replicas] if alone else grouped(replicas, now))
        for first in group[:1]
        for nodes in [{replica.node for replica in group if replica.node}]
    ]
    if not rows:
        return []
    # An empty column would only take room.
    kept = [n for n in range(len(_REPLICA_HEAD)) if n < 2 or any(row[n] for row in rows)]
    return [[row[n] for n in kept] for row in (_headings(_REPLICA_HEAD), *rows)]


def grouped(replicas: Iterable[Replica], now: datetime) -> Iterator[list[Replica]]:
    """Yield replicas that differ in nothing but index and node, those that are not fine first."""
    groups: dict[tuple[str, ...], list[Replica]] = {}
    for replica in replicas:
        alike = (note_of(replica, now), replica.role, replica.state, replica.pool, replica.capacity)
        groups.setdefault(alike, []).append(replica)
    yield from sorted(groups.values(), key=lambda group: group[0].fine)


def note_of(replica: Replica, now: datetime) -> str:
    """Return why the replica needs attention, or is as it is; empty for nothing."""
    note = harmless(replica.note)
    if not replica.downs:
        return note
    times_in_a_row = "once" if replica.downs == 1 else f"{replica.downs} times in a row"
    history = f"went down {times_in_a_row}, last {_ago(replica.since, now)}"
    return "; ".join(filter(None, (note, history)))


def names_of(group: Sequence[Replica]) -> str:
    """Return the replicas of a group in a few words: `worker 0-3,7`."""
    first = group[0]
    if len(group) == 1:
        return first.name
    if first.role:
        return f"{first.role} {format_intervals(replica.index for replica in group)}"
    return shortened([replica.pod for replica in group])


def _incidents(report: Report, now: datetime) -> Iterator[str]:
    """Yield the last times that replicas went down, the latest at the end."""
    incidents = report.status.incidents[-_INCIDENTS:]
    if incidents:
        yield ""
        yield "  " + click.style("Incidents", bold=True)
    for incident in incidents:
        facts = [f"{where_of(incident)}, {_ago(incident.began, now)}: {harmless(incident.reason)}"]
        if incident.collateral:
            facts.append(f"other failures charged to it: {incident.collateral}")
        if incident.seconds_lost is not None:
            facts.append(f"all ran again after {times.format_span(incident.seconds_lost)}")
        cause = _CAUSES.get(incident.cause) or harmless(incident.cause)
        if report.status.ended:
            cause = cause.removesuffix(" yet")
        yield f"    {cause}: {'; '.join(facts)}"


def where_of(incident: Incident) -> str:
    """Return which replica went down, on which node, and of which class; all if a queue evicts."""
    kind = f" of class {incident.capacity_class}" if incident.capacity_class else ""
    others = "".join(f" and {node}" for node in incident.other_nodes[:2])
    if more := len(incident.other_nodes[2:]):
        others += f" and {more} more"
    where = f" on {incident.node}{kind}{others}" if incident.node else ""
    return (incident.replica or "all replicas") + where


def _last_failure(report: Report, now: datetime) -> Iterator[str]:
    failure = report.status.last_failure
    if failure is None:
        return
    what, head = "went down", "Last failure"
    if failure.disruption:
        what, head = "disrupted", "Last disruption"
    code = "" if failure.exit_code is None else f", exit code {failure.exit_code}"
    node = f" on {failure.node}" if failure.node else ""
    yield ""
    yield "  " + click.style(head, bold=True)
    why = harmless(failure.reason)
    yield f"    {failure.replica} {what}{node}, {_ago(failure.time, now)}: {why}{code}"
    for line in harmless(failure.message).rstrip().splitlines()[-_LAST_LINES:]:
        yield f"    | {line}".rstrip()


def _headings(names: Iterable[str]) -> list[str]:
    return [click.style(name, dim=True) for name in names]


def _ago(since: str, now: datetime) -> str:
    return f"{times.format_span(times.elapsed(since, now))} ago" if since else "-"
