"""Watch whether everything is in force that was installed to intercept pods and writes.

What is to be in force is recorded on the controller's Deployment (decision 101). The result is in
metrics, in Events on that Deployment, and in the condition InForce of policies.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from certs.bundle import verifies
from webhook import metric_names, names
from webhook.api_paths import CONFIGURATIONS, NAMESPACES, CollectionPath
from webhook.cluster_objects.policy_objects import text_of
from webhook.cluster_objects.unplaced_pods import find_unplaced
from webhook.controller.certificates.observe import Address, presented_leaf, serving_addresses
from webhook.controller.owned_objects import created_for_runs
from webhook.errors import ClusterError, NotLeading
from webhook.guards import run_author_guard
from webhook.interception import (
    GUARD,
    MUTATING,
    VALIDATING,
    expected_entries,
    installed_since,
    placed_whole,
    read_ca_bundle,
    read_record,
)
from webhook.judgement.entry_states import (
    NO_SOURCE,
    EntryState,
    as_meant,
    pod_entries,
    unread,
    untrusted_entries,
    validating_entries,
)
from webhook.judgement.guard_states import guard_states
from webhook.judgement.reporting.in_force import SentPods
from webhook.judgement.set_judgement import Objects
from webhook.kube.answers import tells_nothing
from webhook.kube.events import event
from webhook.policy.added_sources import table_of
from webhook.run.crd import NAME
from webhook.sources import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
    from typing import NoReturn

    from cryptography import x509
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from webhook.interception import Record
    from webhook.kube.client import Client
    from webhook.kube.writer import Writes
    from webhook.sources.table import SourceTable

    Json = Mapping[str, Any]

T = TypeVar("T")

_logger = logging.getLogger(__name__)

_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_VALIDATING: Final = CollectionPath(_ADMISSION, "validatingwebhookconfigurations")
_GUARDS: Final = CollectionPath(_ADMISSION, "validatingadmissionpolicies")
# The definition of Runs is as old as the installation, and ends with all of it.
_RUNS: Final = CollectionPath("apiextensions.k8s.io/v1", "customresourcedefinitions").path_of(NAME)
_SOURCES: Final = CollectionPath(names.API_VERSION, names.RUN_SOURCES)
_BINDINGS: Final = CollectionPath(_ADMISSION, "validatingadmissionpolicybindings")
# The label of all guards that ship, or that `fairlead generate guard` prints.
_OURS: Final = {"labelSelector": f"app.kubernetes.io/name={names.MANAGER}"}
# Seconds between two looks at the configurations: some small objects.
LOOK_SECONDS: Final = 5.0
# Seconds between two looks at what changes less, or costs more: the certificate that is presented,
# and the pods of runs.
LONG_PERIOD: Final = 60.0
_AUTHORS: Final = run_author_guard(created_for_runs())[0]
# Replicas that are asked for their certificate, until one answers.
_ASKED: Final = 3
LOST: Final = "NotIntercepting"
BACK: Final = "Intercepting"


class _Live(NamedTuple):
    """What one look has read. A text instead of an object says why it could not be read."""

    deployment: Json | None
    mutating: Json | str | None
    validating: Json | str | None
    policies: Sequence[Json] | str
    bindings: Sequence[Json] | str
    namespaces: Sequence[Json] | str


class Interception:
    """Looks at what intercepts, while this process leads.

    `name` is that of both webhook configurations, `namespace` that of the controller's Deployment.
    `changed` is called after each change of what is in force. `clock` is the wall clock, in UTC.
    """

    def __init__(
        self,
        client: Client,
        writer: Writes,
        registry: CollectorRegistry,
        *,
        namespace: str,
        name: str = names.WEBHOOK_CONFIGURATION,
        period: float = LOOK_SECONDS,
        long_period: float = LONG_PERIOD,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._writer = writer
        self._namespace = namespace
        self._name = name
        self._period, self._long_period = period, long_period
        self._clock = clock
        self.changed: Callable[[], None] = lambda: None
        self._forget()
        registry.register(_AtScrape(self))

    def _forget(self) -> None:
        self.states: Sequence[EntryState] = ()
        # Which pods are sent to the webhook; None before the first look.
        self.sent: SentPods | None = None
        self.unplaced: int | None = None
        self._table, self._unread_sources = SHIPPED, ""
        self._leaf: x509.Certificate | None = None
        self._due = 0.0
        self._looked = float("-inf")
        self._trouble = ""

    @property
    def known(self) -> bool:
        """Whether the last look is recent, so that its result may be reported as a metric."""
        return time.monotonic() - self._looked < self._long_period

    async def lead(self) -> NoReturn:
        """Look until cancelled. What is known goes with the lead."""
        try:
            while True:
                try:
                    await self.look()
                    self._trouble = ""
                except (ClusterError, NotLeading) as error:
                    self._report(f"what intercepts was not looked at: {error}")
                except Exception:
                    # Runs are reconciled all the same.
                    _logger.exception("what intercepts was not looked at: this is a bug")
                    self._forget()
                await asyncio.sleep(self._period)
        finally:
            self._forget()

    async def look(self) -> None:
        """Look once. Raises ClusterError if the API server does not answer."""
        live = await self._read()
        record = read_record(live.deployment)
        self._table, self._unread_sources = await self._read_table(record)
        late = time.monotonic() >= self._due
        if late:
            self._leaf = await self._present_leaf(live)
        states = self._judge(live, record)
        before, self.states = self.states, states
        self._looked = time.monotonic()
        if states != before:
            self.sent = SentPods(states)
            self.changed()
            await self._announce(before, live.deployment)
        if late or states != before:
            self._due = time.monotonic() + self._long_period
            await self._count_unplaced(live, record)

    async def _read(self) -> _Live:
        deployments = CollectionPath("apps/v1", "deployments", self._namespace)
        return _Live(
            await self._client.find(deployments.path_of(names.CONTROLLER)),
            await _tried(self._client.find(CONFIGURATIONS.path_of(self._name))),
            await _tried(self._client.find(_VALIDATING.path_of(self._name))),
            await self._list(_GUARDS, _OURS),
            await self._list(_BINDINGS, _OURS),
            await self._list(NAMESPACES),
        )

    async def _list(
        self, path: CollectionPath, query: Mapping[str, str] | None = None
    ) -> Sequence[Json] | str:
        listing = await _tried(self._client.list(path, lambda raw: raw, query=query))
        return listing if isinstance(listing, str) else listing.items

    async def _read_table(self, record: Record) -> tuple[SourceTable, str]:
        """Return the table of systems, with those of the cluster if one of them is recorded.

        The text says why those could not be read, if so.
        """
        shipped = {entry["name"] for entry in expected_entries(record)}
        if shipped.issuperset(record.of_kind(MUTATING)):
            return SHIPPED, ""
        sources = await self._list(_SOURCES)
        if isinstance(sources, str):
            return SHIPPED, sources
        kind = names.RUN_SOURCES
        texts = {
            f"{kind}/{source['metadata']['name']}": text_of(kind, dict(source))
            for source in sources
        }
        return table_of(Objects().documents(texts).documents), ""

    async def _present_leaf(self, live: _Live) -> x509.Certificate | None:
        """Return the certificate that a replica presents; None if none answers."""
        for address, server_name in await self._addresses(live.mutating):
            if leaf := await presented_leaf(address, server_name):
                return leaf
        return None

    async def _addresses(self, configuration: Json | str | None) -> list[tuple[Address, str]]:
        """Return where the webhook listens, with the server name that the API server verifies."""
        if isinstance(configuration, str) or configuration is None:
            return []
        urls = [entry["clientConfig"].get("url") for entry in configuration.get("webhooks") or ()]
        if url := next(filter(None, urls), None):
            parts = urlsplit(url)
            host = parts.hostname or ""
            return [(Address(host, parts.port or 443), host)]
        path = CollectionPath("discovery.k8s.io/v1", "endpointslices", self._namespace)
        slices = await self._list(
            path, {"labelSelector": f"kubernetes.io/service-name={names.WEBHOOK}"}
        )
        if isinstance(slices, str):
            return []
        server_name = f"{names.WEBHOOK}.{self._namespace}.svc"
        addresses = serving_addresses(slices, "https")
        return [(address, server_name) for address in addresses if address][:_ASKED]

    def _judge(self, live: _Live, record: Record) -> list[EntryState]:
        untrusted = untrusted_entries(
            {**_bundles(live.mutating), **_bundles(live.validating)},
            partial(verifies, leaf=self._leaf) if self._leaf else None,
        )
        whole = placed_whole(_labels(live.namespaces))
        expected = expected_entries(record, _names(live.mutating), self._table)
        recorded = [*(entry["name"] for entry in expected), *record.of_kind(MUTATING)]
        entry_states: list[EntryState] = []
        if isinstance(live.mutating, str):
            entry_states += unread(dict.fromkeys(recorded), MUTATING, live.mutating, expected)
        else:
            states = pod_entries(record, live.mutating, self._table, whole, untrusted)
            if why := self._unread_sources:
                gone = [state.entry for state in states if state.reason == NO_SOURCE]
                states = [state for state in states if state.entry not in gone]
                entry_states += unread(gone, MUTATING, why)
            entry_states += states
        if isinstance(live.validating, str):
            entry_states += unread(record.of_kind(VALIDATING), VALIDATING, live.validating)
        else:
            entry_states += validating_entries(record, live.validating, SHIPPED, untrusted)
        if isinstance(live.policies, str) or isinstance(live.bindings, str):
            why = next(
                answer for answer in (live.policies, live.bindings) if isinstance(answer, str)
            )
            entry_states += unread(record.of_kind(GUARD), GUARD, why)
        else:
            policies = {policy["metadata"]["name"]: policy for policy in live.policies}
            entry_states += guard_states(
                record.of_kind(GUARD), policies, live.bindings, expected, whole, _AUTHORS
            )
        return entry_states

    async def _count_unplaced(self, live: _Live, record: Record) -> None:
        """Count the pods without a stamp that are younger than the installation."""
        self.unplaced = None
        if isinstance(live.namespaces, str) or isinstance(live.mutating, str):
            return
        labels = _labels(live.namespaces)
        entries = as_meant(record, live.mutating, self._table, placed_whole(labels))
        pods = await find_unplaced(self._client, entries, labels, everywhere=True)
        definition = await _tried(self._client.find(_RUNS))
        if isinstance(definition, str):
            return
        since = installed_since(live.deployment, live.mutating, definition)
        self.unplaced = sum(pod.created >= since for pod in pods)

    async def _announce(self, before: Sequence[EntryState], deployment: Json | None) -> None:
        """Write Events and a log message about what has changed."""
        state_by_entry = {state.entry: state for state in before}
        new = [
            state
            for state in self.states
            if state.reason and state_by_entry.get(state.entry) != state
        ]
        over = [
            state
            for state in self.states
            if not state.reason
            and state.entry in state_by_entry
            and state_by_entry[state.entry].reason
        ]
        for state in new:
            _logger.warning("%s is not in force: %s", state.entry, state.message)
        for state in over:
            _logger.warning("%s is in force again", state.entry)
        lost = "; ".join(f"{state.entry}: {state.message}" for state in new)
        back = ", ".join(state.entry for state in over)
        for content in (
            ("Warning", LOST, f"not in force: {lost}") if lost else None,
            ("Normal", BACK, f"in force again: {back}") if back else None,
        ):
            if content and deployment:
                await self._write_event(deployment["metadata"], content)

    async def _write_event(self, metadata: Json, content: tuple[str, str, str]) -> None:
        about = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "namespace": self._namespace,
            "name": names.CONTROLLER,
            "uid": metadata["uid"],
        }
        name = f"{names.CONTROLLER}.{uuid.uuid4().hex[:16]}"
        written = event(name, about, content, component=names.CONTROLLER, when=self._clock())
        await self._writer.create(CollectionPath("v1", "events", self._namespace), written)

    def _report(self, trouble: str) -> None:
        if trouble != self._trouble:
            _logger.warning(trouble)
        self._trouble = trouble


async def _tried(answer: Awaitable[T]) -> T | str:
    """Return the answer, or why the API server refuses it. Raises ClusterError without one."""
    try:
        return await answer
    except ClusterError as error:
        if tells_nothing(error):
            # What was known stays.
            raise
        return error.why


def _names(configuration: Json | str | None) -> list[str]:
    return [entry["name"] for entry in _entries(configuration)]


def _entries(configuration: Json | str | None) -> Sequence[Json]:
    document = None if isinstance(configuration, str) else configuration
    return (document or {}).get("webhooks") or ()


def _bundles(configuration: Json | str | None) -> dict[str, bytes]:
    """Return the caBundle of each entry. One with a url may do without."""
    entry_bundles = {
        entry["name"]: (entry, read_ca_bundle(entry)) for entry in _entries(configuration)
    }
    return {
        name: bundle
        for name, (entry, bundle) in entry_bundles.items()
        if bundle or not entry["clientConfig"].get("url")
    }


def _labels(namespaces: Sequence[Json] | str) -> dict[str, Mapping[str, str]]:
    """Return the labels of namespaces by name; none if they are not known."""
    listed_namespaces = () if isinstance(namespaces, str) else namespaces
    return {
        namespace["metadata"]["name"]: namespace["metadata"].get("labels") or {}
        for namespace in listed_namespaces
    }


class _AtScrape(Collector):
    """The metrics of what intercepts. Nothing is known of it by a process that does not lead."""

    def __init__(self, interception: Interception) -> None:
        self._of = interception

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registration calls this before there are values."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield what the leader knows."""
        family = GaugeMetricFamily(
            metric_names.INTERCEPTING,
            "1 if an entry of the webhook configurations, or a guard, is in force as it was "
            "installed, else 0 with the reason: `Absent`, `Disabled`, `NoRules`, `Elsewhere`, "
            "`Narrowed`, `FailsOpen`, `NotTrusted`, `NoSource`, `NotBound`, `Changed`, `NotRead`. "
            "Only from the leader.",
            labels=["entry", "reason"],
        )
        for state in self._of.states if self._of.known else ():
            family.add_metric([state.entry, state.reason], float(not state.reason))
        yield family
        family = GaugeMetricFamily(
            metric_names.UNPLACED_PODS,
            "Unfinished pods of runs without a stamp, created since Fairlead was installed. Only "
            "from the leader.",
            labels=(),
        )
        if self._of.known and self._of.unplaced is not None:
            family.add_metric((), self._of.unplaced)
        yield family
