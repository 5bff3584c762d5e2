"""What is read of a pod, who takes part in it, and what becomes of it, before it is written down.

Named tuples, for they are made at every admission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook.policy.exceptions import NOTHING, SetAside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.admission.arrival import Arrival
    from webhook.admission.decision import Audited, Result
    from webhook.identity import Identity
    from webhook.placement.bundle import Bundle
    from webhook.placement.merge import Merged
    from webhook.placement.pod import PodPlacement
    from webhook.placement.trace import Entry


class ReceivedPod(NamedTuple):
    """A pod of a run as it came, and what is read of it whatever the policies are.

    `keeps` is why defaults and overrides leave it alone; empty if they do not. `held`: whether
    requirements are held against it; they are against every pod that does not keep its placement.
    """

    arrival: Arrival
    own: PodPlacement
    identity: Identity
    keeps: str
    held: bool = True


class Part(NamedTuple):
    """The policies that match a pod and take part, by position, and what exceptions took away."""

    positions: tuple[int, ...]
    aside: SetAside = NOTHING


NO_POLICIES = Part(())


class Evaluation(NamedTuple):
    """What becomes of a pod of a run.

    result:    as in Decision, and so are reason, audited and aside
    placement: the pod's placement as it will be, but for our own annotation
    bundle:    of the enforced policies that took part; None if the pod is left alone
    merged:    None if the bundle did not come to meet the pod
    """

    result: Result
    placement: PodPlacement
    reason: str = ""
    bundle: Bundle | None = None
    merged: Merged | None = None
    audited: Audited | None = None
    aside: SetAside = NOTHING

    @property
    def allowed(self) -> bool:
        """Whether the pod is admitted."""
        return self.result != "rejected"

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the enforced policies that took part, in their order."""
        return self.bundle.policies if self.bundle else ()

    @property
    def trace(self) -> Sequence[Entry]:
        """For every field who set it, who lost, and why."""
        return self.merged.trace if self.merged else ()
