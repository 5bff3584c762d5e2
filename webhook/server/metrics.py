"""The metrics that Prometheus scrapes. No label ever names a pod, so their number is bounded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, get_args

from prometheus_client import Counter, Gauge, Histogram

from webhook.server.crowd import Reason
from webhook.server.exposition import Exposition
from webhook.server.notices import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

# Seconds: a decision takes a fraction of a millisecond, one that asks the API server much more.
BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0)
NO_POLICY: Final = ""


class Metrics(Exposition):
    """Every metric of the serving webhook.

    Observing is meant for the event loop's thread. The series of labels seen before are looked up
    in plain dictionaries, for prometheus-client validates labels anew at every look-up. `clock` is
    the wall clock, in seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._clock = clock
        self._requests = Counter(
            "fairlead_admission_requests",
            "Admission requests answered, by result and HTTP status code.",
            ["result", "code"],
            registry=self.registry,
        )
        self._decisions = Counter(
            "fairlead_decisions",
            "Decisions by result, once for each policy applied; policy is empty if none was.",
            ["result", "policy"],
            registry=self.registry,
        )
        self._rejections = Counter(
            "fairlead_policy_rejections",
            "Pods refused for what the policy wishes.",
            ["policy"],
            registry=self.registry,
        )
        self._last_match = self._gauge(
            "fairlead_policy_last_match_timestamp_seconds",
            "When the policy last matched a pod, under Audit too.",
            "policy",
        )
        self._audited = Counter(
            "fairlead_audited_decisions",
            "What policies under Audit would have meant to pods: same, changes or rejects.",
            ["policy", "namespace", "outcome"],
            registry=self.registry,
        )
        self._exceptions = Counter(
            "fairlead_exceptions_applied",
            "Pods in which a policy that matched took no part, by the exception that says so.",
            ["exception", "policy"],
            registry=self.registry,
        )
        self._duration = Histogram(
            "fairlead_admission_duration_seconds",
            "Time from a request's first byte in the app to its answer.",
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._in_flight = self._gauge(
            "fairlead_admission_in_flight", "Requests taken and not answered yet."
        )
        self._connections = self._gauge(
            "fairlead_connections", "Connections to the HTTPS port, handshakes included."
        )
        self._connections_ended = Counter(
            "fairlead_connections_ended",
            "Connections closed by us: slow, late (waited too long for a handshake), crowded (too"
            " many), large (too much in bodies).",
            ["reason"],
            registry=self.registry,
        )
        self._engine_errors = Counter(
            "fairlead_engine_errors",
            "Decisions that ended in an exception: each one is a bug.",
            registry=self.registry,
        )
        self._workload_warnings = Counter(
            "fairlead_workload_warnings",
            "Warnings given to those who wrote workloads, of what their pods will meet.",
            registry=self.registry,
        )
        self._policy_writes = Counter(
            "fairlead_policy_writes_judged",
            "Writes of policies, classes and exceptions by outcome: allowed, warned, refused, or"
            " unjudged, for which the API server goes by its failurePolicy.",
            ["outcome"],
            registry=self.registry,
        )
        self._unplaceable = Counter(
            "fairlead_unplaceable",
            "Pods that were admitted though no node could admit them at that moment (--nodes).",
            registry=self.registry,
        )
        self._events = Counter(
            "fairlead_events",
            "Events on workloads: written, repeated within the hour, dropped (too many) or failed.",
            ["outcome"],
            registry=self.registry,
        )
        self._policy_set = self._gauge(
            "fairlead_policy_set_info", "The policy set that serves, by its hash; always 1.", "hash"
        )
        self._policy_set_loaded = self._gauge(
            "fairlead_policy_set_loaded_timestamp_seconds", "When the policy set was loaded."
        )
        self._reloads = Counter(
            "fairlead_policy_reload",
            "Policy sets read anew: loaded, or refused and the last good one kept.",
            ["outcome"],
            registry=self.registry,
        )
        self._cache_age = self._gauge(
            "fairlead_cache_age_seconds",
            "Time since a cache last heard from the API server.",
            "resource",
        )
        self._certificate = self._gauge(
            "fairlead_certificate_expiry_timestamp_seconds", "When the serving certificate expires."
        )
        self._certificates = Counter(
            "fairlead_certificate_reload",
            "Serving certificates read anew: loaded, or refused and the one before kept.",
            ["outcome"],
            registry=self.registry,
        )
        self._handshake: Gauge | None = None
        self._request_children: dict[tuple[str, int], Counter] = {}
        self._decision_children: dict[tuple[str, str], Counter] = {}
        self._match_children: dict[str, Gauge] = {}
        self._rejecting: set[str] = set()
        self._audited_series: set[tuple[str, str, str]] = set()
        self._excepted_series: set[tuple[str, str]] = set()
        for outcome in ("loaded", "refused"):
            # A series that starts at its first event hides that event from rate().
            self._reloads.labels(outcome)
            self._certificates.labels(outcome)
        for outcome in ("allowed", "warned", "refused", "unjudged"):
            self._policy_writes.labels(outcome)
        for event in get_args(Outcome):
            self._events.labels(event)
        for reason in get_args(Reason):
            self._connections_ended.labels(reason)

    def request_answered(self, result: str, code: int, seconds: float | None) -> None:
        """Count one admission request with its HTTP status code and the seconds it took.

        Without seconds it was not about a pod: those are not told by the same histogram.
        """
        self._count_request(result, code)
        if seconds is not None:
            self._duration.observe(seconds)

    def request_shed(self) -> None:
        """Count one request that was told to come again, since too many were in flight."""
        self._count_request("overloaded", 503)

    def decided(self, result: str, policies: Collection[str]) -> None:
        """Count one decision under the name of each policy that it applied."""
        now = self._clock()
        for policy in policies or (NO_POLICY,):
            child = self._decision_children.get((result, policy))
            if child is None:
                child = self._decisions.labels(result, policy)
                self._decision_children[result, policy] = child
            child.inc()
            if policy != NO_POLICY:
                self._matched(policy, now)

    def rejected(self, policies: Collection[str]) -> None:
        """Count one pod under each policy that refused it."""
        for policy in policies:
            self._rejecting.add(policy)
            self._rejections.labels(policy).inc()

    def audited(self, policy: str, namespace: str, outcome: str) -> None:
        """Count one pod that a policy under Audit there matched, by what it would have meant."""
        self._audited_series.add((policy, namespace, outcome))
        self._audited.labels(policy, namespace, outcome).inc()

    def excepted(self, exception: str, policy: str) -> None:
        """Count one pod in which an exception set a policy aside."""
        self._excepted_series.add((exception, policy))
        self._exceptions.labels(exception, policy).inc()

    def warned_of_workload(self, warnings: int) -> None:
        """Count so many warnings that were given on one workload."""
        self._workload_warnings.inc(warnings)

    def policy_write_judged(self, outcome: str) -> None:
        """Count one write of a policy, class or exception: see policy_handler.Outcome."""
        self._policy_writes.labels(outcome).inc()

    def unplaceable(self) -> None:
        """Count one pod that no node could admit when it was created."""
        self._unplaceable.inc()

    def event_came_to(self, outcome: Outcome) -> None:
        """Count one Event that was to be written on a workload, by what became of it."""
        self._events.labels(outcome).inc()

    def engine_failed(self) -> None:
        """Count one decision that ended in an exception."""
        self._engine_errors.inc()

    def policies_loaded(
        self,
        digest: str,
        names: Collection[str],
        now: datetime,
        exceptions: Collection[str] = (),
    ) -> None:
        """Record the policy set that serves from now on, by its hash, its policies and exceptions.

        Decisions counted under policies or exceptions that are gone are forgotten, or years of
        edits would pile up.
        """
        self._reloads.labels("loaded").inc()
        self._policy_set.clear()
        self._policy_set.labels(digest).set(1)
        self._policy_set_loaded.set(now.timestamp())
        for result, policy in list(self._decision_children):
            if policy not in names and policy != NO_POLICY:
                del self._decision_children[result, policy]
                self._decisions.remove(result, policy)
        for policy in self._match_children.keys() - set(names):
            del self._match_children[policy]
            self._last_match.remove(policy)
        for policy in self._rejecting - set(names):
            self._rejecting.remove(policy)
            self._rejections.remove(policy)
        for series in [each for each in self._audited_series if each[0] not in names]:
            self._audited_series.remove(series)
            self._audited.remove(*series)
        for exception, policy in list(self._excepted_series):
            if exception not in exceptions or policy not in names:
                self._excepted_series.remove((exception, policy))
                self._exceptions.remove(exception, policy)

    def policies_refused(self) -> None:
        """Count one policy set that was read and not taken."""
        self._reloads.labels("refused").inc()

    def certificate_served(self, not_after: datetime) -> None:
        """Record when the certificate that serves from now on expires."""
        self._certificates.labels("loaded").inc()
        self._certificate.set(not_after.timestamp())

    def certificate_refused(self) -> None:
        """Count one certificate that was read and not taken."""
        self._certificates.labels("refused").inc()

    def handshake_made(self, verified: bool) -> None:
        """Record whether the last handshake with itself was verified."""
        if self._handshake is None:
            # Not before: where none is made, a 0 would be an alarm for nothing.
            self._handshake = self._gauge(
                "fairlead_self_handshake_verified",
                "1 if the last handshake with itself, as the API server makes one, was verified.",
            )
        self._handshake.set(verified)

    def connection_ended(self, reason: Reason) -> None:
        """Count one connection that was closed for a limit's sake."""
        self._connections_ended.labels(reason).inc()

    def watch_connections(self, count: Callable[[], int]) -> None:
        """Read the number of connections from `count` at each scrape, on another thread."""
        self._connections.set_function(count)

    def watch_in_flight(self, count: Callable[[], int]) -> None:
        """Read the requests in flight from `count` at each scrape, on another thread."""
        self._in_flight.set_function(count)

    def watch_cache(self, resource: str, age: Callable[[], float]) -> None:
        """Read a cache's age in seconds from `age` at each scrape, on another thread."""
        self._cache_age.labels(resource).set_function(age)

    def _matched(self, policy: str, now: float) -> None:
        child = self._match_children.get(policy)
        if child is None:
            child = self._match_children[policy] = self._last_match.labels(policy)
        child.set(now)

    def _count_request(self, result: str, code: int) -> None:
        child = self._request_children.get((result, code))
        if child is None:
            child = self._requests.labels(result, str(code))
            self._request_children[result, code] = child
        child.inc()

    def _gauge(self, name: str, documentation: str, *labels: str) -> Gauge:
        return Gauge(name, documentation, labels, registry=self.registry)
