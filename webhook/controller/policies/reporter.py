"""Keep the statuses of policies and capacity classes, while this process leads."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import aiohttp

from webhook import names
from webhook.api_paths import CONFIGURATIONS
from webhook.cluster_objects.watched_objects import ClusterClasses, NodeView
from webhook.controller.policies.policy_judging import Judging
from webhook.controller.policies.replica_metrics import report_of
from webhook.controller.policies.report_writer import PodReports
from webhook.controller.policies.status_writer import INTERVAL, StatusWriter, StoredObjects
from webhook.errors import ClusterError
from webhook.judgement.reporting.decision_counts import Ledger, counted, met
from webhook.judgement.reporting.statuses import CONDITIONS, Due, Knowledge, due
from webhook.policy.status_model import CALLED, Served
from webhook.times import to_second
from webhook.turns import gather_some

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import NoReturn

    from prometheus_client import Gauge

    from webhook.cluster_objects.webhook_replicas import Replica
    from webhook.controller.interception import Interception
    from webhook.controller.policies.status_writer import Stored
    from webhook.judgement.reporting.decision_counts import Report
    from webhook.judgement.reporting.in_force import SentPods
    from webhook.kube.cache import Change
    from webhook.kube.watches import Watches
    from webhook.kube.writer import Writes

_logger = logging.getLogger(__name__)

FOLLOWS: Final = "done by the leader"
NO_SET: Final = "none"
# Reads of the replicas' metrics per interval of the counts.
_LOOKS: Final = 4
# Seconds until the first read after the policies changed.
_SOON: Final = 0.5
# A replica's hash is shown until the replica fails to answer this many reads in a row.
_PATIENT_LOOKS: Final = 4
# Seconds until a part that ended with an unexpected exception restarts.
_AFTER_A_BUG: Final = 30.0
# Seconds for the final writes when this process stops leading.
LAST_WRITES_SECONDS: Final = 2.0
# Seconds for one replica to answer; within a cluster it takes milliseconds.
REPLICA_TIMEOUT_SECONDS: Final = 5.0
CONCURRENT_READS: Final = 8
_CONFIGURATION: Final = CONFIGURATIONS.path_of(names.WEBHOOK_CONFIGURATION)
# Bytes. The metrics of 1,000 policies in 1,000 namespaces take about ten million.
_METRICS_MAX_BYTES: Final = 64 * 2**20


@dataclass(eq=False, repr=False)
class PolicyReporter:
    """Writes the statuses of policies and capacity classes.

    `replicas` returns the webhook's replicas; `counts` gets the number of objects by kind,
    condition and its status; `interval` is the time between the writes of one
    object's counts, in seconds. With `reports`, the time between two passes over all pods in
    seconds, it also writes policy reports. `clock` is the wall clock, in UTC.
    """

    watches: Watches
    writer: Writes
    replicas: Callable[[], Awaitable[Sequence[Replica]]]
    counts: Gauge
    _: KW_ONLY
    interval: float = INTERVAL
    reports: float | None = None
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    _tenure: _Tenure | None = field(default=None, init=False)
    _interception: Interception | None = field(default=None, init=False)

    def follow(self, interception: Interception) -> None:
        """Write the condition InForce by what this knows."""
        self._interception = interception
        interception.changed = self._note_interception

    def _note_interception(self) -> None:
        if self._tenure:
            self._tenure.wake()

    @property
    def sent(self) -> SentPods | None:
        """Which pods are sent to the webhook; None if that is not known."""
        return self._interception.sent if self._interception else None

    def served_hashes(self) -> frozenset[str]:
        """Return the hashes of the policy sets that the replicas serve; empty if unknown."""
        served = self._tenure.served if self._tenure else None
        return frozenset(replica.hash for replica in served or () if replica.hash != NO_SET)

    def __post_init__(self) -> None:
        self._count_none()

    @property
    def reason(self) -> str:
        """The state of the status writer, for a readiness detail."""
        return self._tenure.reason() if self._tenure else FOLLOWS

    async def lead(self) -> None:
        """Write statuses until cancelled. Errors are logged, so that the controller continues."""
        try:
            with self.watches.scope() as watches:
                # A new one each time: counts continue from the values in the statuses.
                tenure = self._tenure = _Tenure(self, watches)
                await tenure.run()
        finally:
            self._tenure = None
            # The next leader has the numbers from now on.
            self._count_none()

    def _count_none(self) -> None:
        self.counts.clear()
        for kind in CALLED.values():
            for condition in CONDITIONS:
                # A missing series does not say that nothing is False.
                self.counts.labels(kind, condition, "False")


class _Tenure:
    """The state from the moment when this process started to lead."""

    def __init__(self, reporter: PolicyReporter, watches: Watches) -> None:
        self._client, self._replicas, self._interval = (
            watches.client,
            reporter.replicas,
            reporter.interval,
        )
        self._clock = reporter.clock
        self._of = reporter
        self._objects = StoredObjects(watches)
        self._objects.subscribe(partial(_count, reporter.counts))
        self._nodes = NodeView(watches)
        self._classes = ClusterClasses(watches)
        self._statuses = StatusWriter(
            reporter.writer, self._objects, self._due, interval=reporter.interval
        )
        self._judging = Judging(
            self._objects, self._nodes, self._classes, self._note_judgement, reporter.clock
        )
        self._reports = None
        if reporter.reports is not None:
            self._reports = PodReports(
                self._client,
                reporter.writer,
                lambda: self._judging.acceptance.policies,
                self._nodes,
                self._classes,
                interval=reporter.reports,
                clock=reporter.clock,
            )
        self._configuration: Mapping[str, Any] | None = None
        self._ledger = Ledger()
        self.served: tuple[Served, ...] | None = None
        self._unheard: tuple[str, ...] = ()
        self._judged = asyncio.Event()
        self._silent: dict[str, int] = {}
        self._replicas_trouble = ""

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for part in (
                    self._judging.judge,
                    self._judging.survey,
                    self._poll_replicas,
                    self._write,
                    *([self._reports.run] if self._reports else []),
                ):
                    group.create_task(_always(part))
        finally:
            await self._write_last_counts()

    async def _write_last_counts(self) -> None:
        """Write the counts, because the next leader continues from the written values."""
        if self._ledger.initial_keys is None:
            # Nothing has been counted.
            return
        try:
            async with asyncio.timeout(LAST_WRITES_SECONDS):
                with suppress(ClusterError):
                    self._learn(
                        await poll_replicas(self._replicas, patience=LAST_WRITES_SECONDS / 2)
                    )
                await self._statuses.write_once()
        except TimeoutError:
            _logger.info("not all counts of policies were written in the end")
        except Exception:
            _logger.exception("counts of policies were not written in the end: this is a bug")

    def reason(self) -> str:
        judged = self._judging.acceptance
        conditions = judged.conditions
        parts = [f"{len(conditions)} objects" if conditions else "no object judged yet"]
        if judged.faulty:
            parts.append(f"refused for {', '.join(judged.faulty[:3])}")
        if self.served is not None:
            parts.append(f"{len(self.served)} replicas of the webhook")
        troubles = (
            self._objects.trouble(),
            self._objects.doubted,
            self._objects.unchecked,
            self._replicas_trouble,
            self._nodes.trouble(),
            self._statuses.trouble,
            self._reports.trouble if self._reports else "",
        )
        parts += [self._reports.state] if self._reports else []
        return "; ".join([*parts, *filter(None, dict.fromkeys(troubles))])

    async def _write(self) -> None:
        await self._objects.wait_synced()
        await self._statuses.run()

    async def _poll_replicas(self) -> NoReturn:
        await self._objects.wait_synced()
        usual = self._interval / _LOOKS
        pause = usual
        while True:
            try:
                await self._read_configuration()
                self._learn(await poll_replicas(self._replicas))
                self._replicas_trouble = ""
            except ClusterError as error:
                self._replicas_trouble = f"the webhook's replicas are unknown: {error}"
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._judged.wait()
                    await asyncio.sleep(_SOON)
            # Replicas take a new set within a second: somebody may wait for that.
            pause = min(_SOON if self._judged.is_set() else 2 * pause, usual)
            self._judged.clear()

    def wake(self) -> None:
        """Have what has changed written."""
        self._statuses.wake()

    def _note_judgement(self) -> None:
        self._judged.set()
        self._statuses.wake()

    async def _read_configuration(self) -> None:
        """Read which pods are sent to the webhook, if a source asks for that."""
        resources = {stored.observed.resource for stored in self._objects.objects().values()}
        if names.RUN_SOURCES not in resources:
            return
        try:
            self._configuration = await self._client.find(_CONFIGURATION) or {}
        except ClusterError:
            self._configuration = None

    def _learn(self, polled: ReplicaReports) -> None:
        self._note_objects()
        listed = {replica.key for replica in polled.replicas}
        self._silent = {
            key: 0 if key in polled.reports else self._silent.get(key, 0) + 1 for key in listed
        }
        self._ledger = counted(self._ledger, listed, polled.reports)
        self._unheard = tuple(
            replica.name
            for replica in polled.replicas
            if not replica.leaving and replica.key not in polled.reports
        )
        self.served = tuple(
            Served(replica=replica.name, hash=report.hash or NO_SET)
            for replica in polled.replicas
            if not replica.leaving
            and self._silent[replica.key] < _PATIENT_LOOKS
            and (report := self._ledger.last.get(replica.key)) is not None
        )
        self._statuses.wake()

    def _note_objects(self) -> None:
        observed = (stored.observed for stored in self._objects.objects().values())
        self._ledger = met(self._ledger, observed, to_second(self._clock()))

    def _due(self) -> Sequence[Due]:
        self._note_objects()
        knowledge = Knowledge(
            self._judging.acceptance,
            self._judging.satisfied,
            self._ledger,
            self.served,
            self._configuration,
            self._unheard,
            self._of.sent,
        )
        observed = [stored.observed for stored in self._objects.objects().values()]
        return tuple(due(observed, knowledge, to_second(self._clock())))


def _count(counts: Gauge, change: Change[Stored]) -> None:
    """Count the conditions of an object that has changed."""
    for stored, by in ((change.before, -1), (change.after, 1)):
        observed = stored and stored.observed
        for condition in observed.status.conditions if observed else ():
            # Others may write the status too, and the numbers of a metric's labels have a bound.
            if observed and condition.type in CONDITIONS:
                counts.labels(CALLED[observed.resource], condition.type, condition.status).inc(by)


async def _always(part: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await part()
        except Exception:
            _logger.exception("a part of what keeps statuses ended: this is a bug")
        await asyncio.sleep(_AFTER_A_BUG)


class ReplicaReports(NamedTuple):
    """The replicas, and the reports of those that answered, by key."""

    replicas: Sequence[Replica]
    reports: Mapping[str, Report]


async def poll_replicas(
    replicas: Callable[[], Awaitable[Sequence[Replica]]],
    *,
    patience: float = REPLICA_TIMEOUT_SECONDS,
) -> ReplicaReports:
    """Read the replicas' metrics once, several concurrently.

    Raises ClusterError if the replicas cannot be listed. A replica that does not answer, or
    answers something else, has no report; the next read may have one.
    """
    polled_replicas = await replicas()
    limits = aiohttp.ClientTimeout(total=patience)
    async with aiohttp.ClientSession(timeout=limits, auto_decompress=False) as session:

        async def read(replica: Replica) -> Report | None:
            try:
                text = await _text(session, replica)
                # Parsing takes milliseconds with many policies.
                return await asyncio.to_thread(report_of, text)
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
                return None

        reports = await gather_some(CONCURRENT_READS, read, polled_replicas)
    answered = zip(polled_replicas, reports, strict=True)
    return ReplicaReports(
        polled_replicas, {replica.key: report for replica, report in answered if report is not None}
    )


async def _text(session: aiohttp.ClientSession, replica: Replica) -> str:
    host = f"[{replica.host}]" if ":" in replica.host else replica.host
    url = f"http://{host}:{replica.port}/metrics"
    async with session.get(url, allow_redirects=False) as response:
        if response.status != 200:
            raise ValueError(f"{url} answered {response.status}")
        text = bytearray()
        async for chunk in response.content.iter_any():
            text += chunk
            if len(text) > _METRICS_MAX_BYTES:
                raise ValueError(f"{url} does not come to an end")
    return text.decode("utf-8", "replace")
