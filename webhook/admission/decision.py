"""What the engine answers for one pod."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from webhook.placement.trace import WITHOUT_EFFECT
from webhook.policy.exceptions import NOTHING, SetAside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.identity import Identity
    from webhook.placement.patch import Operation
    from webhook.placement.pod import PodPlacement
    from webhook.placement.trace import Entry

Result: TypeAlias = Literal[
    "placed", "unchanged", "left-alone", "rejected", "not-a-run", "not-sent"
]


@dataclass(frozen=True, slots=True)
class Audited:
    """What would be if policies under Audit here were enforced too.

    `patch` and `trace` are the whole ones.
    """

    policies: tuple[str, ...]
    patch: Sequence[Operation] = ()
    rejections: Sequence[str] = ()
    differs: bool = False
    trace: Sequence[Entry] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer for one pod.

    result:    placed (the patch changes more than our own annotation), unchanged, left-alone (a
               pod of a run that keeps its placement), rejected, not-a-run (none of our business),
               not-sent (foreseen only: the API server would not ask the webhook about it)
    reason:    why it was left alone or is not sent, or the message of the rejection
    patch:     JSON Patch operations on the pod; empty if rejected
    warnings:  for the person at kubectl, each under 120 characters
    policies:  names of the enforced policies that took part, in their order
    placement: the pod's placement with the patch applied; None if it is not a run's pod
    trace:     for every field who set it, who lost, and why
    audited:   what policies under Audit would have changed; None if none matched
    set_aside: the policies that matched and took no part, by the exceptions that say so
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

    @property
    def allowed(self) -> bool:
        """Whether the pod is admitted."""
        return self.result != "rejected"

    @property
    def unfulfilled(self) -> dict[str, tuple[str, ...]]:
        """By policy that took part, the fields in which a setting of it has no effect."""
        found: dict[str, dict[str, None]] = {}
        for each in self.trace:
            if each.policy and each.outcome in WITHOUT_EFFECT:
                found.setdefault(each.policy, {})[each.field] = None
        return {policy: tuple(fields) for policy, fields in found.items()}

    @property
    def rejected_by(self) -> tuple[str, ...]:
        """Names of the policies for whose settings the pod is rejected; empty if for none."""
        if self.allowed:
            return ()
        found = (each.policy for each in self.trace if each.outcome == "rejected")
        return tuple(dict.fromkeys(name for name in found if name))
