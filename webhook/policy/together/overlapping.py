"""Policies that merely overlap, of which no two contradict, and that together leave no node.

Told where a pod is found that all of them match. Where they are for all pods of one of them,
`everywhere` tells it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from webhook.placement import label_values
from webhook.policy.findings import Kind, first_few
from webhook.policy.together.effort import Effort
from webhook.policy.together.witness import find

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from webhook.placement.shapes import Requirement, Term
    from webhook.policy.findings import Finding
    from webhook.policy.together.policy_view import Policy
    from webhook.policy.together.required import Required
    from webhook.policy.together.witness import Witness

_NAMED: Final = 3
# Policies that are put together, and shapes of what they leave.
_MOST: Final = 5
_MOST_SHAPES: Final = 64
# Of policies that require the same: how many are tried, and asked whether they are to be.
_MOST_ALIKE: Final = 4
_MOST_ASKED: Final = 100
# What it takes to look for a pod.
_STEPS_OF_A_POD: Final = 50
# By label what must hold of it, which some value does; a field has a slash before its name.
Shape: TypeAlias = "Mapping[str, Sequence[Requirement]]"


class Overlap(NamedTuple):
    """Policies in their order that leave no node, none of which can be spared; a pod of theirs."""

    policies: tuple[Policy, ...]
    pod: Witness

    def finding(self) -> Finding:
        """What is to be said, at the last of them."""
        *others, policy = self.policies
        what = (
            f"leaves no node beside what policies "
            f"{first_few([repr(each.name) for each in others], _NAMED)} require: a pod that all of "
            f"them match is rejected, such as one {self.pod}"
        )
        return policy.document.finding(
            ("spec", "requirements"), what, "warning", about="overlap", kind=Kind.SOME_PODS_REJECTED
        )


def overlapping(
    required: Sequence[Required], chosen: Collection[Policy], each: int, most: int
) -> Iterator[Overlap]:
    """What is to be said of policies, given in their order, for the sake of those chosen.

    Of the policies at which it is said, once of each. At most `each` steps are taken for one that
    is chosen, and `most` for all.
    """
    told: set[Policy] = set()
    for policy in required:
        if policy.policy in chosen and most > 0:
            effort = Effort(min(each, most))
            for overlap in _Search(policy, required, effort).overlaps():
                if overlap.policies[-1] not in told:
                    told.add(overlap.policies[-1])
                    yield overlap
            most -= each - effort.left


class _Group(NamedTuple):
    """Policies that require the same, and whose pods are not certain to be others than one's."""

    conditions: Sequence[Sequence[Shape]]
    members: Sequence[Policy]


