"""Pairs of policies that may match one pod, and cannot both have their way with it.

Requirements that cannot hold together reject each such pod. An override that no node can meet
beside the other policy's is dropped. And of two overrides of equal priority that want one key the
name alone decides: seldom what somebody means, while a higher priority says that it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from webhook.placement.fold import fold
from webhook.placement.wishes import CapacityWish, MemberWish, TolerationWish

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from webhook.placement.trace import Entry
    from webhook.placement.wishes import Wish
    from webhook.policy.findings import Finding
    from webhook.policy.together.said import Policy, Said

_Trouble: TypeAlias = Literal["rejected", "dropped", "level"]
_TEXTS: Final[dict[_Trouble, str]] = {
    "rejected": "contradicts what {} requires: a pod that both match is rejected",
    "dropped": "is dropped from pods that {} matches too: no node meets both",
    "level": "{} overrides it too, with equal priority: only the names decide",
}
_HARD: Final = ("requirements", "overrides")
_NAMED: Final = 3


class Fight(NamedTuple):
    """What one wish of a policy meets in another policy."""

    policy: Policy
    said: Said
    trouble: _Trouble
    other: Policy


class Pairs:
    """All policies, which are given in their order."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._policies = policies
        self._at = {id(policy): at for at, policy in enumerate(policies)}
        self._by_token: dict[str, list[int]] = {}
        for at, policy in enumerate(policies):
            for token in _tokens(policy):
                self._by_token.setdefault(token, []).append(at)

    def of(self, chosen: Iterable[Policy], most: int) -> Iterator[Finding]:
        """What is to be said of these policies beside any other.

        At most so many pairs are tried; of policies of the same mind there may be very many.
        """
        fights: dict[tuple[int, int, _Trouble], list[Fight]] = {}
        for one, two in self._pairs(chosen, most):
            for fight in _fights(one, two):
                key = (self._at[id(fight.policy)], id(fight.said), fight.trouble)
                fights.setdefault(key, []).append(fight)
        for found in fights.values():
            yield _finding(found)

    def _pairs(self, chosen: Iterable[Policy], most: int) -> Iterator[tuple[Policy, Policy]]:
        done: set[int] = set()
        for policy in chosen:
            mine = self._at[id(policy)]
            done.add(mine)
            rivals = {at for token in _tokens(policy) for at in self._by_token[token]} - done
            for at in sorted(rivals):
                other = self._policies[at]
                if policy.apart(other):
                    continue
                if not most:
                    return
                most -= 1
                yield (policy, other) if mine < at else (other, policy)


def alone(policy: Policy) -> Iterator[Finding]:
    """What a policy says that cannot stand beside its own requirements."""
    required = [said.wish for said in policy.of_parts("requirements")]
    if fold((policy.name,), required).contradictions:
        what = "the requirements contradict each other: every pod that it matches is rejected"
        yield policy.document.finding(("spec", "requirements"), what, "warning")
        return
    # Of a class another policy's requirement may come first.
    sure = [wish for wish in required if not isinstance(wish, CapacityWish)]
    for said in policy.of_parts("overrides", "defaults"):
        if said.limits and _is_dropped(said.wish, fold((policy.name,), [*sure, said.wish]).trace):
            what = "no pod gets it: no node meets it beside the policy's own requirements"
            yield policy.document.finding(said.path, what, "warning")


def _is_dropped(wish: Wish, trace: Iterable[Entry]) -> bool:
    return any((line.outcome, line.field) == ("dropped", wish.field) for line in trace)


def _fights(one: Policy, two: Policy) -> Iterator[Fight]:
    """What either of two policies, the earlier one first, meets in the other."""
    mine, yours = one.of_parts(*_HARD), two.of_parts(*_HARD)
    together = fold((one.name, two.name), [said.wish for said in (*mine, *yours)])
    lines = set(together.trace) - _own(one.name, mine) - _own(two.name, yours)
    level = one.model.spec.priority == two.model.spec.priority
    for policy, other, said in (
        *((one, two, each) for each in mine),
        *((two, one, each) for each in yours),
    ):
        wish = said.wish
        for line in lines:
            if (line.policy, line.part, line.field) == (policy.name, wish.part, wish.field):
                trouble = _trouble(line, level=level and _overrides(other, wish))
                if trouble is not None:
                    yield Fight(policy, said, trouble, other)


def _own(name: str, said: Sequence[Said]) -> frozenset[Entry]:
    return frozenset(fold((name,), [each.wish for each in said]).trace)


def _trouble(line: Entry, *, level: bool) -> _Trouble | None:
    match line.outcome:
        case "rejected" | "dropped":
            return line.outcome
        case "lost" if level:
            return "level"
    return None


def _overrides(policy: Policy, wish: Wish) -> bool:
    return wish.part == "overrides" and any(
        said.wish.field == wish.field for said in policy.of_parts("overrides")
    )


def _tokens(policy: Policy) -> set[str]:
    """What two policies have to have in common to get into each other's way."""
    found: set[str] = set()
    for said in policy.of_parts(*_HARD):
        wish = said.wish
        found.update(f"node {key}" for key in said.limits)
        if isinstance(wish, TolerationWish):
            found.add(f"toleration {wish.toleration.get('key') or ''}")
        elif not (isinstance(wish, MemberWish) and wish.map == "nodeSelector"):
            found.add(wish.field)
    return found


def _finding(fights: Sequence[Fight]) -> Finding:
    policy, said, trouble, _ = fights[0]
    names = list(dict.fromkeys(repr(fight.other.name) for fight in fights))
    more = len(names) - _NAMED
    others = f"policy {names[0]}" if len(names) == 1 else f"policies {', '.join(names[:_NAMED])}"
    if more > 0:
        others += f" and {more} more"
    return policy.document.finding(said.path, _TEXTS[trouble].format(others), "warning")
