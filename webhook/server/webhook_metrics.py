"""The webhook's metrics."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, get_args

from prometheus_client import Counter, Gauge, Histogram

from webhook import metric_names
from webhook.server.connection_limiter import Reason
from webhook.server.notices import Outcome
from webhook.server.policy_metrics import PolicyMetrics

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

# Seconds: a decision takes a fraction of a millisecond, with an API call much more.
BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0)


class Metrics(PolicyMetrics):
    """Every metric of the serving webhook.

    Methods are called on the event loop's thread. Known series are looked up in dictionaries,
    because prometheus-client validates labels at every look-up. `clock` is the wall clock, in
    seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)
        self._requests = Counter(
            metric_names.ADMISSION_REQUESTS,
            "Admission requests answered, by result and HTTP status code.",
            ["result", "code"],
            registry=self.registry,
        )
        self._duration = Histogram(
            metric_names.ADMISSION_DURATION,
            "Time from a request's first byte in the app to its answer.",
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._in_flight = self._gauge(
            metric_names.ADMISSION_IN_FLIGHT, "Requests taken and not answered yet."
        )
        self._connections = self._gauge(
            metric_names.CONNECTIONS, "Connections to the HTTPS port, handshakes included."
        )
        self._connections_ended = Counter(
            metric_names.CONNECTIONS_ENDED,
            "Connections that the webhook closed: slow, late (no handshake in time), crowded (too"
            " many), large (too much in bodies and answers), unread (its answer was not read),"
            " pipelined (a request before the answer to another), malformed (not HTTP/1.1).",
            ["reason"],
            registry=self.registry,
        )
        self._engine_errors = Counter(
            metric_names.ENGINE_ERRORS,
            "Decisions that ended in an exception: each one is a bug.",
            registry=self.registry,
        )
        self._workload_warnings = Counter(
            metric_names.WORKLOAD_WARNINGS,
            "Warnings returned to the authors of workloads, about their future pods.",
            registry=self.registry,
        )
        self._events = Counter(
            metric_names.EVENTS,
            "Events on workloads: written, repeated within the hour, dropped (too many) or failed.",
            ["outcome"],
            registry=self.registry,
        )
        self._cache_age = self._gauge(
            metric_names.CACHE_AGE,
            "Time since the last message from the API server to a cache.",
            "resource",
        )
        self._certificate = self._gauge(
            metric_names.CERTIFICATE_EXPIRY, "When the serving certificate expires."
        )
        self._certificates = Counter(
            metric_names.CERTIFICATE_RELOADS,
            "Serving certificates read again: loaded, or refused and the previous one kept.",
            ["outcome"],
            registry=self.registry,
        )
        self._handshake: Gauge | None = None
        self._request_children: dict[tuple[str, int], Counter] = {}
        for outcome in ("loaded", "refused"):
            # A counter that appears with its first event hides that event from rate().
            self._certificates.labels(outcome)
        for event in get_args(Outcome):
            self._events.labels(event)
        for reason in get_args(Reason):
            self._connections_ended.labels(reason)

    def request_answered(self, result: str, code: int, seconds: float | None) -> None:
        """Count one admission request with its HTTP status code and its duration.

        Without seconds the request was not about a pod, and does not enter the histogram.
        """
        self._count_request(result, code)
        if seconds is not None:
            self._duration.observe(seconds)

    def request_shed(self) -> None:
        """Count one request that got a 503 because too many were in flight."""
        self._count_request("overloaded", 503)

    def warned_of_workload(self, warnings: int) -> None:
        """Count the warnings that one workload received."""
        self._workload_warnings.inc(warnings)

    def event_came_to(self, outcome: Outcome) -> None:
        """Count one Event on a workload, by outcome."""
        self._events.labels(outcome).inc()

    def engine_failed(self) -> None:
        """Count one decision that raised an exception."""
        self._engine_errors.inc()

    def certificate_served(self, not_after: datetime) -> None:
        """Record the expiry of the new certificate in use."""
        self._certificates.labels("loaded").inc()
        self._certificate.set(not_after.timestamp())

    def certificate_refused(self) -> None:
        """Count one certificate that was rejected."""
        self._certificates.labels("refused").inc()

    def handshake_made(self, verified: bool) -> None:
        """Record whether the last self-handshake was verified."""
        if self._handshake is None:
            # Created here: without any handshake, a value of 0 would be a false alarm.
            self._handshake = self._gauge(
                metric_names.SELF_HANDSHAKE,
                "1 if the last handshake with itself, as the API server makes one, was verified.",
            )
        self._handshake.set(verified)

    def connection_ended(self, reason: Reason) -> None:
        """Count one connection that was closed because of a limit."""
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
