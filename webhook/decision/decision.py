"""The engine's decision about one pod, and a pod of a run as received.

Those that every admission creates are named tuples: a frozen dataclass takes three times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from webhook.placement.split import Replica
from webhook.placement.trace import WITHOUT_EFFECT
from webhook.policy.exceptions import NOTHING, SetAside

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.decision.arrival import Arrival
    from webhook.identity import Identity
    from webhook.placement.patch import Operation
    from webhook.placement.pod import PodPlacement
    from webhook.placement.trace import Entry

Result: TypeAlias = Literal[
    "placed", "unchanged", "left-alone", "rejected", "not-a-run", "not-sent"
]


@dataclass(frozen=True, slots=True)
class Audited:
    """The result if the policies under Audit that match were enforced too.

    `patch` and `trace` are complete, not differences from the enforced result.
    """

    policies: tuple[str, ...]
    patch: Sequence[Operation] = ()
    rejections: Sequence[str] = ()
    differs: bool = False
    trace: Sequence[Entry] = ()


class Decision(NamedTuple):
    """The answer for one pod.

    result:    placed (the patch changes more than Fairlead's own annotation), unchanged,
               left-alone (a pod of a run that keeps its placement), rejected, not-a-run (a pod
               without a run), not-sent (offline only: the API server would not call the webhook)
    reason:    why the pod is left alone or not sent, or the message of the rejection
    patch:     JSON Patch operations on the pod; empty if rejected
    warnings:  for the kubectl user, each under 120 characters
    policies:  names of the enforced policies that apply, in their order
    placement: the pod's placement with the patch applied; None if the pod belongs to no run
    trace:     for every field: who set it, who lost, and why
    audited:   the effect of the policies under Audit; None if none matched
    set_aside: the policies that match but are set aside, by exception
    left_out:  by policy the labels that are not set, because the owner's selector is not read
    """

    result: Result
    reason: str = ""
    patch: Sequence[Operation] = ()
    warnings: Sequence[str] = ()
    policies: tuple[str, ...] = ()
    identity: Identity | None = None
    placement: PodPlacement | None = None
    trace: Sequence[Entry] = ()
    audited: Audited | None = None
    set_aside: SetAside = NOTHING
    left_out: Mapping[str, Sequence[str]] = MappingProxyType({})

    @property
    def allowed(self) -> bool:
        """Whether the pod is admitted."""
        return self.result != "rejected"

    @property
    def unfulfilled(self) -> dict[str, tuple[str, ...]]:
        """For each policy that applies, the fields in which a setting of it has no effect."""
        found: dict[str, dict[str, None]] = {}
        for each in self.trace:
            if each.policy and each.outcome in WITHOUT_EFFECT:
                found.setdefault(each.policy, {})[each.field] = None
        return {policy: tuple(fields) for policy, fields in found.items()}

    @property
    def rejected_by(self) -> tuple[str, ...]:
        """Names of the policies whose settings reject the pod; empty if there are none."""
        if self.allowed:
            return ()
        found = (each.policy for each in self.trace if each.outcome == "rejected")
        return tuple(dict.fromkeys(name for name in found if name))


class ReceivedPod(NamedTuple):
    """A pod of a run as received, with the parts that do not depend on policies.

    `keeps` is why defaults and overrides skip the pod; empty if they apply. `held` is True if
    requirements apply. They apply to every pod that does not keep its placement.
    """

    arrival: Arrival
    own: PodPlacement
    identity: Identity
    keeps: str
    held: bool = True

    @property
    def replica(self) -> Replica:
        """What splits and fallbacks depend on."""
        identity = self.identity
        return Replica(identity.replica_index, identity.replicas, self.arrival.history)