class _Search:
    """Looks for what one policy leaves no node beside."""

    def __init__(self, policy: Required, required: Sequence[Required], effort: Effort) -> None:
        self._required = required
        self._effort = effort
        self._keys = policy.keys
        self._mine = _Group(_conditions(policy), [policy.policy])

    def overlaps(self) -> Iterator[Overlap]:
        """Small ones first."""
        first = self._left([self._mine])
        if not first:
            return
        narrowing = [
            (group, left)
            for group in self._groups()
            if (left := self._narrowed(first, group.conditions)) and left != first
        ]
        groups = [group for group, _ in narrowing]
        level: list[tuple[tuple[int, ...], list[Shape]]] = [
            ((at,), left) for at, (_, left) in enumerate(narrowing)
        ]
        for size in range(3, _MOST + 1):
            longer: list[tuple[tuple[int, ...], list[Shape]]] = []
            for chosen, shapes_left in level:
                for at in range(chosen[-1] + 1, len(groups)):
                    if self._effort.left <= 0:
                        return
                    left = self._narrowed(shapes_left, groups[at].conditions)
                    if left == []:
                        yield from self._told([self._mine, *(groups[i] for i in (*chosen, at))])
                    elif left and left != shapes_left and size < _MOST:
                        longer.append(((*chosen, at), left))
            level = longer

    def _groups(self) -> Iterator[_Group]:
        """Those that limit labels which the policy limits, by what they require."""
        (mine,) = self._mine.members
        found: dict[bytes, list[Required]] = {}
        for each in self._required:
            if each.policy.mind != mine.mind and not self._keys.isdisjoint(each.keys):
                found.setdefault(each.policy.mind, []).append(each)
        for group in found.values():
            # Of many that require the same, a few are tried.
            tried = (each.policy for each in group[:_MOST_ASKED] if self._effort.spend())
            beside = (each for each in tried if not each.apart(mine))
            members = list(itertools.islice(beside, _MOST_ALIKE))
            if members:
                yield _Group(_conditions(group[0]), members)

    def _left(self, groups: Sequence[_Group]) -> list[Shape] | None:
        """What all of these leave a node to be; None if that takes too much to say."""
        (start, *more), *others = (group.conditions for group in groups)
        left: list[Shape] | None = list(start)
        for each in (more, *others):
            left = left and self._narrowed(left, each)
        return left

    def _narrowed(
        self, left: list[Shape], conditions: Sequence[Sequence[Shape]]
    ) -> list[Shape] | None:
        """What is left under these conditions; None if that takes too much to say."""
        for condition in conditions:
            count = len(left) * len(condition)
            if count > _MOST_SHAPES or not self._effort.spend(1 + count):
                return None
            left = narrowed(left, condition)
        return left

    def _told(self, groups: Sequence[_Group]) -> Iterator[Overlap]:
        """One choice of policies that require this, and that a pod is found for."""
        if any(self._left([g for g in groups if g is not each]) == [] for each in groups):
            return  # one of them can be spared
        for policies in itertools.product(*(group.members for group in groups)):
            if not self._effort.spend():
                return
            pairs = itertools.combinations(policies[1:], 2)
            if any(one.apart(two) for one, two in pairs) or _is_nested(policies):
                continue
            work = max(each.work_to_match for each in policies)
            if not self._effort.spend(_STEPS_OF_A_POD * work):
                return
            pod = find(policies)
            if pod is not None:
                yield Overlap(tuple(sorted(policies, key=lambda each: each.order)), pod)
                return


def _conditions(required: Required) -> list[list[Shape]]:
    return [shapes(terms) for terms in required.conditions]


def _is_nested(policies: Sequence[Policy]) -> bool:
    """Whether all the others are enforced for each pod of one."""
    return any(all(other.outruns(each) for other in policies) for each in policies)


def shapes(terms: Iterable[Term]) -> list[Shape]:
    """The terms as shapes, without those that no node can meet."""
    ready = (_shape(term) for term in terms)
    # A term without any requirement matches no node.
    return [each for each in ready if each and all(map(label_values.satisfiable, each.values()))]


def _shape(term: Term) -> Shape:
    found: dict[str, list[Requirement]] = {}
    for requirement in term.get("matchExpressions") or ():
        found.setdefault(requirement.get("key", ""), []).append(requirement)
    for requirement in term.get("matchFields") or ():
        key = requirement.get("key", "")
        # A node always has its fields.
        present: Requirement = {"key": key, "operator": "Exists"}
        found.setdefault(f"/{key}", [present]).append(requirement)
    return found


def narrowed(some: Sequence[Shape], condition: Sequence[Shape]) -> list[Shape]:
    """What a node may be that is of one of both; empty if there can be none."""
    found: list[Shape] = []
    for one in some:
        narrow = [_both(one, other) for other in condition]
        if one in narrow:
            found.append(one)  # the condition says nothing new of it
        else:
            found += [each for each in narrow if each is not None]
    return found


def _both(one: Shape, other: Shape) -> Shape | None:
    """The shape of nodes that are of both; None if there are none."""
    found = dict(one)
    for key, group in other.items():
        mine = one.get(key, ())
        more = [each for each in group if each not in mine]
        if more and mine and not label_values.satisfiable([*mine, *more]):
            return None
        if more:
            found[key] = [*mine, *more]
    return found
