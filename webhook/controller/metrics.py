"""The controller's metrics. No label names a run or a pod, so their number is bounded."""

from __future__ import annotations

from collections import Counter as Tally
from typing import TYPE_CHECKING, Final, TypeAlias

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from webhook.controller.informers import Informers
    from webhook.controller.observed_state import ObservedState

Number: TypeAlias = "Callable[[], float]"

# Seconds: a run of a few pods takes a few milliseconds, the creation of hundreds some seconds.
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0)
PHASES: Final = (
    "Pending",
    "Starting",
    "Running",
    "Restarting",
    "Suspended",
    "Succeeded",
    "Failed",
)
RESULTS: Final = ("done", "invalid", "conflict", "failed")


class ControllerMetrics:
    """What a controller counts as it works, on the registry that it is given."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._reconciles = Counter(
            "fairlead_reconciles",
            "Looks at a run: done; invalid, no pods can be made of it; conflict, it had changed "
            "meanwhile; failed, to be tried again.",
            ["result"],
            registry=registry,
        )
        self._duration = Histogram(
            "fairlead_reconcile_duration_seconds",
            "Time of one look at a run, calls to the API server included.",
            buckets=BUCKETS,
            registry=registry,
        )
        self._transitions = Counter(
            "fairlead_run_transitions",
            "Changes of a run's phase.",
            ["before", "after"],
            registry=registry,
        )
        self._created = Counter(
            "fairlead_pods_created", "Pods created for runs.", registry=registry
        )
        self._deleted = Counter(
            "fairlead_pods_deleted", "Pods of runs deleted by the controller.", registry=registry
        )
        self._refused = Counter(
            "fairlead_creations_refused",
            "Creations that the API server refused, by reason.",
            ["reason"],
            registry=registry,
        )
        self._answers = Counter(
            "fairlead_api_requests",
            "Requests to the API server, watches aside, by verb and HTTP status; none if no answer "
            "came.",
            ["verb", "code"],
            registry=registry,
        )
        self._leader = Gauge(
            "fairlead_leader", "Whether this process leads: 1 or 0.", registry=registry
        )
        for result in RESULTS:
            # A series that starts at its first event hides that event from rate().
            self._reconciles.labels(result)

    def reconciled(self, result: str, seconds: float) -> None:
        """Count one look at a run; the result is one of RESULTS."""
        self._reconciles.labels(result).inc()
        self._duration.observe(seconds)

    def transition(self, before: str, after: str) -> None:
        """Count a change of a run's phase that has been written."""
        self._transitions.labels(before, after).inc()

    def pod_created(self) -> None:
        """Count a pod that is there now."""
        self._created.inc()

    def pod_deleted(self) -> None:
        """Count a pod that was deleted."""
        self._deleted.inc()

    def creation_refused(self, reason: str) -> None:
        """Count a creation that was refused."""
        self._refused.labels(reason).inc()

    def answered(self, verb: str, status: int | None) -> None:
        """Count a request; without a status no answer came."""
        self._answers.labels(verb, "none" if status is None else str(status)).inc()

    def leads(self, *, leads: bool) -> None:
        """Note whether this process leads."""
        self._leader.set(leads)

    def watch(
        self, known: ObservedState, informers: Informers, numbers: Iterable[tuple[str, str, Number]]
    ) -> None:
        """Read these at each scrape. `numbers`: name, help and function; counters end in _total."""
        self._registry.register(_AtScrape(known, informers, tuple(numbers)))


class _AtScrape(Collector):
    """What is read where it is kept; on the event loop's thread or another, as it comes."""

    def __init__(
        self,
        known: ObservedState,
        informers: Informers,
        numbers: tuple[tuple[str, str, Number], ...],
    ) -> None:
        self._known = known
        self._informers = informers
        self._numbers = numbers

    def describe(self) -> Iterable[Metric]:
        """Nothing: asked at registration, when there is nothing to read yet."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """All of it, now."""
        yield self._runs()
        yield from self._caches()
        for name, text, number in self._numbers:
            family = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield family(name.removesuffix("_total"), text, number())

    def _runs(self) -> Metric:
        # A copy, for the event loop may change the cache while this thread reads it.
        tally = Tally(run.phase or "Pending" for run in list(self._known.runs.items().values()))
        family = GaugeMetricFamily("fairlead_runs", "Runs by phase.", labels=["phase"])
        for phase in PHASES:
            family.add_metric([phase], tally[phase])
        return family

    def _caches(self) -> Iterator[Metric]:
        age = GaugeMetricFamily(
            "fairlead_cache_age_seconds",
            "Time since a cache last heard from the API server.",
            labels=["resource"],
        )
        lists = CounterMetricFamily(
            "fairlead_lists", "Whole lists read from the API server.", labels=["resource"]
        )
        watches = CounterMetricFamily(
            "fairlead_watches", "Watches opened at the API server.", labels=["resource"]
        )
        for informer in (*self._informers.all, *self._informers.beside):
            heard = informer.cache.age()
            age.add_metric([informer.resource], float("inf") if heard is None else heard)
            lists.add_metric([informer.resource], informer.reflector.lists)
            watches.add_metric([informer.resource], informer.reflector.watches)
        yield from (age, lists, watches)
