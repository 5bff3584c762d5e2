"""Metrics by policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import Counter, Gauge

from webhook import metric_names
from webhook.server.health import Exposition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from datetime import datetime

NO_POLICY: Final = ""


class PolicyMetrics(Exposition):
    """The metrics of policies. `clock` is the wall clock, in seconds since 1970."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._decisions = Counter(
            metric_names.DECISIONS,
            "Decisions by result, one for each policy that applied; policy is empty if none did.",
            ["result", "policy"],
            registry=self.registry,
        )
        self._rejections = Counter(
            metric_names.POLICY_REJECTIONS,
            "Pods rejected because of the policy.",
            ["policy"],
            registry=self.registry,
        )
        self._last_match = self._gauge(
            metric_names.POLICY_LAST_MATCH,
            "Unix time at which the policy last matched a pod, also under Audit.",
            "policy",
        )
        self._audited = Counter(
            metric_names.AUDITED_DECISIONS,
            "Decisions of policies under Audit on pods: same (no change), changes or rejects.",
            ["policy", "namespace", "outcome"],
            registry=self.registry,
        )
        self._exceptions = Counter(
            metric_names.EXCEPTIONS_APPLIED,
            "Pods to which a matching policy did not apply because of an exception.",
            ["exception", "policy"],
            registry=self.registry,
        )
        self._policy_writes = Counter(
            metric_names.POLICY_WRITES,
            "Writes of policies, classes, exceptions and sources by outcome: allowed, warned, "
            "refused, or unjudged (failed; the API server applies the failurePolicy).",
            ["outcome"],
            registry=self.registry,
        )
        self._unplaceable = Counter(
            metric_names.UNPLACEABLE,
            "Pods that were admitted although no node could run them at that moment (--nodes).",
            registry=self.registry,
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
        self._reloads = Counter(
            metric_names.POLICY_RELOADS,
            "Reloads of the policy set: loaded, or refused (the last good one stays).",
            ["outcome"],
            registry=self.registry,
        )
        self._decision_children: dict[tuple[str, str], Counter] = {}
        self._match_children: dict[str, Gauge] = {}
        self._rejecting: set[str] = set()
        self._audited_series: set[tuple[str, str, str]] = set()
        self._excepted_series: set[tuple[str, str]] = set()
        for outcome in ("loaded", "refused"):
            # A counter that appears with its first event hides that event from rate().
            self._reloads.labels(outcome)
        for outcome in ("allowed", "warned", "refused", "unjudged"):
            self._policy_writes.labels(outcome)

    def decided(self, result: str, policies: Collection[str]) -> None:
        """Count one decision for each policy that applied."""
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
        """Count one rejected pod for each policy that rejected it."""
        for policy in policies:
            self._rejecting.add(policy)
            self._rejections.labels(policy).inc()

    def audited(self, policy: str, namespace: str, outcome: str) -> None:
        """Count one pod that matched a policy under Audit in a namespace, by outcome."""
        self._audited_series.add((policy, namespace, outcome))
        self._audited.labels(policy, namespace, outcome).inc()

    def excepted(self, exception: str, policy: str) -> None:
        """Count one pod for which an exception set aside a policy."""
        self._excepted_series.add((exception, policy))
        self._exceptions.labels(exception, policy).inc()

    def policy_write_judged(self, outcome: str) -> None:
        """Count one write of a policy, class or exception: see policy_handler.Outcome."""
        self._policy_writes.labels(outcome).inc()

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
        self._reloads.labels("loaded").inc()
        self._policy_set.clear()
        self._policy_set.labels(digest).set(1)
        self._policy_set_loaded.set(now.timestamp())
        self._policy_set_errors.set(faults)
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
        """Count one policy set that was rejected."""
        self._reloads.labels("refused").inc()

    def _matched(self, policy: str, now: float) -> None:
        child = self._match_children.get(policy)
        if child is None:
            child = self._match_children[policy] = self._last_match.labels(policy)
        child.set(now)

    def _gauge(self, name: str, documentation: str, *labels: str) -> Gauge:
        return Gauge(name, documentation, labels, registry=self.registry)
