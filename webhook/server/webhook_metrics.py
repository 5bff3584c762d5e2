"""The webhook's metrics."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

from prometheus_client import Counter, Gauge, Histogram

from webhook import metric_names
from webhook.decision.decision import TOGETHER
from webhook.server.connection_limiter import Reason
from webhook.server.health import Exposition
from webhook.server.notices import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

# Seconds: a decision takes a fraction of a millisecond, with an API call much more.
BUCKETS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0)
NO_POLICY: Final = ""
# All teams' policies, whose names are NAMESPACE/NAME.
TEAMS: Final = "*/*"
_LOADS: Final = ("loaded", "refused")


class _Description(NamedTuple):
    """A counter, or a gauge, and its labels.

    `always`: values of its one label that have a series from the start. A counter that appears with
    its first event hides that event from rate().
    """

    kind: type[Counter | Gauge]
    documentation: str
    labels: tuple[str, ...] = ()
    always: tuple[str, ...] = ()


_METRICS: Final = {
    metric_names.DECISIONS: _Description(
        Counter,
        "Decisions by result, one for each policy that applied; policy is empty if none did.",
        ("result", "policy"),
    ),
    metric_names.POLICY_REJECTIONS: _Description(
        Counter, "Pods rejected because of the policy.", ("policy",)
    ),
    metric_names.LABELS_LEFT_OUT: _Description(
        Counter,
        "Pods without a label of the policy, because the selector of their owner was not read.",
        ("policy",),
    ),
    metric_names.AUDITED_DECISIONS: _Description(
        Counter,
        "Effects that each policy under Audit alone would have: same, changes, rejects (by the "
        "webhook or the API server), or not-judged. Policy *: all together, if several match.",
        ("policy", "namespace", "outcome"),
    ),
    metric_names.EXCEPTIONS_APPLIED: _Description(
        Counter,
        "Pods to which a matching policy did not apply because of an exception.",
        ("exception", "policy"),
    ),
    metric_names.POLICY_WRITES: _Description(
        Counter,
        "Writes of policies, classes, exceptions and sources: `allowed`, `warned`, `refused`, or "
        "`unjudged` (failed; the API server applies the failurePolicy).",
        ("outcome",),
        ("allowed", "warned", "refused", "unjudged"),
    ),
    metric_names.UNPLACEABLE: _Description(
        Counter, "Pods that were admitted although no node could run them at that moment (--nodes)."
    ),
    metric_names.POLICY_RELOADS: _Description(
        Counter,
        "Reloads of the policy set: `loaded`, or `refused` (the last good one stays).",
        ("outcome",),
        _LOADS,
    ),
    metric_names.REFUSED: _Description(
        Gauge,
        "1 while the newest policies, certificate or client authorities cannot be used: the "
        "previous ones stay, if there are any.",
        ("what",),
    ),
    metric_names.ADMISSION_REQUESTS: _Description(
        Counter, "Admission requests answered, by result and HTTP status code.", ("result", "code")
    ),
    metric_names.CONNECTIONS_ENDED: _Description(
        Counter,
        "Connections closed by the webhook: slow, late (no handshake), crowded (too many), large "
        "(too many bytes), unread (answer not read), pipelined (request before the answer), "
        "malformed (not HTTP/1.1).",
        ("reason",),
        get_args(Reason),
    ),
    metric_names.ENGINE_ERRORS: _Description(
        Counter, "Decisions that ended in an exception: each one is a bug."
    ),
    metric_names.WORKLOAD_WARNINGS: _Description(
        Counter, "Warnings returned to authors of workloads about the pods that these will create."
    ),
    metric_names.EVENTS: _Description(
        Counter,
        "Events on workloads: written, repeated within the hour, dropped (too many) or failed.",
        ("outcome",),
        get_args(Outcome),
    ),
    metric_names.CERTIFICATE_RELOADS: _Description(
        Counter,
        "Reloads of the serving certificate: `loaded`, or `refused` (the previous one stays).",
        ("outcome",),
        _LOADS,
    ),
    metric_names.POLICY_LAST_MATCH: _Description(
        Gauge, "Unix time at which the policy last matched a pod, also under Audit.", ("policy",)
    ),
    metric_names.POLICY_SET: _Description(
        Gauge, "The policy set in force, by its hash; always 1.", ("hash",)
    ),
    metric_names.POLICY_SET_LOADED: _Description(
        Gauge, "Unix time at which the policy set was loaded."
    ),
    metric_names.POLICY_SET_ERRORS: _Description(
        Gauge,
        "Errors of the policy set in force, such as policies that reject every pod;"
        " `fairlead check` lists them. Counted once no newer set is loaded for a second.",
    ),
    metric_names.ADMISSION_IN_FLIGHT: _Description(
        Gauge, "Requests accepted and not answered yet."
    ),
    metric_names.CONNECTIONS: _Description(
        Gauge, "Connections to the HTTPS port, handshakes included."
    ),
    metric_names.CERTIFICATE_EXPIRY: _Description(
        Gauge, "Unix time at which the serving certificate expires."
    ),
    metric_names.SELF_HANDSHAKE: _Description(
        Gauge, "1 if the last handshake with itself, as the API server makes one, was verified."
    ),
}
# Created with their first value: 0 would say that a handshake failed, or that no policy is wrong.
_CREATED_LATER: Final = (metric_names.SELF_HANDSHAKE, metric_names.POLICY_SET_ERRORS)
# Which label of a metric is a policy.
_OF_POLICIES: Final = {
    name: description.labels.index("policy")
    for name, description in _METRICS.items()
    if "policy" in description.labels
}


class Metrics(Exposition):
    """Every metric of the serving webhook.

    Methods are called on the event loop's thread. `clock` is the wall clock, in seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._clock = clock
        self._metrics: dict[str, Any] = {}
        # By name and labels: prometheus-client validates labels at every look-up.
        self._series: dict[tuple[str, ...], Any] = {}
        for name, description in _METRICS.items():
            if name not in _CREATED_LATER:
                self._create(name)
            for label in description.always:
                self.count(name, label, by=0)
        self._duration = Histogram(
            metric_names.ADMISSION_DURATION,
            "Seconds from a request's first byte in the app to its answer.",
            buckets=BUCKETS,
            registry=self.registry,
        )

    def _create(self, name: str) -> None:
        kind, documentation, labels, _ = _METRICS[name]
        self._metrics[name] = kind(name, documentation, labels, registry=self.registry)

    def _of(self, name: str, *labels: str) -> Any:
        series = self._series.get((name, *labels))
        if series is None:
            if name not in self._metrics:
                self._create(name)
            metric = self._metrics[name]
            series = self._series[name, *labels] = metric.labels(*labels) if labels else metric
        return series

    def count(self, name: str, *labels: str, by: int = 1) -> None:
        """Count in the counter's series with these values of its labels.

        Teams' policies are counted together: they write as many as they like.
        """
        at = _OF_POLICIES.get(name)
        if at is not None and "/" in labels[at]:
            labels = (*labels[:at], TEAMS, *labels[at + 1 :])
        self._of(name, *labels).inc(by)

    def read_gauge(self, name: str, value: Callable[[], float], *labels: str) -> None:
        """Read a gauge from `value` at each scrape, on another thread."""
        self._of(name, *labels).set_function(value)

    def decided(self, result: str, policies: Collection[str]) -> None:
        """Count one decision for each policy that applied."""
        now = self._clock()
        shared = {TEAMS if "/" in policy else policy: None for policy in policies}
        for policy in shared or (NO_POLICY,):
            self.count(metric_names.DECISIONS, result, policy)
            if policy != NO_POLICY:
                self._of(metric_names.POLICY_LAST_MATCH, policy).set(now)

    def policies_loaded(
        self,
        digest: str,
        names: Collection[str],
        now: datetime,
        exceptions: Collection[str] = (),
    ) -> None:
        """Record the new policy set in force: its hash, policies and exceptions.

        Counters of deleted policies and exceptions are removed, so that the number of series does
        not grow with every edit.
        """
        self.count(metric_names.POLICY_RELOADS, "loaded")
        self._metrics[metric_names.POLICY_SET].clear()
        self._metrics[metric_names.POLICY_SET].labels(digest).set(1)
        self._of(metric_names.POLICY_SET_LOADED).set(now.timestamp())
        kept = {*names, NO_POLICY, TEAMS, TOGETHER}
        for name, *labels in list(self._series):
            gone = name in _OF_POLICIES and labels[_OF_POLICIES[name]] not in kept
            if gone or (name == metric_names.EXCEPTIONS_APPLIED and labels[0] not in exceptions):
                del self._series[name, *labels]
                self._metrics[name].remove(*labels)
        for name in names:
            # Alerts and panels are on their increase: a series that begins with an event hides it.
            self.count(metric_names.LABELS_LEFT_OUT, name, by=0)
            self.count(metric_names.POLICY_REJECTIONS, name, by=0)

    def policies_checked(self, errors: int) -> None:
        """Record the number of errors of the policy set in force."""
        self._of(metric_names.POLICY_SET_ERRORS).set(errors)

    def request_answered(self, result: str, code: int, seconds: float | None) -> None:
        """Count one admission request with its HTTP status code and its duration.

        Without seconds the request was not about a pod, and does not enter the histogram.
        """
        self.count(metric_names.ADMISSION_REQUESTS, result, str(code))
        if seconds is not None:
            self._duration.observe(seconds)

    def certificate_served(self, not_after: datetime) -> None:
        """Record the expiry of the new certificate in use."""
        self.count(metric_names.CERTIFICATE_RELOADS, "loaded")
        self._of(metric_names.CERTIFICATE_EXPIRY).set(not_after.timestamp())

    def handshake_made(self, verified: bool) -> None:
        """Record whether the last self-handshake was verified."""
        self._of(metric_names.SELF_HANDSHAKE).set(verified)
