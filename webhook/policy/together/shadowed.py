"""Wishes that no pod can get: for each pod that they are for, an earlier one has decided already.

It is said only of what is certain. The wish that decides belongs to a policy which is enforced for
every pod of the other one, and it stands in the fold of whatever policies match beside (see
`placement.fold`), or has lost to another one that stands in the same place. Exceptions to policies
do not count: they end.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import orjson

from webhook.placement import node_affinity
from webhook.placement.tolerations import normal
from webhook.placement.wishes import (
    CapacityWish,
    ListWish,
    MemberWish,
    RequiredWish,
    ScalarWish,
    SpreadWish,
    TolerationWish,
    Wish,
)
from webhook.policy.findings import Kind
from webhook.policy.together.said import Policy, Said, limits, rank

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from webhook.placement.shapes import Term
    from webhook.policy.findings import Finding

_Rank = tuple[int, int]


class _Placed(NamedTuple):
    rank: _Rank
    policy: Policy
    said: Said


class Shadows:
    """The wishes of all policies, which are given in their order."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._by_key: dict[Hashable, list[_Placed]] = {}
        self._ranks: dict[int, _Rank] = {}
        # By label: when the first wish that limits it is folded, without selectors and with.
        self._first_terms: dict[str, _Rank] = {}
        self._first: dict[str, _Rank] = {}
        self._required_classes: set[str] = set()
        self._with_maximum: set[str] = set()
        conditions: dict[bytes, Sequence[Term]] = {}
        for each in _in_order(policies):
            wish = each.said.wish
            self._ranks[id(each.said)] = each.rank
            self._by_key.setdefault(_key(wish), []).append(each)
            for key in each.said.limits:
                self._first.setdefault(key, each.rank)
                if not isinstance(wish, MemberWish):
                    self._first_terms.setdefault(key, each.rank)
            if each.said.limits and not isinstance(wish, MemberWish):
                terms = limits(wish)
                conditions[orjson.dumps(terms)] = terms
            if isinstance(wish, CapacityWish) and wish.part == "requirements":
                self._required_classes.add(wish.capacity.name)
            if isinstance(wish, ScalarWish) and wish.is_maximum:
                self._with_maximum.add(wish.name)
        self._few_terms = _few(conditions.values())

    def over(self, policy: Policy) -> Iterator[Finding]:
        """What the policy says in vain."""
        for said in policy.said:
            decides = self._winner(policy, said)
            if decides is not None:
                yield _finding(policy, said, decides)

    def under(self, policy: Policy) -> Iterator[Finding]:
        """What other policies say in vain because of this one."""
        for said in policy.said:
            for other in self._by_key[_key(said.wish)]:
                if (
                    other.policy is not policy
                    and self._decides(said, other.said)
                    and policy.outruns(other.policy)
                    and self._winner(other.policy, other.said) == (policy, said)
                ):
                    yield _finding(other.policy, other.said, (policy, said))

    def _winner(self, policy: Policy, said: Said) -> tuple[Policy, Said] | None:
        """The first that decides for every pod of the policy what the wish is about."""
        if said.wish.part == "requirements":
            return None  # it never loses in silence
        mine = self._ranks[id(said)]
        for rank_of, other, rival in self._by_key[_key(said.wish)]:
            if rank_of > mine or rival is said:
                return None
            if self._decides(rival, said) and other.outruns(policy):
                return other, rival
        return None

    def _decides(self, rival: Said, said: Said) -> bool:
        """Whether the wish never stands where the earlier rival takes part."""
        if said.wish.part == "requirements" or self._ranks[id(rival)] > self._ranks[id(said)]:
            return False
        return _other(rival.wish, said.wish) and self._stands(rival) and self._loses(rival, said)

    def _loses(self, rival: Said, said: Said) -> bool:
        """Whether a wish loses to this one, which stands, or to what this one has lost to."""
        wish, before = said.wish, rival.wish
        match wish, before:
            case CapacityWish(), CapacityWish():
                if wish.is_default:
                    return True
                if before.part == "requirements":
                    # Of None it cannot be told to what it has lost.
                    if wish.mode.does_nothing or before.mode.does_nothing:
                        return wish.mode.does_nothing
                    return not before.mode.compatible(wish.mode)
                return wish.capacity.name not in self._required_classes
            case ScalarWish(), ScalarWish():
                # The rival may have lost to a maximum that leaves room for this wish.
                return before.is_maximum or wish.name not in self._with_maximum
            case (RequiredWish(), _) | (ListWish(), _):
                return wish.is_default and before.is_default
        return True

    def _stands(self, said: Said) -> bool:
        """Whether the wish is never dropped for want of a node.

        A requirement is not: the pod is rejected. Others are if an earlier one limits the same
        labels, or if all of them together make too many terms; and a pod that Kueue admitted may
        have limits of its own, which go before overrides.
        """
        wish = said.wish
        if wish.part == "requirements" or not said.limits:
            return True
        mine = self._ranks[id(said)]
        if isinstance(wish, MemberWish):
            return self._few_terms and not self._limited(self._first_terms, said, mine)
        return (
            wish.is_default
            and self._few_terms
            and not self._limited(self._first, said, mine)
            and node_affinity.satisfiable(limits(wish), {})
        )

    def _limited(self, first: dict[str, _Rank], said: Said, mine: _Rank) -> bool:
        return any(key in first and first[key] <= mine for key in said.limits)


def _in_order(policies: Sequence[Policy]) -> list[_Placed]:
    placed = [
        _Placed(rank(said, at), policy, said)
        for at, policy in enumerate(policies)
        for said in policy.said
    ]
    return sorted(placed, key=lambda each: each.rank)


def _few(conditions: Iterable[Sequence[Term]]) -> bool:
    """Whether the conditions, whichever of them come together, never make too many terms."""
    listed = list(conditions)
    most = math.prod(min(len(terms), node_affinity.MAX_TERMS + 1) for terms in listed)
    longest = sum(
        max(len(term.get("matchExpressions") or ()) for term in terms) for terms in listed
    )
    return most <= node_affinity.MAX_TERMS and most * longest <= node_affinity.MAX_REQUIREMENTS


def _key(wish: Wish) -> Hashable:
    match wish:
        case TolerationWish():
            return ("toleration", normal(wish.toleration).reach)
        case SpreadWish():
            return ("spread", wish.pair)
    return (type(wish), wish.field)


def _other(one: Wish, two: Wish) -> bool:
    """Whether two wishes for one key want different things."""
    match one, two:
        case MemberWish(), MemberWish():
            return bool(one.value != two.value)
        case ScalarWish(), ScalarWish():
            return one.value != two.value and not one.leaves_room(two)
        case TolerationWish(), TolerationWish():
            return normal(one.toleration).seconds != normal(two.toleration).seconds
        case CapacityWish(), CapacityWish():
            return (one.mode, one.weight) != (two.mode, two.weight)
        case SpreadWish(), SpreadWish():
            return one.constraint != two.constraint
        case RequiredWish(), RequiredWish():
            return one.terms != two.terms
        case ListWish(), ListWish():
            return one.entries != two.entries
    return False


def _finding(policy: Policy, said: Said, decides: tuple[Policy, Said]) -> Finding:
    other, rival = decides
    who = "the policy's own" if other is policy else f"policy {other.name!r}:"
    what = f"no pod gets it: {who} {rival.wish.part} always decide it first"
    return policy.document.finding(said.path, what, "warning", kind=Kind.NEVER_APPLIED)
