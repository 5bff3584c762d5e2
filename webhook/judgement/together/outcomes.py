"""What happens to a pod, and what is kept of a policy's own pod from set to set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias
from weakref import WeakKeyDictionary

from webhook.evaluation.plugins import UNREAD
from webhook.evaluation.pod_faults import PodFaults

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    from webhook.evaluation.plugins import PluginInputs
    from webhook.judgement.together.policy_view import Policy
    from webhook.placement.trace import Outcome

REJECTED: Final = "rejected"
LACKS_NODE: Final = "no node"
# The faults of a placement, the gravest first; all others are refusals by the API server.
PLACEMENT_FAULTS: Final = (REJECTED, LACKS_NODE)
Line: TypeAlias = "tuple[str, str, str, Outcome]"


class PodOutcome(NamedTuple):
    """What happens to a pod: what becomes of each setting, and what is wrong with it: refusals by
    the API server, `REJECTED`, `LACKS_NODE`.

    policies: the names of those that take part.
    before_fallbacks: the same of the pod when nothing has happened to it yet.
    """

    policies: frozenset[str]
    lines: frozenset[Line]
    faults: frozenset[str]
    before_fallbacks: tuple[frozenset[Line], frozenset[str]]

    @property
    def refusals(self) -> frozenset[str]:
        """Why the API server refuses it."""
        return self.faults.difference(PLACEMENT_FAULTS)

    def if_taking_part(self, policies: Sequence[Policy]) -> Self | None:
        """Return it, if all of these policies take part in it."""
        return self if self.policies.issuperset(policy.name for policy in policies) else None


class OutcomesAlone:
    """What happens to a policy's own pod with it alone, for as long as the policy is there.

    Nodes do not count. None: the policy has no part in what happens to the pod.
    """

    def __init__(self) -> None:
        # Of all pods that are tried: most are equal to one before.
        self.faults = PodFaults()
        self._inputs = UNREAD
        self._known: MutableMapping[Policy, PodOutcome | None] = WeakKeyDictionary()

    def beside(self, inputs: PluginInputs) -> MutableMapping[Policy, PodOutcome | None]:
        """Return the outcomes that are known, in a cluster with these objects."""
        if self._inputs != inputs:
            self._inputs, self._known = inputs, WeakKeyDictionary()
        return self._known
