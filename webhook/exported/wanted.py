"""The settings of a set in the order in which they are folded, each with its policy's position."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from webhook.exported import cel
from webhook.placement.settings import PARTS, PlacementSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.policy.match_model import Match

W = TypeVar("W", bound=PlacementSetting, covariant=True)


class Enforced(NamedTuple):
    """A policy under Enforce: whom it is for, and what it sets.

    `requires`: requirements and nothing else, which hold for the pods of DaemonSets too.
    """

    name: str
    match: Match
    exclude: Sequence[Match]
    settings: Sequence[PlacementSetting]
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
    """A setting, and the position of its policy."""

    at: int
    setting: PlacementSetting


def with_parts_apart(placed: Placed) -> Placed:
    """The same with each policy's requirements as a policy of their own, before the rest of it."""
    apart = []
    for policy in placed.policies:
        required = [setting for setting in policy.settings if setting.part == "requirements"]
        rest = [setting for setting in policy.settings if setting.part != "requirements"]
        if required:
            apart.append(policy._replace(settings=required, requires=True))
        if rest:
            apart.append(policy._replace(settings=rest))
    return placed._replace(policies=apart)


def wanted(placed: Placed) -> list[Wanted]:
    """Every setting, in the order of folding: by part, then by policy."""
    return [
        Wanted(at, setting)
        for part in PARTS
        for at, policy in enumerate(placed.policies)
        for setting in policy.settings
        if setting.part == part
    ]


def standing(
    settings: Sequence[Wanted], rivals: Callable[[PlacementSetting, PlacementSetting], bool]
) -> Iterable[tuple[Wanted, str]]:
    """Each setting that can stand, with the CEL for when it does: the first of its rivals stands.

    `rivals(earlier, later)`: whether the later one is lost where the earlier one stands; it must
    be transitive.
    """
    for number, one in enumerate(settings):
        before = list(
            dict.fromkeys(o.at for o in settings[:number] if rivals(o.setting, one.setting))
        )
        if one.at not in before:
            yield one, cel.every([cel.policy(one.at), *(f"!{cel.policy(at)}" for at in before)])
