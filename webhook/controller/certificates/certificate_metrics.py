"""Metrics of certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import Counter, Gauge

from certs.rotation import phase
from webhook import metric_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

    from certs.pair import Pair
    from certs.rotation import Observed

PHASES: Final = ("absent", "staged", "published", "retiring", "steady")
OBJECTS: Final = ("authority", "serving", "bundle")
ERRORS: Final = ("conflict", "forbidden", "unreachable", "refused", "undone")


class CertificateMetrics:
    """The keeper's metrics. A process that is not the leader reports no state."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._expiry = Gauge(
            metric_names.CERTIFICATE_EXPIRY,
            "Unix time at which a certificate expires: authority (signs now), staged (signs next) "
            "or leaf.",
            ["certificate"],
            registry=registry,
        )
        self._phase = Gauge(
            metric_names.CERTIFICATE_PHASE,
            "1 for the current phase of the authority's rotation, 0 for all other phases.",
            ["phase"],
            registry=registry,
        )
        self._behind = Gauge(
            metric_names.CERTIFICATE_REPLICAS_BEHIND,
            "Replicas in service that do not present the stored leaf, or cannot be reached.",
            registry=registry,
        )
        self._writes = Counter(
            metric_names.CERTIFICATE_WRITES,
            "Writes of the authority's Secret, the serving Secret and the CA bundles.",
            ["object"],
            registry=registry,
        )
        self._errors = Counter(
            metric_names.CERTIFICATE_ERRORS,
            "Failed checks of certificates: `conflict` (a client wrote first), `forbidden` (no "
            "right), `unreachable` (no answer, or overload), `undone` (a client reverts the "
            "writes) or `refused` (other errors).",
            ["reason"],
            registry=registry,
        )
        self._failing = Gauge(
            metric_names.CERTIFICATE_FAILING,
            "Seconds for which certificates could not be kept, or another client has reverted the "
            "writes; 0 while nothing is wrong, and if another process leads.",
            registry=registry,
        )
        # A counter that appears with its first event hides that event from rate().
        for kept in OBJECTS:
            self._writes.labels(kept)
        for reason in ERRORS:
            self._errors.labels(reason)

    def read_failing(self, age: Callable[[], float]) -> None:
        """Read the seconds of failure from `age` at each scrape, on another thread."""
        self._failing.set_function(age)

    def saw(self, observed: Observed) -> None:
        """Update the metrics from the observed state."""
        authority = observed.authority
        self._expires("authority", authority.signing if authority else None)
        self._expires("staged", authority.staged if authority else None)
        self._expires("leaf", observed.serving.leaf if observed.serving else None)
        now_in = phase(authority)
        for phase_name in PHASES:
            self._phase.labels(phase_name).set(phase_name == now_in)
        kept = observed.serving.leaf.check().serial_number if observed.serving else None
        self._behind.set(sum(serial is None or serial != kept for serial in observed.replicas))

    def unknown(self) -> None:
        """Clear the state, which only the leader reports."""
        self._expiry.clear()
        self._phase.clear()
        self._behind.set(0)

    def wrote(self, kept: str) -> None:
        """Count a write; one of OBJECTS."""
        self._writes.labels(kept).inc()

    def failed(self, reason: str) -> None:
        """Count a failed check; one of ERRORS."""
        self._errors.labels(reason).inc()

    def _expires(self, name: str, pair: Pair | None) -> None:
        if pair:
            self._expiry.labels(name).set(pair.check().not_valid_after_utc.timestamp())
        else:
            self._expiry.remove(name)
