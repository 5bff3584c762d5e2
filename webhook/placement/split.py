"""A split: which share of a role's replicas gets which capacity setting.

Shares are contiguous and in the order of replica indexes: first those with a count, then those
with a percentage of the replicas that the counts leave, then one share with the rest.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.fallback import History


class Share(NamedTuple):
    """One share: a number of replicas, or a percentage; with neither, the rest."""

    number: int | None = None
    percent: int | None = None


class Replica(NamedTuple):
    """A replica's index in its role, how many replicas that has, what happened to it before, and
    the labels of its namespace; None if unknown."""

    position: int | None = None
    replicas: int | None = None
    history: History | None = None
    namespace_labels: Mapping[str, str] | None = None


ANY: Final = Replica()


def ends(shares: Sequence[Share], replicas: int | None) -> list[int]:
    """Return the index after the last replica of each share but the last.

    Without `replicas`, of the shares with a count only. A percentage is rounded to the nearest
    number over all percentages before it, so that no share is off by one replica or more.
    """
    counted = [*accumulate(share.number for share in shares if share.number is not None)]
    if replicas is None:
        return counted
    counted = [min(end, replicas) for end in counted]
    before = counted[-1] if counted else 0
    percents = accumulate(share.percent for share in shares if share.percent is not None)
    left = replicas - before
    return [*counted, *(before + (2 * left * percent + 100) // 200 for percent in percents)][
        : len(shares) - 1
    ]


def share_of(shares: Sequence[Share], replica: Replica) -> int:
    """Return the position of a replica's share; the last one if its index is not known."""
    if replica.position is None:
        return len(shares) - 1
    share_ends = ends(shares, replica.replicas)
    return next(
        (at for at, end in enumerate(share_ends) if replica.position < end), len(shares) - 1
    )


def needs_replicas(shares: Sequence[Share]) -> bool:
    """Return whether a share depends on how many replicas the role has."""
    return any(share.percent is not None for share in shares)
