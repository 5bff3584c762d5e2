"""The metrics that Prometheus scrapes. No label ever names a pod, so their number is bounded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, get_args

from prometheus_client import Counter, Gauge, Histogram

from webhook import names
from webhook.server.connection_limiter import Reason
from webhook.server.notices import Outcome
from webhook.server.policy_metrics import PolicyMetrics

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

# Seconds: a decision takes a fraction of a millisecond, one that asks the API server much more.
BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0)


class Metrics(PolicyMetrics):
    """Every metric of the serving webhook.

    Observing is meant for the event loop's thread. The series of labels seen before are looked up
    in plain dictionaries, for prometheus-client validates labels anew at every look-up. `clock` is
    the wall clock, in seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)
        self._requests = Counter(
            "fairlead_admission_requests",
            "Admission requests answered, by result and HTTP status code.",
            ["result", "code"],
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
            " many), large (too much in bodies and answers), unread (its answer was not read),"
            " pipelined (a request before the answer to another), malformed (not HTTP/1.1).",
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
        self._events = Counter(
            "fairlead_events",
            "Events on workloads: written, repeated within the hour, dropped (too many) or failed.",
            ["outcome"],
            registry=self.registry,
        )
        self._cache_age = self._gauge(
            names.METRIC_CACHE_AGE,
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
        for outcome in ("loaded", "refused"):
            # A series that starts at its first event hides that event from rate().
            self._certificates.labels(outcome)
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

    def warned_of_workload(self, warnings: int) -> None:
        """Count so many warnings that were given on one workload."""
        self._workload_warnings.inc(warnings)

    def event_came_to(self, outcome: Outcome) -> None:
        """Count one Event that was to be written on a workload, by what became of it."""
        self._events.labels(outcome).inc()

    def engine_failed(self) -> None:
        """Count one decision that ended in an exception."""
        self._engine_errors.inc()

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

    def _count_request(self, result: str, code: int) -> None:
        child = self._request_children.get((result, code))
        if child is None:
            child = self._requests.labels(result, str(code))
            self._request_children[result, code] = child
        child.inc()
