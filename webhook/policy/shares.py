"""A policy with a split as several policies, one for the replicas of each share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.placement.split import ends
from webhook.policy.match_model import Match

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.policy.model import PlacementPolicy

# How many replicas a role has whose percentages are checked.
_REPLICAS: Final = 100


def shares_apart(policy: PlacementPolicy) -> Sequence[PlacementPolicy]:
    """Return a policy for each share, which matches its replicas; the policy itself without a
    split.

    The last one matches all pods that the others do not. Shares of replicas that the policy does
    not match are left out. Of a percentage, replicas are matched as in a role of some size.
    """
    if not policy.split:
        return [policy]
    variants, shares = policy.variants(), policy.shares
    found, start = [], 0
    counted = sum(each.number or 0 for each in shares)
    for at, end in enumerate(ends(shares, counted + _REPLICAS)):
        indexes = [each for each in range(start, end) if _is_matched(policy, each)]
        start = end
        if indexes:
            match = policy.spec.match or Match()
            match = match.model_copy(update={"replica_indexes": indexes})
            found.append(_named(variants[at], at, {"match": match}))
    others = [Match(replica_indexes=[*range(start)])] if start else []
    last = _named(variants[-1], len(shares) - 1, {"exclude": [*policy.spec.exclude, *others]})
    return [*found, last]


def _is_matched(policy: PlacementPolicy, index: int) -> bool:
    given = policy.spec.match.replica_indexes if policy.spec.match else None
    return given is None or index in given


def _named(policy: PlacementPolicy, at: int, update: dict[str, object]) -> PlacementPolicy:
    metadata = policy.metadata.model_copy(update={"name": f"{policy.name} split[{at}]"})
    spec = policy.spec.model_copy(update=update)
    return policy.model_copy(update={"metadata": metadata, "spec": spec})
