"""The wishes of a set in the order in which they are folded, each with its policy's position."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from webhook.exported import cel
from webhook.placement.wishes import PARTS, Wish

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.policy.match_model import Match

W = TypeVar("W", bound=Wish, covariant=True)


class Enforced(NamedTuple):
    """A policy under Enforce: whom it is for, and what it wishes.

    `requires`: requirements and nothing else, which hold for the pods of DaemonSets too.
    """

    name: str
    match: Match
    exclude: Sequence[Match]
    wishes: Sequence[Wish]
    requires: bool = False


class Placed(NamedTuple):
    """A policy set to be exported: its policies in their order, and the cluster's defaults.

    `rolled_out` are the policies that are enforced in some namespaces only, `exceptions` the names
    of the set's exceptions.
    """

    policies: Sequence[Enforced]
    classes: Sequence[CapacityClass]
    set_hash: str
    default_priority_class: str = ""
    default_toleration_seconds: int = 300
    rolled_out: Sequence[str] = ()
    exceptions: Sequence[str] = ()


class Wanted(NamedTuple):
    """A wish, and the position of its policy."""

    at: int
    wish: Wish


def with_parts_apart(placed: Placed) -> Placed:
    """The same with each policy's requirements as a policy of their own, before the rest of it."""
    apart = []
    for policy in placed.policies:
        required = [wish for wish in policy.wishes if wish.part == "requirements"]
        rest = [wish for wish in policy.wishes if wish.part != "requirements"]
        if required:
            apart.append(policy._replace(wishes=required, requires=True))
        if rest:
            apart.append(policy._replace(wishes=rest))
    return placed._replace(policies=apart)


def wanted(placed: Placed) -> list[Wanted]:
    """Every wish, in the order of folding: by part, then by policy."""
    return [
        Wanted(at, wish)
        for part in PARTS
        for at, policy in enumerate(placed.policies)
        for wish in policy.wishes
        if wish.part == part
    ]


def standing(
    wishes: Sequence[Wanted], rivals: Callable[[Wish, Wish], bool]
) -> Iterable[tuple[Wanted, str]]:
    """Each wish that can stand, with the CEL for when it does: the first of its rivals stands.

    `rivals(earlier, later)`: whether the later one is lost where the earlier one stands; it must
    be transitive.
    """
    for number, one in enumerate(wishes):
        before = list(dict.fromkeys(o.at for o in wishes[:number] if rivals(o.wish, one.wish)))
        if one.at not in before:
            yield one, cel.every([cel.policy(one.at), *(f"!{cel.policy(at)}" for at in before)])
