"""The pages of Runs: all of a cluster, and one with its replicas, as they are now."""

from __future__ import annotations

import re
from collections import Counter, deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.kube.cache import Cache
from webhook.run.effective_settings import setting_rows
from webhook.run.model import RunStatus
from webhook.run_client import timeline
from webhook.run_client.cost import costs_of, estimate_of
from webhook.run_client.find_runs import fetch_run, pods_path
from webhook.run_client.log_reading import LogReader
from webhook.run_client.log_sources import (
    LogSelection,
    check_selection,
    earlier_attempts,
    find_sources,
    without_pods,
)
from webhook.run_client.report import INTERRUPTIBLE, Report, fetch
from webhook.run_client.rows import Row, row_of
from webhook.run_client.status_text import grouped, message_of, names_of, note_of, where_of
from webhook.run_client.submit import runs_path
from webhook.times import format_span, to_second
from webhook.ui.paging import paged
from webhook.ui.watching import Watching

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.kube.watches import Watches
    from webhook.run_client.log_sources import Source

# Runs on one page of the list.
PAGE: Final = 100
# Replicas of a role that have a square each.
MOST_SQUARES: Final = 2000
# Groups of replicas that need attention.
MOST_GROUPS: Final = 100
# Lines of a log, and characters of each.
LAST_LINES: Final = 500
_LOG_LINE_MAX_CHARACTERS: Final = 2000
# Sequences for colours and the like (ECMA-48, SGR).
_COLOUR: Final = re.compile("\x1b\\[[0-9;]*m")


class Selected(NamedTuple):
    """A part of the list: Runs with their classes. total: how many Runs have the words; phases:
    how many of these by phase."""

    rows: Sequence[tuple[Row, str]]
    total: int
    page: int
    pages: int
    phases: Mapping[str, int]


class Runs(Watching):
    """The Runs of a cluster, or of a namespace."""

    def __init__(self, watches: Watches, namespace: str = "") -> None:
        super().__init__(watches)
        self.rows = self.add(runs_path(namespace), Cache(row_of))

    def select(
        self, words: str, phase: str, page: int, classes: Mapping[tuple[str, str], str]
    ) -> Selected:
        """Return the Runs that have all words in namespace, name or message; the newest first.

        classes: on which their pods are, by namespace and name.
        """
        wanted = words.lower().split()
        matching_rows = [
            row
            for row in self.rows.items().values()
            if all(
                word in f"{row.namespace}/{row.name} {row.kind} {row.message}".lower()
                for word in wanted
            )
        ]
        phases = Counter(row.phase for row in matching_rows)
        rows = [row for row in matching_rows if not phase or row.phase == phase]
        rows.sort(key=lambda row: (row.created, row.namespace, row.name), reverse=True)
        part, at, pages = paged(rows, page, PAGE)
        shown = [(row, classes.get((row.namespace, row.name), "")) for row in part]
        return Selected(shown, len(rows), at, pages, dict(sorted(phases.items())))

    def without_room(self) -> list[Row]:
        """Return the Runs whose replicas the nodes cannot run at one time, the oldest first."""
        rows = [row for row in self.rows.items().values() if row.no_room]
        return sorted(rows, key=lambda row: (row.created, row.namespace, row.name))

    async def details(self, namespace: str, name: str) -> dict[str, Any]:
        """Return what the page of one Run shows. Raises ClusterError."""
        report = await fetch(self.client, namespace, name)
        now = datetime.now(UTC)
        return {
            "report": report,
            "message": message_of(report, now),
            "roles": _by_role(report),
            "settings": setting_rows(report.settings),
            "notes": {replica.name: note_of(replica, now) for replica in report.replicas},
            "waiting": [
                (group[0], names_of(group))
                for group in grouped(report.replicas, now)
                if not group[0].fine
            ][:MOST_GROUPS],
            "timeline": timeline.svg(report, now),
            "timeline_legend": timeline.LEGEND,
            "ready": _ready(report),
            "incidents": [(down, where_of(down)) for down in reversed(report.status.incidents)],
            "interruptible": INTERRUPTIBLE,
            "span": format_span,
            "most": MOST_SQUARES,
        }

    async def cost(self, namespace: str, name: str) -> dict[str, Any]:
        """Return what one Run used until now, and what it cost. Raises ClusterError."""
        run = await fetch_run(self.client, namespace, name)
        (run_cost,), notes = await costs_of(self.client, namespace, [run])
        status = RunStatus.read(run.get("status"))
        lost = [
            (
                cause.lower(),
                len(incidents),
                format_span(sum(incident.seconds_lost or 0 for incident in incidents)),
            )
            for cause in ("Disruption", "Failure")
            if (incidents := [incident for incident in status.incidents if incident.cause == cause])
        ]
        return {
            "cost": run_cost,
            "estimate": estimate_of(run_cost),
            "lost": lost,
            "notes": notes,
            "span": format_span,
        }

    async def log(self, namespace: str, name: str, role: str, index: int) -> dict[str, Any]:
        """Return the last lines of a replica's log, and its environment. Raises FairleadError."""
        run = await fetch_run(self.client, namespace, name)
        status = RunStatus.read(run.get("status"))
        wanted = LogSelection(role, index)
        check_selection(run, status, wanted)
        sources = await find_sources(self.client, namespace, run, wanted)
        problems = [f"{replicas}: {why}" for replicas, why in without_pods(status, sources, wanted)]
        problems += [source.waiting for source in sources if not source.started]
        before, gone = earlier_attempts(status, sources)
        earlier = [
            (f"FAIRLEAD_ATTEMPT {source.attempt}", *await self._lines(namespace, [source]))
            for source in before
        ]
        last = [source for source in sources if source.started and source not in before]
        for source in last:
            if source.restarts:
                name = f"{source.container}, before its last restart of {source.restarts}"
                earlier.append((name, *await self._lines(namespace, [source], previous=True)))
        lines, unread = await self._lines(namespace, last)
        environment = [
            row
            for pod in dict.fromkeys(source.pod for source in sources)
            for row in await self._environment(namespace, pod)
        ]
        shown = {"lines": lines, "problems": problems + unread, "environment": environment}
        return {**shown, "earlier": earlier, "gone": gone}

    async def _lines(
        self, namespace: str, sources: Sequence[Source], *, previous: bool = False
    ) -> tuple[list[str], list[str]]:
        """Return the last lines of logs, and why there are no more."""
        lines: deque[str] = deque(maxlen=LAST_LINES)
        problems: list[str] = []
        reader = LogReader(self.client, namespace, LAST_LINES, previous=previous)
        async for piece in reader.read(sources):
            lines += [_COLOUR.sub("", line[:_LOG_LINE_MAX_CHARACTERS]) for line in piece.lines]
            problems += [piece.problem] if piece.problem else []
        return list(lines), problems

    async def _environment(self, namespace: str, pod: str) -> list[tuple[str, str, str]]:
        """Return container, name and value of each variable; of others' values only where they
        are from."""
        manifest = await self.client.find(pods_path(namespace).path_of(pod))
        return [
            (container["name"], *_variable(entry))
            for container in _containers(manifest)
            for entry in [*(container.get("env") or ()), *(container.get("envFrom") or ())]
        ]


