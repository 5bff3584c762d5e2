"""Folding: the wishes of several policies become one bundle, without looking at any pod.

Requirements come first, then overrides, then defaults; within each the policies in their order
(priority, then name). The first wins a key that two want, and a wish that no node could meet beside
the earlier ones drops. Requirements never drop: two that contradict each other are a contradiction
of the bundle, for which every pod is rejected.

Where a pod's own selector goes before overrides (`placement.kueue`) it stands between requirements
and overrides while these are folded, so that what it leaves no node to drops; and is then taken
away again, for the pod has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.placement import node_affinity
from webhook.placement.bundle import Bundle, Demand
from webhook.placement.node_wishes import condition_of, keys_of, limits_nodes
from webhook.placement.tolerations import NO_EXECUTE, covers, normal
from webhook.placement.trace import Entry, Outcome, entry, quoted, quoted_both, warning
from webhook.placement.wishes import (
    PARTS,
    CapacityWish,
    ListWish,
    MemberWish,
    RequiredWish,
    ScalarWish,
    SpreadWish,
    TolerationWish,
    Wish,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_ALONE: Final = "no node can meet it"
_TOGETHER: Final = "no node can meet both"
_ALL: Final = "no node can meet all of them"


def fold(
    policies: Sequence[str], wishes: Sequence[Wish], ahead: Sequence[MemberWish] = ()
) -> Bundle:
    """The bundle of policies, named in their order; `wishes` are theirs, policy by policy.

    `ahead` are nodeSelector keys that go before every override, and are no part of the bundle.
    """
    folding = _Folding()
    # A pod's author chooses how many keys there are; others than these meet no wish.
    spoken_of = _selector_keys(wishes) if ahead else ()
    for part in PARTS:
        if part == "overrides":
            folding.put([each for each in ahead if each.key in spoken_of])
        for wish in wishes:
            if wish.part == part:
                folding.take(wish)
        if part == "overrides":
            folding.withdraw()
    return folding.bundle(tuple(policies), tuple(wishes))


class _Folding:
    """The wishes that stand so far. Local to one call of `fold`."""

    def __init__(self) -> None:
        self.standing: list[Wish] = []
        self.ahead: list[MemberWish] = []
        self.trace: list[Entry] = []
        self.warnings: list[str] = []
        self.contradictions: list[str] = []

    def put(self, ahead: Sequence[MemberWish]) -> None:
        """Let those in for a while that requirements leave a node to, and say nothing of others."""
        for wish in ahead:
            if self._rival_key(wish) is None and not _obstacle([*self.standing, wish]):
                self.standing.append(wish)
                self.ahead.append(wish)

    def withdraw(self) -> None:
        """Take them away again."""
        self.standing = [w for w in self.standing if not self._is_ahead(w)]
        self.ahead = []

    def _is_ahead(self, wish: Wish) -> bool:
        return any(wish is other for other in self.ahead)

    def take(self, wish: Wish) -> None:
        """Let one wish in, or record why not."""
        match wish:
            case TolerationWish():
                rival = self._rival_toleration(wish)
            case CapacityWish():
                rival = self._rival_capacity(wish)
            case _:
                rival = self._rival_key(wish)
        if rival is not None and not (self._is_ahead(rival) and _agree(wish, rival)):
            self._lose(wish, rival)
        elif self._can_be_met(wish):
            self.standing.append(wish)

    def _lose(self, wish: Wish, rival: Wish) -> None:
        if wish.part == rival.part == "requirements" and _contradicts(wish, rival):
            self._contradict(wish, [rival])
            return
        if isinstance(rival, MemberWish) and isinstance(wish, MemberWish) and self._is_ahead(rival):
            wants, has = quoted_both(wish.value, rival.value)
            self.trace.append(entry(wish, "kept", f"{rival.policy} put {has}"))
            self._warn(wish, f"wants {wants}, {rival.policy} put {has}: kept")
            return
        outcome: Outcome = "kept" if _agree(wish, rival) else "lost"
        says = "says the same" if outcome == "kept" else "decides it"
        self.trace.append(entry(wish, outcome, f"policy {rival.policy} ({rival.part}) {says}"))

    def _contradict(self, wish: Wish, others: Sequence[Wish], reason: str = "") -> None:
        *theirs, own = _wanted([*others, wish])
        pairs = zip(others, theirs, strict=True)
        beside = " and ".join(_required(each, wanted) for each, wanted in pairs)
        what = f"wants {own}; {beside}" if beside else f"wants {own}"
        self.trace.append(entry(wish, "rejected", f"{what}: {reason}" if reason else what))
        self.contradictions.append(contradiction([*others, wish], reason))

    def _rival_key(self, wish: Wish) -> Wish | None:
        """The standing wish for the same key of the same field."""
        if isinstance(wish, RequiredWish | ListWish) and not wish.is_default:
            return None  # these are ANDed, or appended: there is room for any number
        for other in self.standing:
            if type(other) is type(wish) and _key(other) == _key(wish):
                if isinstance(wish, RequiredWish | ListWish) and not other.is_default:
                    continue
                if _leaves_room(other, wish):
                    continue
                return other
        return None

    def _rival_toleration(self, wish: TolerationWish) -> Wish | None:
        return next(
            (
                other
                for other in self.standing
                if isinstance(other, TolerationWish) and covers(other.toleration, wish.toleration)
            ),
            None,
        )

    def _rival_capacity(self, wish: CapacityWish) -> Wish | None:
        same = [
            other
            for other in self.standing
            if isinstance(other, CapacityWish) and other.capacity.name == wish.capacity.name
        ]
        for other in same:
            if other.part == wish.part != "requirements" or wish.is_default:
                return other
            # None gives way, or is given way to, though it contradicts nobody.
            gives_way = other.mode.does_nothing or wish.mode.does_nothing
            joins = other.mode.compatible(wish.mode) and not gives_way
            if _agree(other, wish) or not joins:
                return other
        return None

    def _can_be_met(self, wish: Wish) -> bool:
        """Whether some node meets the wish beside those that stand; if not, say so."""
        if not limits_nodes(wish):
            return True
        if not _obstacle([*self.standing, wish]):
            return True
        others = self._obstructing(wish)
        reason = _obstacle([*others, wish])
        if wish.part == "requirements":
            self._contradict(wish, others, reason)
            return False
        if others:
            against = self._against(others)
            why, told = f"beside {against}: {reason}", f"dropped beside {against}"
        else:
            why, told = f"{reason}: {wish.wanted}", f"dropped, {reason}: {wish.wanted}"
        self.trace.append(entry(wish, "dropped", why))
        self.warnings.append(warning(f"policy {wish.policy}: {wish.field} {told}"))
        return False

    def _obstructing(self, wish: Wish) -> list[Wish]:
        """The wishes that stand beside which no node meets this one, none of which can be spared.

        Empty if no node meets it by itself.
        """
        if _obstacle([wish]):
            return []
        found = [other for other in self.standing if limits_nodes(other)]
        one = next((other for other in found if _obstacle([other, wish])), None)
        if one is not None:
            return [one]
        for each in list(found):
            others = [other for other in found if other is not each]
            if _obstacle([*others, wish]):
                found = others
        return found

    def _against(self, others: Sequence[Wish]) -> str:
        """Beside whom a wish cannot be met, by name."""
        if len(others) > 1:
            ahead = [each.policy for each in others if self._is_ahead(each)][:1]
            policies = [each.policy for each in others if not self._is_ahead(each)]
            named = [f"policy {name}" for name in dict.fromkeys(policies)]
            return " and ".join([*named, *ahead])
        (one,) = others
        if isinstance(one, MemberWish) and self._is_ahead(one):
            return f"{one.policy}, which put {one.field}={quoted(one.value)}"
        return f"policy {one.policy} ({one.field})"

    def _warn(self, wish: Wish, what: str) -> None:
        self.warnings.append(warning(f"policy {wish.policy}: {wish.field}: {what}"))

    def bundle(self, policies: tuple[str, ...], wishes: tuple[Wish, ...]) -> Bundle:
        """The result, grouped by field."""
        members: dict[str, tuple[MemberWish, ...]] = {}
        for wish in self.standing:
            if isinstance(wish, MemberWish):
                members[wish.map] = (*members.get(wish.map, ()), wish)
        tolerations = tuple(w for w in self.standing if isinstance(w, TolerationWish))
        return Bundle(
            policies=policies,
            wishes=wishes,
            members=members,
            scalars=tuple(w for w in self.standing if isinstance(w, ScalarWish)),
            tolerations=tolerations,
            specific=tuple(
                w.toleration
                for w in tolerations
                if not w.is_default and normal(w.toleration).effect == NO_EXECUTE
            ),
            required=tuple(w for w in self.standing if isinstance(w, RequiredWish)),
            lists=tuple(w for w in self.standing if isinstance(w, ListWish)),
            spread=tuple(w for w in self.standing if isinstance(w, SpreadWish)),
            capacity=tuple(w for w in self.standing if isinstance(w, CapacityWish)),
            hard=_demand([w for w in self.standing if not w.is_default]),
            demanded=_demand([w for w in self.standing if w.part == "requirements"]),
            term_keys=_term_keys(self.standing),
            contradictions=tuple(self.contradictions),
            trace=tuple(self.trace),
            warnings=tuple(self.warnings),
        )


def _key(wish: Wish) -> object:
    match wish:
        case SpreadWish():
            return wish.pair
        case _:
            return wish.field


def _required(wish: Wish, wanted: str) -> str:
    return f"policy {wish.policy} requires {wish.field} {wanted}"


def _wanted(wishes: Sequence[Wish]) -> list[str]:
    """What each wants; of two long values so much that they differ."""
    texts = [each.wanted for each in wishes]
    match wishes:
        case [ScalarWish() | MemberWish() as one, ScalarWish() | MemberWish() as other]:
            return list(quoted_both(one.value, other.value)) if texts[0] == texts[1] else texts
    return texts


def contradiction(wishes: Sequence[Wish], reason: str = "") -> str:
    """What requirements that cannot hold together want, each with its policy, and the cure."""
    if len({wish.field for wish in wishes}) == 1 < len(wishes) and not reason:
        pairs = zip(wishes, _wanted(wishes), strict=True)
        wanted = ", ".join(f"policy {each.policy} requires {text}" for each, text in pairs)
        what = f"{wishes[0].field}: {wanted}"
    else:
        what = f"{', '.join(map(_required, wishes, _wanted(wishes)))}: {reason or _TOGETHER}"
    if len({wish.policy for wish in wishes}) == 1:
        return f"{what}; change the policy"
    return f"{what}; change one of them or narrow its match"


def _leaves_room(one: Wish, other: Wish) -> bool:
    return isinstance(one, ScalarWish) and isinstance(other, ScalarWish) and one.leaves_room(other)


def _agree(one: Wish, other: Wish) -> bool:
    match one, other:
        case MemberWish(), MemberWish():
            return bool(one.value == other.value)
        case ScalarWish(), ScalarWish():
            return one.value == other.value
        case TolerationWish(), TolerationWish():
            # They differ only where both are about the same taints and give other seconds.
            a, b = normal(one.toleration), normal(other.toleration)
            return a.reach != b.reach or a.seconds == b.seconds
        case CapacityWish(), CapacityWish():
            return (one.mode, one.weight) == (other.mode, other.weight)
        case SpreadWish(), SpreadWish():
            return one.constraint == other.constraint
    return False


def _contradicts(one: Wish, other: Wish) -> bool:
    if isinstance(one, CapacityWish) and isinstance(other, CapacityWish):
        return not one.mode.compatible(other.mode)
    return not _agree(one, other)


def _demand(wishes: Sequence[Wish]) -> Demand:
    """The nodeSelector and the conjunction of the terms that the wishes make together."""
    selector = {
        w.key: w.value for w in wishes if isinstance(w, MemberWish) and w.map == "nodeSelector"
    }
    terms = node_affinity.conjunction(
        condition for w in wishes if (condition := condition_of(w)) is not None
    )
    return Demand(selector, None if terms is None else node_affinity.pruned(terms, selector))


def _obstacle(wishes: Sequence[Wish]) -> str:
    """Why no node can meet the wishes together, or why it cannot be told; or nothing."""
    try:
        if _demand(wishes).possible:
            return ""
        return _ALONE if len(wishes) == 1 else _TOGETHER if len(wishes) == 2 else _ALL
    except node_affinity.TooManyTerms as error:
        return str(error)


def _selector_keys(wishes: Sequence[Wish]) -> frozenset[str]:
    """The labels of nodes that the wishes say anything about."""
    members = [w for w in wishes if isinstance(w, MemberWish) and w.map == "nodeSelector"]
    return _term_keys(wishes).union(w.key for w in members)


def _term_keys(wishes: Sequence[Wish]) -> frozenset[str]:
    return frozenset[str]().union(
        *(keys_of(wish) for wish in wishes if isinstance(wish, RequiredWish | CapacityWish))
    )
