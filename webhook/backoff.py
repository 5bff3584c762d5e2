"""Exponential backoff: the formula, and every delay that uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Delays:
    """Delays in seconds: `first` after one failure, doubling with each further one to `longest`."""

    first: float
    longest: float

    def after(self, failures: int) -> float:
        """Return the seconds to wait after this many failures in a row, the first being 1."""
        # Capped: a float overflows after a thousand doublings.
        return min(self.longest, self.first * 2.0 ** min(failures - 1, 32))


# A replica that failed starts again. As in Kubernetes' Job controller and kubelet.
RESTART_DELAYS: Final = Delays(first=10.0, longest=360.0)
# A list or a watch failed. As client-go's reflector.
WATCH_DELAYS: Final = Delays(first=0.8, longest=30.0)
# The same for policies: their definitions often come a moment after the webhook.
POLICY_WATCH_DELAYS: Final = Delays(first=0.8, longest=5.0)
# A reconcile failed. client-go's cap of 1,000 s leaves an object alone for a quarter of an hour.
RECONCILE_DELAYS: Final = Delays(first=0.005, longest=300.0)
# The API server refused to create an object. No event reports that a quota was raised.
CREATION_DELAYS: Final = Delays(first=1.0, longest=60.0)
# A queued run whose pods could not be created as Kueue admitted it gave its quota back.
QUEUE_AGAIN_DELAYS: Final = Delays(first=15.0, longest=600.0)
# A run that starts all at once gave its nodes back.
GANG_AGAIN_DELAYS: Final = Delays(first=60.0, longest=600.0)
# Another writer undoes a certificate or a bundle each time it is written.
REWRITE_DELAYS: Final = Delays(first=1.0, longest=60.0)
# A write of a certificate met another writer's.
CONFLICT_DELAYS: Final = Delays(first=0.1, longest=30.0)
# A failure of a run's replica is not charged for so long, while a lost node may be its cause:
# kube-controller-manager calls a silent node Unknown after 50 s (--node-monitor-grace-period).
INCIDENT_WINDOW: Final = 90.0
# Pods of a Node that was deleted are replaced after so long, if it has not come back. PodGC of
# kube-controller-manager takes them after 40 to 60 s (pkg/controller/podgc).
GONE_AFTER: Final = 10.0