def _containers(pod: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    spec = pod["spec"] if pod else {}
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def _variable(entry: Mapping[str, Any]) -> tuple[str, str]:
    """Return name and value of an entry of env or envFrom."""
    source = entry.get("valueFrom") or {
        key: value for key, value in entry.items() if key.endswith("Ref")
    }
    for kind, reference in source.items():
        parts = " ".join(
            str(reference[key])
            for key in ("name", "key", "fieldPath", "resource")
            if key in reference
        )
        return entry.get("name") or f"{entry.get('prefix', '')}*", f"from {kind}: {parts}"
    return entry["name"], str(entry.get("value") or "")


def example() -> dict[str, Any]:
    """Return a timeline for the page of pieces."""
    now = datetime.now(UTC)
    begin = now - timedelta(hours=6)
    moments = [to_second(begin + timedelta(minutes=at)) for at in (9, 130, 250)]
    incidents = [
        {"cause": cause, "began": began, "reason": "E", "replica": "worker-2", "secondsLost": 600}
        for cause, began in zip(("Disruption", "Failure"), moments[1:], strict=True)
    ]
    status = RunStatus.read({"phase": "Running", "startTime": moments[0], "incidents": incidents})
    shown = Report("research", "mnist", "job", "", to_second(begin), False, False, status, ())
    return {"picture": timeline.svg(shown, now), "timeline_legend": timeline.LEGEND}


def _ready(report: Report) -> tuple[int, int]:
    """Return how many replicas are as they should be, of how many: ready, at the end succeeded."""
    roles = report.status.replicas.values()
    done = sum(counts.succeeded if report.ended else counts.ready for counts in roles)
    return done, sum(counts.desired for counts in roles)


def _by_role(report: Report) -> dict[str, list[Any]]:
    roles: dict[str, list[Any]] = {}
    for replica in report.replicas:
        roles.setdefault(replica.role or "pods", []).append(replica)
    return roles
