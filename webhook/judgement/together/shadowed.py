"""Settings that never take effect, because an earlier policy always decides the field.

Only certain cases are reported. The deciding setting belongs to a policy that is enforced for every
pod of the other one. It is accepted in the fold with any other policies (see `placement.fold`), or
has lost to another one in the same place. Exceptions do not count, because they end.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from webhook.judgement.together.policy_view import LocatedSetting, Policy, SettingKey, key_of
from webhook.placement import node_affinity
from webhook.placement.settings import (
    PARTS,
    AllowedSetting,
    CapacitySetting,
    ListSetting,
    MemberSetting,
    PlacementSetting,
    RequiredSetting,
    ScalarSetting,
    SpreadSetting,
    TolerationSetting,
)
from webhook.placement.tolerations import normal
from webhook.policy.findings import Kind
from webhook.policy.node_settings import limits

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from webhook.placement.shapes import Term
    from webhook.policy.findings import Finding

_Rank = tuple[int, int]


class _Placed(NamedTuple):
    rank: _Rank
    policy: Policy
    located: LocatedSetting


class Shadows:
    """The settings of all policies, which are given in their order."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._by_key: dict[Hashable, list[_Placed]] = {}
        self._ranks: dict[int, _Rank] = {}
        # By label: when the first setting that limits it is folded, without selectors and with.
        self._first_terms: dict[str, _Rank] = {}
        self._first: dict[str, _Rank] = {}
        self._required_classes: set[str] = set()
        self._with_maximum: set[str] = set()
        conditions: dict[bytes, Sequence[Term]] = {}
        for each, key in _in_order(policies):
            setting = each.located.setting
            self._ranks[id(each.located)] = each.rank
            self._by_key.setdefault(key.key, []).append(each)
            for label in each.located.limits:
                self._first.setdefault(label, each.rank)
                if key.terms:
                    self._first_terms.setdefault(label, each.rank)
            if key.terms:
                conditions[key.text] = key.terms
            if isinstance(setting, CapacitySetting) and setting.part == "requirements":
                self._required_classes.add(setting.capacity.name)
            if isinstance(setting, ScalarSetting) and setting.is_maximum:
                self._with_maximum.add(setting.name)
        self._few_terms = _few(conditions.values())

    def over(self, policy: Policy) -> Iterator[tuple[Policy, Finding]]:
        """Yield settings of the policy that never take effect, after the policy."""
        for located in policy.settings:
            decides = self._winner(policy, located)
            if decides is not None:
                yield policy, _finding(policy, located, decides)

    def under(self, policy: Policy) -> Iterator[tuple[Policy, Finding]]:
        """Yield settings of other policies that never take effect because of this one, each after
        its policy."""
        for located in policy.settings:
            for other in self._by_key[key_of(located.setting)]:
                if (
                    other.policy is not policy
                    and self._decides(located, other.located)
                    and policy.outruns(other.policy)
                    and self._winner(other.policy, other.located) == (policy, located)
                ):
                    yield other.policy, _finding(other.policy, other.located, (policy, located))

    def _winner(
        self, policy: Policy, located: LocatedSetting
    ) -> tuple[Policy, LocatedSetting] | None:
        """Return the first setting that decides the field for every pod of the policy."""
        if located.setting.part == "requirements":
            return None  # it never loses in silence
        mine = self._ranks[id(located)]
        for rank_of, other, rival in self._by_key[key_of(located.setting)]:
            if rank_of > mine or rival is located:
                return None
            if self._decides(rival, located) and other.outruns(policy):
                return other, rival
        return None

    def _decides(self, rival: LocatedSetting, located: LocatedSetting) -> bool:
        """Return whether the setting never takes effect where the earlier rival applies."""
        if (
            located.setting.part == "requirements"
            or self._ranks[id(rival)] > self._ranks[id(located)]
        ):
            return False
        return (
            _other(rival.setting, located.setting)
            and self._never_dropped(rival)
            and self._loses(rival, located)
        )

    def _loses(self, rival: LocatedSetting, located: LocatedSetting) -> bool:
        """Return whether a setting loses to this accepted one, or to the one that this one lost
        to."""
        setting, before = located.setting, rival.setting
        match setting, before:
            case CapacitySetting(), CapacitySetting():
                if setting.is_default:
                    return True
                if before.part == "requirements":
                    # With None it is unknown to which setting it has lost.
                    if setting.mode.does_nothing or before.mode.does_nothing:
                        return setting.mode.does_nothing
                    return not before.mode.compatible(setting.mode)
                return setting.capacity.name not in self._required_classes
            case ScalarSetting(), ScalarSetting():
                # The rival may have lost to a maximum that leaves room for this setting.
                return before.is_maximum or setting.name not in self._with_maximum
            case (AllowedSetting(), _):
                return False
            case (RequiredSetting(), _) | (ListSetting(), _):
                return setting.is_default and before.is_default
        return True

    def _never_dropped(self, located: LocatedSetting) -> bool:
        """Return whether the setting is never dropped because it leaves no node.

        A requirement is not: the pod is rejected. Others are if an earlier one limits the same
        labels, or if all of them together make too many terms; and a pod that Kueue admitted may
        have limits of its own, which go before overrides.
        """
        setting = located.setting
        if setting.part == "requirements" or not located.limits:
            return True
        mine = self._ranks[id(located)]
        if isinstance(setting, MemberSetting):
            return self._few_terms and not self._limited(self._first_terms, located, mine)
        return (
            setting.is_default
            and self._few_terms
            and not self._limited(self._first, located, mine)
            and node_affinity.satisfiable(limits(setting), {})
        )

    def _limited(self, first: dict[str, _Rank], located: LocatedSetting, mine: _Rank) -> bool:
        return any(key in first and first[key] <= mine for key in located.limits)


