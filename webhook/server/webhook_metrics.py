"""The webhook's metrics."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Generic, TypeVar, get_args

from prometheus_client import Counter, Gauge, Histogram

from webhook import metric_names
from webhook.server.connection_limiter import Reason
from webhook.server.health import Exposition
from webhook.server.notices import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

M = TypeVar("M", Counter, Gauge)

# Seconds: a decision takes a fraction of a millisecond, with an API call much more.
BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0)
NO_POLICY: Final = ""
_LOADS: Final = ("loaded", "refused")


class _Series(Generic[M]):
    """A metric by labels. Known series are looked up in a dictionary, because prometheus-client
    validates labels at every look-up.

    `always`: values of its one label that have a series from the start. A counter that appears with
    its first event hides that event from rate().
    """

    def __init__(self, metric: M, always: Collection[str] = ()) -> None:
        self._metric: M = metric
        self._known: dict[tuple[str, ...], M] = {}
        for label in always:
            self.of(label)

    def of(self, *labels: str) -> M:
        """Return the series with these values of the labels."""
        found = self._known.get(labels)
        if found is None:
            found = self._known[labels] = self._metric.labels(*labels)
        return found

    def count(self, *labels: str) -> None:
        """Count one more in the series."""
        self.of(*labels).inc()

    def keep(self, wanted: Callable[[tuple[str, ...]], bool]) -> None:
        """Remove all other series."""
        for labels in [each for each in self._known if not wanted(each)]:
            del self._known[labels]
            self._metric.remove(*labels)


class Metrics(Exposition):
    """Every metric of the serving webhook. Those with a method are counted by it.

    Methods are called on the event loop's thread. `clock` is the wall clock, in seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._clock = clock
        self._decisions = self._counters(
            metric_names.DECISIONS,
            "Decisions by result, one for each policy that applied; policy is empty if none did.",
            "result",
            "policy",
        )
        self._rejections = self._counters(
            metric_names.POLICY_REJECTIONS,
            "Pods rejected because of the policy.",
            "policy",
        )
        self._last_match = _Series(
            self._gauge(
                metric_names.POLICY_LAST_MATCH,
                "Unix time at which the policy last matched a pod, also under Audit.",
                "policy",
            )
        )
        self._audited = self._counters(
            metric_names.AUDITED_DECISIONS,
            "Decisions of policies under Audit on pods: same (no change), changes or rejects.",
            "policy",
            "namespace",
            "outcome",
        )
        self._exceptions = self._counters(
            metric_names.EXCEPTIONS_APPLIED,
            "Pods to which a matching policy did not apply because of an exception.",
            "exception",
            "policy",
        )
        self._policy_writes = self._counters(
            metric_names.POLICY_WRITES,
            "Writes of policies, classes, exceptions and sources by outcome: allowed, warned, "
            "refused, or unjudged (failed; the API server applies the failurePolicy).",
            "outcome",
            always=("allowed", "warned", "refused", "unjudged"),
        )
        self._unplaceable = self._counter(
            metric_names.UNPLACEABLE,
            "Pods that were admitted although no node could run them at that moment (--nodes).",
        )
        self._policy_set = self._gauge(
            metric_names.POLICY_SET, "The policy set in force, by its hash; always 1.", "hash"
        )
        self._policy_set_loaded = self._gauge(
            metric_names.POLICY_SET_LOADED, "Unix time at which the policy set was loaded."
        )
        self._policy_set_errors = self._gauge(
            metric_names.POLICY_SET_ERRORS,
            "Errors of the policy set in force, such as policies that reject every pod;"
            " `fairlead check` lists them.",
        )
        self.reloads = self._counters(
            metric_names.POLICY_RELOADS,
            "Reloads of the policy set: loaded, or refused (the last good one stays).",
            "outcome",
            always=_LOADS,
        )
        self.requests = self._counters(
            metric_names.ADMISSION_REQUESTS,
            "Admission requests answered, by result and HTTP status code.",
            "result",
            "code",
        )
        self._duration = Histogram(
            metric_names.ADMISSION_DURATION,
            "Seconds from a request's first byte in the app to its answer.",
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.in_flight = self._gauge(
            metric_names.ADMISSION_IN_FLIGHT, "Requests accepted and not answered yet."
        )
        self.connections = self._gauge(
            metric_names.CONNECTIONS, "Connections to the HTTPS port, handshakes included."
        )
        self.connections_ended = self._counters(
            metric_names.CONNECTIONS_ENDED,
            "Connections closed by the webhook: slow, late (waited too long for a handshake),"
            " crowded (too many), large (too many bytes in bodies and answers), unread (its"
            " answer was not read), pipelined (a request before the previous answer), malformed"
            " (not HTTP/1.1).",
            "reason",
            always=get_args(Reason),
        )
        self._engine_errors = self._counter(
            metric_names.ENGINE_ERRORS, "Decisions that ended in an exception: each one is a bug."
        )
        self._workload_warnings = self._counter(
            metric_names.WORKLOAD_WARNINGS,
            "Warnings returned to authors of workloads about the pods that these will create.",
        )
        self.events = self._counters(
            metric_names.EVENTS,
            "Events on workloads: written, repeated within the hour, dropped (too many) or failed.",
            "outcome",
            always=get_args(Outcome),
        )
        self._cache_age = self._gauge(
            metric_names.CACHE_AGE,
            "Seconds since the last message from the API server to a cache.",
            "resource",
        )
        self._certificate = self._gauge(
            metric_names.CERTIFICATE_EXPIRY, "Unix time at which the serving certificate expires."
        )
        self.certificates = self._counters(
            metric_names.CERTIFICATE_RELOADS,
            "Reloads of the serving certificate: loaded, or refused (the previous one stays).",
            "outcome",
            always=_LOADS,
        )
        self._handshake: Gauge | None = None

    def decided(self, result: str, policies: Collection[str]) -> None:
        """Count one decision for each policy that applied."""
        now = self._clock()
        for policy in policies or (NO_POLICY,):
            self._decisions.count(result, policy)
            if policy != NO_POLICY:
                self._last_match.of(policy).set(now)

    def rejected(self, policies: Collection[str]) -> None:
        """Count one rejected pod for each policy that rejected it."""
        for policy in policies:
            self._rejections.count(policy)

    def audited(self, policy: str, namespace: str, outcome: str) -> None:
        """Count one pod that matched a policy under Audit in a namespace, by outcome."""
        self._audited.count(policy, namespace, outcome)

    def excepted(self, exception: str, policy: str) -> None:
        """Count one pod for which an exception set aside a policy."""
        self._exceptions.count(exception, policy)

    def policy_write_judged(self, outcome: str) -> None:
        """Count one write of a policy, class or exception: see policy_handler.Outcome."""
        self._policy_writes.count(outcome)

    def unplaceable(self) -> None:
        """Count one pod that no node could admit at its creation."""
        self._unplaceable.inc()

    def policies_loaded(
        self,
        digest: str,
        names: Collection[str],
        now: datetime,
        exceptions: Collection[str] = (),
        faults: int = 0,
    ) -> None:
        """Record the new policy set in force: its hash, policies and exceptions.

        `faults` is the number of errors in objects that were left out.

        Counters of deleted policies and exceptions are removed, so that the number of series does
        not grow with every edit.
        """
        self.reloads.count("loaded")
        self._policy_set.clear()
        self._policy_set.labels(digest).set(1)
        self._policy_set_loaded.set(now.timestamp())
        self._policy_set_errors.set(faults)
        self._decisions.keep(lambda labels: labels[1] in names or labels[1] == NO_POLICY)
        self._exceptions.keep(lambda labels: labels[0] in exceptions and labels[1] in names)
        self._last_match.keep(lambda labels: labels[0] in names)
        self._rejections.keep(lambda labels: labels[0] in names)
        self._audited.keep(lambda labels: labels[0] in names)

    def request_answered(self, result: str, code: int, seconds: float | None) -> None:
        """Count one admission request with its HTTP status code and its duration.

        Without seconds the request was not about a pod, and does not enter the histogram.
        """
        self.requests.count(result, str(code))
        if seconds is not None:
            self._duration.observe(seconds)

    def warned_of_workload(self, warnings: int) -> None:
        """Count the warnings that one workload received."""
        self._workload_warnings.inc(warnings)

    def engine_failed(self) -> None:
        """Count one decision that raised an exception."""
        self._engine_errors.inc()

    def certificate_served(self, not_after: datetime) -> None:
        """Record the expiry of the new certificate in use."""
        self.certificates.count("loaded")
        self._certificate.set(not_after.timestamp())

    def handshake_made(self, verified: bool) -> None:
        """Record whether the last self-handshake was verified."""
        if self._handshake is None:
            # Created here: without any handshake, a value of 0 would be a false alarm.
            self._handshake = self._gauge(
                metric_names.SELF_HANDSHAKE,
                "1 if the last handshake with itself, as the API server makes one, was verified.",
            )
        self._handshake.set(verified)

    def watch_cache(self, resource: str, age: Callable[[], float]) -> None:
        """Read a cache's age in seconds from `age` at each scrape, on another thread."""
        self._cache_age.labels(resource).set_function(age)

    def _counters(
        self, name: str, documentation: str, *labels: str, always: Collection[str] = ()
    ) -> _Series[Counter]:
        return _Series(Counter(name, documentation, labels, registry=self.registry), always)

    def _counter(self, name: str, documentation: str) -> Counter:
        return Counter(name, documentation, registry=self.registry)

    def _gauge(self, name: str, documentation: str, *labels: str) -> Gauge:
        return Gauge(name, documentation, labels, registry=self.registry)
