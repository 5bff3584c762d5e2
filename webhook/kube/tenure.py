"""Who may lead, told from what was seen of the Lease and when: without waiting, without asking."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from webhook.kube.lease import Lease

Step = Literal["create", "write", "wait"]


@dataclass(frozen=True, slots=True)
class Terms:
    """How long what is good for, in seconds; kube-controller-manager's own defaults.

    Raises ValueError if the times do not follow each other: that would let two lead.
    """

    lease_duration: float = 15.0
    """An elector that has seen no change of the Lease for so long takes it."""
    renew_deadline: float = 10.0
    """The holder writes nothing more when so long has passed since its last renewal began. The rest
    of the lease duration is for its last calls to end, and for clocks that run differently fast."""
    retry_period: float = 2.0
    """How often the Lease is renewed, or looked at."""

    def __post_init__(self) -> None:
        if not 0 < self.retry_period < self.renew_deadline < self.lease_duration:
            raise ValueError(
                f"retry period {self.retry_period:g} s, renew deadline {self.renew_deadline:g} s,"
                f" lease duration {self.lease_duration:g} s: each must be longer than the one"
                " before it, and above 0"
            )


@dataclass(frozen=True, slots=True)
class Tenure:
    """What one elector knows of the Lease. All times are of its own monotonic clock.

    Why never two may write: a holder counts from before it sent the renewal, everybody else from
    after they saw it, and whoever takes the Lease replaces just the version that they saw. So a
    new holder begins later than `lease_duration` after the old one's last renewal was sent, and the
    old one ends `renew_deadline` after that. A renewal whose answer was lost counts for nothing.
    """

    identity: str
    terms: Terms
    lease: Lease | None = None
    """The Lease as last seen."""
    gone: bool = True
    """Whether it was absent when last looked at, or never was looked at."""
    since: float = float("-inf")
    """When this version of it, or its absence, was first seen."""
    renewed: float | None = None
    """When the last renewal that succeeded was sent; None without one in this tenure."""

    def may_write(self, now: float) -> bool:
        """Whether nobody else can hold the Lease."""
        return now < self.writes_until

    @property
    def writes_until(self) -> float:
        """When `may_write` ends unless the Lease is renewed."""
        return float("-inf") if self.renewed is None else self.renewed + self.terms.renew_deadline

    def saw(self, lease: Lease | None, at: float) -> Tenure:
        """The Lease, or None for its absence, came as the answer to a question at `at`."""
        if lease is None:
            # Its holder may have renewed it just before it was deleted.
            return self if self.gone else replace(self, gone=True, since=at)
        if self.lease is not None and not self.gone and lease.version == self.lease.version:
            return self
        renewed = self.renewed if lease.holder == self.identity else None
        return replace(self, lease=lease, gone=False, since=at, renewed=renewed)

    def wrote(self, lease: Lease, sent: float, at: float) -> Tenure:
        """Our taking or renewing, sent at `sent`, was answered at `at` with the Lease as stored."""
        return replace(self, lease=lease, gone=False, since=at, renewed=sent)

    def resigned(self) -> Tenure:
        """We write no more, whatever the Lease says."""
        return replace(self, renewed=None)

    def step(self, now: float) -> Step:
        """What to do about the Lease now, it having just been looked at."""
        if self._taken(now):
            return "wait"
        return "create" if self.gone else "write"

    def _taken(self, now: float) -> bool:
        """Whether somebody else holds the Lease, or may hold it."""
        if self.lease is None or self.lease.holder in {"", self.identity}:
            return False
        # The holder's own word of how long it counts on it.
        return now < self.since + (self.lease.duration or self.terms.lease_duration)
