"""The engine's decision about one pod, and a pod of a run as received.

Those that every admission creates are named tuples: a frozen dataclass takes three times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook.decision.arrival import ordinal_of
from webhook.placement.split import Replica
from webhook.placement.trace import EFFECTIVE, WITHOUT_EFFECT
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
# In place of a policy's name: all policies under Audit that match a pod, together.
TOGETHER: Final = "*"


# What enforcing policies under Audit would do to a pod. same: nothing, the rejected pod of today
# included. not-judged: it is unknown, as with more policies than are evaluated alone.
Outcome: TypeAlias = Literal["same", "changes", "rejects", "not-judged"]


_WORSE: Final[Mapping[Outcome, int]] = {"not-judged": 0, "same": 0, "changes": 1, "rejects": 2}


class Effect(NamedTuple):
    """What becomes of a pod if policies under Audit are enforced on top of the enforced ones.

    `rejections` and `trace` are complete, not differences from today's. `unknown` is why it is not
    judged. `nodes`: of a DaemonSet, those for which its pods are rejected.
    """

    outcome: Outcome
    rejections: Sequence[str] = ()
    trace: Sequence[Entry] = ()
    unknown: str = ""
    nodes: Sequence[str] = ()

    def new_entries(self, decision: Decision) -> list[Entry]:
        """Return the entries that the trace of today's decision does not have."""
        return [entry for entry in self.trace if entry not in decision.trace]

    def changed_fields(self, decision: Decision) -> Sequence[str]:
        """Return the fields that policies would set or remove, and do not today."""
        new = (entry for entry in self.new_entries(decision) if entry.outcome in EFFECTIVE)
        return tuple(dict.fromkeys(entry.field for entry in new))


@dataclass(frozen=True, slots=True)
class Audited:
    """The effects of the policies under Audit that match a pod.

    alone:    of each policy by itself, in the order of policies
    together: of all of them
    patch:    of all of them together, complete
    """

    alone: Mapping[str, Effect]
    together: Effect
    patch: Sequence[Operation] = ()

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the policies, in their order."""
        return tuple(self.alone)

    @property
    def effects(self) -> Mapping[str, Effect]:
        """The effect of each policy, and of TOGETHER if more than one policy matches."""
        return {**self.alone, TOGETHER: self.together} if len(self.alone) > 1 else self.alone

    @property
    def notable(self) -> Mapping[str, Effect]:
        """The effects that a reader needs: TOGETHER only if together they do more than alone."""
        alone = max((_WORSE[effect.outcome] for effect in self.alone.values()), default=0)
        return self.effects if _WORSE[self.together.outcome] > alone else self.alone

    @property
    def differs(self) -> bool:
        """Whether a policy alone, or all of them together, change or reject the pod.

        So does one with a trace that is not judged: which of both is unknown.
        """
        return any(
            effect.outcome in ("changes", "rejects")
            or (effect.outcome == "not-judged" and effect.trace)
            for effect in self.effects.values()
        )

    @property
    def rejections(self) -> tuple[str, ...]:
        """The messages with which they would reject the pod, each once."""
        return tuple(
            dict.fromkeys(text for effect in self.effects.values() for text in effect.rejections)
        )


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
        fields_by_policy: dict[str, dict[str, None]] = {}
        for entry in self.trace:
            if entry.policy and entry.outcome in WITHOUT_EFFECT:
                fields_by_policy.setdefault(entry.policy, {})[entry.field] = None
        return {policy: tuple(fields) for policy, fields in fields_by_policy.items()}

    @property
    def rejected_by(self) -> tuple[str, ...]:
        """Names of the policies whose settings reject the pod; empty if there are none."""
        if self.allowed:
            return ()
        policy_names = (entry.policy for entry in self.trace if entry.outcome == "rejected")
        return tuple(dict.fromkeys(name for name in policy_names if name))


class ReceivedPod(NamedTuple):
    """A pod of a run as received, with the parts that do not depend on policies.

    `keeps` is why defaults and overrides skip the pod; empty if they apply. `held` is True if
    requirements apply. They apply to every pod that does not keep its placement.
    """

    arrival: Arrival
    original: PodPlacement
    identity: Identity
    keeps: str
    held: bool = True

    @property
    def replica(self) -> Replica:
        """What splits, fallbacks, and values from the namespace depend on.

        A StatefulSet's pod without an index has its ordinal as position, if it is marked itself: a
        notebook is no replica of a role.
        """
        identity, arrival = self.identity, self.arrival
        position = identity.replica_index
        if position is None and identity.marked_itself:
            position = ordinal_of(arrival, self.original.labels)
        return Replica(position, identity.replicas, arrival.history, arrival.namespace_labels)
