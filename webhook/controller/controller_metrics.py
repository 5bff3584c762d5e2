"""The controller's metrics."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeAlias

from prometheus_client import Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from webhook import metric_names
from webhook.controller.stored_run import OTHER_PHASE, phase_label
from webhook.run.model.status import PHASES
from webhook.run.usage import REPLICAS, usage_increase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric

    from webhook.controller.observed_state import ObservedState
    from webhook.run.model import RunStatus

Number: TypeAlias = "Callable[[], float]"

# Seconds: a run of a few pods takes milliseconds, the creation of hundreds of pods seconds.
BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 2.5, 10.0)
RESULTS: Final = ("done", "invalid", "conflict", "failed")
STATES: Final = ("useful", "repeated", "waiting")
# By the states of a start before and after.
STARTS: Final[Mapping[tuple[str, ...], str]] = {
    ("Waiting", "Starting"): "begun",
    ("", "Starting"): "begun",
    ("Starting", "Whole"): "whole",
    ("Starting", "Waiting"): "gave_way",
}


class ControllerMetrics:
    """The controller's metrics on the given registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._reconciles = Counter(
            metric_names.RECONCILES,
            "Reconciles of runs: done, invalid (the run cannot have pods), conflict (the run has "
            "changed meanwhile), failed (will be retried).",
            ["result"],
            registry=registry,
        )
        self._duration = Histogram(
            metric_names.RECONCILE_DURATION,
            "Seconds of one reconcile of a run, including calls to the API server.",
            buckets=BUCKETS,
            registry=registry,
        )
        self._transitions = Counter(
            metric_names.RUN_TRANSITIONS,
            "Changes of a run's phase.",
            ["before", "after"],
            registry=registry,
        )
        self._usage = Counter(
            metric_names.RUN_USAGE,
            "Seconds of replicas and of their accelerators, by capacity class, counted after an "
            "attempt: useful, repeated (a disruption or failure ended it) or waiting (without a "
            "node).",
            ["capacity_class", "resource", "state"],
            registry=registry,
        )
        self._starts = Counter(
            metric_names.GANG_STARTS,
            "Tries to start a run all at once: begun, whole (all replicas had a node) or gave_way "
            "(its nodes were given back).",
            ["result"],
            registry=registry,
        )
        self._held = Counter(
            metric_names.GANG_HELD,
            "Seconds for which replicas had a node before all of their run had one.",
            registry=registry,
        )
        for start in set(STARTS.values()):
            self._starts.labels(start)
        self._created = Counter(
            metric_names.PODS_CREATED, "Pods created for runs.", registry=registry
        )
        self._deleted = Counter(
            metric_names.PODS_DELETED, "Pods of runs deleted by the controller.", registry=registry
        )
        self._refused = Counter(
            metric_names.CREATIONS_REFUSED,
            "Creations that the API server rejected, by reason.",
            ["reason"],
            registry=registry,
        )
        self._answers = Counter(
            metric_names.API_REQUESTS,
            "Requests to the API server except watches, by verb and HTTP status; the code is none "
            "without an answer.",
            ["verb", "code"],
            registry=registry,
        )
        self._leader = Gauge(
            metric_names.LEADER, "1 if this process is the leader, else 0.", registry=registry
        )
        self._outdated = Gauge(
            metric_names.DEFINITION_OUTDATED,
            "1 if the cluster's CRD lacks fields of this version, is absent or cannot be read, "
            "else 0.",
            ["definition"],
            registry=registry,
        )
        self._rollouts = Gauge(
            metric_names.ROLLOUT_INCOMPLETE,
            "1 if not all pods of a Deployment of Fairlead's are of its newest template and "
            "available, or if that cannot be read, else 0.",
            ["deployment"],
            registry=registry,
        )
        self.policies = Gauge(
            metric_names.POLICIES,
            "Policies, classes, exceptions and sources by kind, and by the status of each "
            "condition that they have; of the leader only.",
            ["kind", "condition", "status"],
            registry=registry,
        )
        self._expected: set[tuple[str, str]] = set()
        # Usage that was counted and is not so: a counter does not fall, so less is added later.
        self._taken_back: dict[tuple[str, str, str], int] = defaultdict(int)
        for result in RESULTS:
            # A counter that appears with its first event hides that event from rate().
            self._reconciles.labels(result)

    def reconciled(self, result: str, seconds: float) -> None:
        """Count one reconcile; the result is one of RESULTS."""
        self._reconciles.labels(result).inc()
        self._duration.observe(seconds)

    def expect_usage(self, resources: Iterable[tuple[str, str]]) -> None:
        """Show the usage of these before it is counted; capacity class and resource of each.

        A counter that appears with its first event hides that event from rate(), and the event here
        is the whole time of an attempt.
        """
        for resource in resources:
            if resource not in self._expected:
                self._expected.add(resource)
                for state in STATES:
                    self._usage.labels(*resource, state)

    def written(self, before: RunStatus, after: RunStatus) -> None:
        """Count what a write of a run's status changed: its phase, and what it used."""
        if after.phase != before.phase:
            self._transitions.labels(phase_label(before.phase), phase_label(after.phase)).inc()
        states = tuple(status.gang.state if status.gang else "" for status in (before, after))
        if (start := STARTS.get(states)) is not None:
            self._starts.labels(start).inc()
        if before.gang and after.gang:
            self._held.inc(max(0, after.gang.held_seconds - before.gang.held_seconds))
        for usage in usage_increase(before.usage, after.usage):
            if not usage.seconds and usage.resource != REPLICAS:
                # No node ever had the resource: its name may be anything.
                continue
            useful = usage.seconds - usage.repeated_seconds
            amounts = (useful, usage.repeated_seconds, usage.waiting_seconds)
            for state, seconds in zip(STATES, amounts, strict=True):
                label_values = usage.capacity_class, usage.resource, state
                left = seconds - self._taken_back[label_values]
                self._usage.labels(*label_values).inc(max(0, left))
                self._taken_back[label_values] = max(0, -left)

    def pod_created(self) -> None:
        """Count a pod that was created, or that existed already."""
        self._created.inc()

    def pod_deleted(self) -> None:
        """Count a pod that was deleted."""
        self._deleted.inc()

    def creation_refused(self, reason: str) -> None:
        """Count a rejected creation."""
        self._refused.labels(reason).inc()

    def count_request(self, verb: str, status: int | None) -> None:
        """Count a request; the status is None if no answer arrived."""
        self._answers.labels(verb, "none" if status is None else str(status)).inc()

    def leads(self, *, leads: bool) -> None:
        """Record whether this process leads."""
        self._leader.set(leads)

    def definition(self, name: str, outdated: bool) -> None:
        """Record whether a definition is older than this version, or is not known."""
        self._outdated.labels(name).set(outdated)

    def rollouts(self, lacking: Mapping[str, str]) -> None:
        """Record what the rollout of each Deployment lacks; empty: nothing."""
        self._rollouts.clear()
        for name, lacks in lacking.items():
            self._rollouts.labels(name).set(bool(lacks))

    def watch(self, state: ObservedState, numbers: Iterable[tuple[str, str, Number]]) -> None:
        """Read these at each scrape. `numbers`: name, help and function; counters end in _total."""
        self._registry.register(_AtScrape(state, tuple(numbers)))


class _AtScrape(Collector):
    """Metrics that are read at scrape time, on the event loop's thread or another."""

    def __init__(
        self,
        state: ObservedState,
        numbers: tuple[tuple[str, str, Number], ...],
    ) -> None:
        self._known = state
        self._numbers = numbers

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registration calls this before there are values."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics with their current values."""
        yield from self._runs()
        for name, text, number in self._numbers:
            family = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield family(name.removesuffix("_total"), text, number())

    def _runs(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(metric_names.RUNS, "Runs by phase.", labels=["phase"])
        for phase in (*PHASES, OTHER_PHASE):
            family.add_metric([phase], self._known.phases[phase])
        yield family
        yield GaugeMetricFamily(
            metric_names.RUNS_NOT_UNDERSTOOD,
            "Runs with something in spec or status that this version does not understand: their "
            "condition Understood is False.",
            self._known.not_understood,
        )
