"""Which gang may start next: one after the other, for each resource for which they compete.

Of two that start at one time, each may have what the other lacks. The second one begins only if
the first has had no node for a while, as it then holds nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.times import elapsed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from webhook.run.model.status import GangStatus

# Seconds after which a start that has no node lets the next one begin.
STALLED_SECONDS: Final = 120.0


class Start(NamedTuple):
    """What is known of the start of a gang beside its own objects.

    granted: it may begin; why: why not. yields_to: the Run to which it gives its nodes back at
    once. on_demand: nodes may be made for it.
    """

    granted: bool = False
    why: str = ""
    yields_to: str = ""
    on_demand: bool = False


NO_START: Final = Start()


class Starter(NamedTuple):
    """A gang that is not whole, and all by which it competes.

    name: namespace/name. created: RFC 3339. resources: those that it competes for; None if they
    are not known yet. holds: a pod of it has a node; lacks: one can have none. over_quota: a pod
    exceeded a quota of the namespace. fits: nodes have room for it, or it is not known.
    """

    name: str
    uid: str
    created: str
    gang: GangStatus
    resources: frozenset[str] | None = None
    holds: bool = False
    lacks: bool = False
    over_quota: bool = False
    fits: bool = True

    @property
    def order(self) -> tuple[int, str, str]:
        """Sort key: the highest priority first, then the oldest."""
        return (-self.gang.priority, self.created, self.uid)

    def competes_with(self, other: Starter) -> bool:
        """Return whether one may have what the other lacks."""
        same_namespace = self.name.partition("/")[0] == other.name.partition("/")[0]
        if same_namespace and (self.over_quota or other.over_quota):
            return True
        if self.resources is None or other.resources is None:
            return True
        return not self.resources.isdisjoint(other.resources)


def contended(requested: Iterable[str]) -> frozenset[str]:
    """Return the resources for which pods with these requests compete: cpu if none is extended."""
    extended = frozenset(name for name in requested if "/" in name)
    return extended or frozenset({"cpu"})


def find_start(me: Starter, others: Iterable[Starter], now: datetime) -> Start:
    """Return whether the gang may start, and whether it has to give way to another one."""
    rivals = sorted(
        (other for other in others if other.uid != me.uid and me.competes_with(other)),
        key=lambda other: other.order,
    )
    starting = [other for other in rivals if other.gang.state == "Starting"]
    if me.gang.state == "Starting":
        first = next((other for other in starting if other.order < me.order), None)
        yields = me.holds and first is not None and first.holds and first.lacks
        return Start(yields_to=first.name if first and yields else "")
    for other in starting:
        if other.holds or elapsed(other.gang.since, now) < STALLED_SECONDS:
            return Start(why=f"Run {other.name} starts, and competes for the same nodes or quota")
    for other in rivals:
        due = not other.gang.not_before or elapsed(other.gang.not_before, now) >= 0
        waits = other.gang.state == "Waiting" and other.fits and due
        if waits and other.order < me.order:
            return Start(why=f"Run {other.name} is next")
    return Start(granted=True)