def _in_order(policies: Sequence[Policy]) -> Iterator[tuple[_Placed, SettingKey]]:
    for order, part in enumerate(PARTS):
        for at, policy in enumerate(policies):
            for key in policy.setting_keys.get(part, ()):
                yield _Placed((order, at), policy, key.located), key


def _few(conditions: Iterable[Sequence[Term]]) -> bool:
    """Return whether no combination of the conditions makes too many terms."""
    listed = list(conditions)
    most = math.prod(min(len(terms), node_affinity.MAX_TERMS + 1) for terms in listed)
    longest = sum(
        max(len(term.get("matchExpressions") or ()) for term in terms) for terms in listed
    )
    return most <= node_affinity.MAX_TERMS and most * longest <= node_affinity.MAX_REQUIREMENTS


def _other(one: PlacementSetting, two: PlacementSetting) -> bool:
    """Return whether two settings for one key want different things."""
    match one, two:
        case MemberSetting(), MemberSetting():
            return bool(one.value != two.value)
        case ScalarSetting(), ScalarSetting():
            return one.value != two.value and not one.leaves_room(two)
        case TolerationSetting(), TolerationSetting():
            return normal(one.toleration).seconds != normal(two.toleration).seconds
        case CapacitySetting(), CapacitySetting():
            return (one.mode, one.weight) != (two.mode, two.weight)
        case SpreadSetting(), SpreadSetting():
            return one.constraint != two.constraint
        case RequiredSetting(), RequiredSetting():
            return one.terms != two.terms
        case ListSetting(), ListSetting():
            return one.entries != two.entries
    return False


def _finding(
    policy: Policy, located: LocatedSetting, decides: tuple[Policy, LocatedSetting]
) -> Finding:
    other, rival = decides
    who = "the policy's own" if other is policy else f"policy {other.name!r}:"
    what = f"no pod gets it: {who} {rival.setting.part} always set it first"
    return policy.document.finding(located.path, what, "warning", kind=Kind.NEVER_APPLIED)
