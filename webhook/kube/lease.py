"""A Lease of coordination.k8s.io/v1, and leader election as a pure state machine over it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from webhook.times import to_microsecond

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

Step = Literal["create", "write", "wait"]


class Lease(NamedTuple):
    """A Lease as stored; client-go's electors read and write the same fields.

    Its times are informative only, because clocks differ between machines.
    """

    version: str
    """The resourceVersion, which changes with every renewal."""
    holder: str
    """The identity of the holder; empty if the Lease is released."""
    duration: float
    """Seconds for which the holder's last renewal is valid; 0.0 if the field is absent."""
    transitions: int
    """The number of changes of holder."""
    acquired: str
    """The time when the holder acquired it, RFC 3339; empty if the field is absent."""


def parse_lease(raw: Mapping[str, Any]) -> Lease:
    """Parse the Lease in the API server's answer."""
    spec = raw.get("spec") or {}
    return Lease(
        version=raw["metadata"]["resourceVersion"],
        holder=spec.get("holderIdentity") or "",
        duration=float(spec.get("leaseDurationSeconds") or 0),
        transitions=spec.get("leaseTransitions") or 0,
        acquired=spec.get("acquireTime") or "",
    )


def lease_spec(before: Lease | None, holder: str, duration: float, now: datetime) -> dict[str, Any]:
    """Return the spec with which `holder` acquires or renews the Lease. `now` is in UTC.

    A new holder counts as a transition, except the first one, as in client-go.
    """
    written = to_microsecond(now)
    same = before is not None and before.holder == holder
    transitions = 0 if before is None else before.transitions + (not same)
    return {
        "holderIdentity": holder,
        # The API server accepts only whole seconds above 0.
        "leaseDurationSeconds": math.ceil(duration),
        "acquireTime": (before.acquired if before and same else "") or written,
        "renewTime": written,
        "leaseTransitions": transitions,
    }


def released(before: Lease, now: datetime) -> dict[str, Any]:
    """Return the spec with which the holder of `before` releases the Lease."""
    return lease_spec(before, before.holder, 1, now) | {"holderIdentity": ""}


@dataclass(frozen=True, slots=True)
class Terms:
    """The durations of leader election, in seconds; the defaults of kube-controller-manager.

    Raises ValueError if they are not in increasing order, which would allow two leaders.
    """

    lease_duration: float = 15.0
    """An elector acquires the Lease after it has observed no change for this long."""
    renew_deadline: float = 10.0
    """The holder stops writing this long after it sent its last renewal. The rest of the lease
    duration covers calls in progress and clocks with different speeds."""
    retry_period: float = 2.0
    """The interval between renewals or reads of the Lease."""

    def __post_init__(self) -> None:
        if not 0 < self.retry_period < self.renew_deadline < self.lease_duration:
            raise ValueError(
                f"retry period {self.retry_period:g} s, renew deadline {self.renew_deadline:g} s,"
                f" lease duration {self.lease_duration:g} s: each must be longer than the one"
                " before it, and above 0"
            )


@dataclass(frozen=True, slots=True)
class LeaseState:
    """One elector's view of the Lease. Times are seconds on its own monotonic clock.

    Why two electors never write at the same time: a holder measures from before it sent the
    renewal, all others from after they observed it, and a new holder replaces exactly the version
    that it observed. So a new holder starts later than `lease_duration` after the old one sent its
    last renewal, and the old one stops `renew_deadline` after that. A renewal without an answer
    does not count.
    """

    identity: str
    terms: Terms
    lease: Lease | None = None
    """The Lease as last observed."""
    gone: bool = True
    """True if it was absent when last read, or was never read."""
    since: float = float("-inf")
    """When this version of it, or its absence, was first observed."""
    renewed: float | None = None
    """When the last successful renewal was sent; None without one in this tenure."""

    def may_write(self, now: float) -> bool:
        """Return True while no other elector can hold the Lease."""
        return now < self.writes_until

    @property
    def writes_until(self) -> float:
        """The time at which `may_write` ends unless the Lease is renewed."""
        return float("-inf") if self.renewed is None else self.renewed + self.terms.renew_deadline

    def saw(self, lease: Lease | None, at: float) -> LeaseState:
        """Return the state after reading the Lease (None: absent) at time `at`."""
        if lease is None:
            # Its holder may have renewed it just before the deletion.
            return self if self.gone else replace(self, gone=True, since=at)
        if self.lease is not None and not self.gone and lease.version == self.lease.version:
            return self
        renewed = self.renewed if lease.holder == self.identity else None
        return replace(self, lease=lease, gone=False, since=at, renewed=renewed)

    def wrote(self, lease: Lease, sent: float, at: float) -> LeaseState:
        """Return the state after a write that was sent at `sent` and answered at `at`."""
        return replace(self, lease=lease, gone=False, since=at, renewed=sent)

    def resigned(self) -> LeaseState:
        """Return the state after this elector stops writing."""
        return replace(self, renewed=None)

    def step(self, now: float) -> Step:
        """Return the next step, for a Lease that was just read."""
        if self._is_held_by_other(now):
            return "wait"
        return "create" if self.gone else "write"

    def _is_held_by_other(self, now: float) -> bool:
        """Return True if another elector holds the Lease, or may hold it."""
        if self.lease is None or self.lease.holder in {"", self.identity}:
            return False
        # The duration that the holder itself has written.
        duration = self.lease.duration or self.terms.lease_duration
        if self.gone:
            # A holder that leads creates it again at once. It was deleted because none does: the
            # duration that a stranger wrote does not outlive its Lease.
            duration = min(duration, self.terms.lease_duration)
        return now < self.since + duration
