"""Three or more policies that together leave no node, though no two contradict.

Reported if a pod is found that all of them match. If all match each pod of one of them,
`everywhere` reports it.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from webhook.judgement.together.policy_view import Effort, limits
from webhook.judgement.together.witness import find
from webhook.placement import label_values, node_affinity
from webhook.policy.findings import Kind
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from webhook.judgement.together.policy_view import Policy
    from webhook.judgement.together.witness import Witness
    from webhook.placement.settings import PlacementSetting
    from webhook.placement.shapes import Requirement, Term
    from webhook.policy.findings import Finding

_NAMED: Final = 3
# Policies that are put together, and shapes of what they leave.
_MOST: Final = 5
_MOST_SHAPES: Final = 64
# Of policies that require the same: how many are tried, and asked whether they are to be.
_MOST_ALIKE: Final = 4
_MOST_ASKED: Final = 100
# The cost of the search for a pod.
_STEPS_OF_A_POD: Final = 50
# By label what must hold of it, which some value does; a field has a slash before its name.
Shape: TypeAlias = "Mapping[str, Sequence[Requirement]]"


class Required(NamedTuple):
    """The node requirements of a policy that is enforced everywhere, and the labels they limit."""

    policy: Policy
    keys: frozenset[str]
    settings: Sequence[PlacementSetting]

    @property
    def conditions(self) -> list[Sequence[Term]]:
        """The conditions that a node has to meet, each by one of its terms."""
        return [limits(setting) for setting in self.settings]


def required(policies: Sequence[Policy]) -> Iterator[Required]:
    """Yield the certain node requirements of policies that are enforced everywhere, in their
    order."""
    # Another requirement of such a class may have to yield.
    unsure = frozenset[str]().union(*(each.required_none for each in policies))
    for policy in policies:
        sure = [each for each in policy.sure if each.setting.field not in unsure]
        if sure:
            keys = frozenset[str]().union(*(each.limits for each in sure))
            yield Required(policy, keys, [each.setting for each in sure])


def possible(group: Iterable[Required]) -> bool:
    """Return whether a node may meet all requirements of a group."""
    conditions = (condition for each in group for condition in each.conditions)
    try:
        return node_affinity.satisfiable(node_affinity.conjunction(conditions), {})
    except node_affinity.TooManyTerms:
        return True


class Overlap(NamedTuple):
    """A minimal group of policies, in their order, that leave no node, and a pod they match."""

    policies: tuple[Policy, ...]
    pod: Witness

    def finding(self) -> Finding:
        """Return the finding, at the last of them."""
        *others, policy = self.policies
        what = (
            "leaves no node together with the requirements of policies "
            f"{first_few([repr(each.name) for each in others], _NAMED)}: a pod that all of them "
            f"match is rejected, such as one {self.pod}"
        )
        return policy.document.finding(
            ("spec", "requirements"), what, "warning", about="overlap", kind=Kind.SOME_PODS_REJECTED
        )


def overlapping(
    required: Sequence[Required], chosen: Collection[Policy], each: int, most: int
) -> Iterator[Overlap]:
    """Yield findings that involve the chosen policies; the policies are given in their order.

    At most one finding for each policy. At most `each` steps are taken for a chosen policy, and
    `most` for all.
    """
    reported: set[Policy] = set()
    for policy in required:
        if policy.policy in chosen and most > 0:
            effort = Effort(min(each, most))
            for overlap in _Search(policy, required, effort).overlaps():
                if overlap.policies[-1] not in reported:
                    reported.add(overlap.policies[-1])
                    yield overlap
            most -= each - effort.left


class _Group(NamedTuple):
    """Policies with the same requirements, whose pods may be pods of the given policy."""

    conditions: Sequence[Sequence[Shape]]
    members: Sequence[Policy]


class _Search:
    """Searches for policies that leave no node together with one policy."""

    def __init__(self, policy: Required, required: Sequence[Required], effort: Effort) -> None:
        self._required = required
        self._effort = effort
        self._keys = policy.keys
        self._mine = _Group(_conditions(policy), [policy.policy])

    def overlaps(self) -> Iterator[Overlap]:
        """Small ones first."""
        first = self._remaining_shapes([self._mine])
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
                        yield from self._find_overlap(
                            [self._mine, *(groups[i] for i in (*chosen, at))]
                        )
                    elif left and left != shapes_left and size < _MOST:
                        longer.append(((*chosen, at), left))
            level = longer

    def _groups(self) -> Iterator[_Group]:
        """Yield those that limit labels which the policy limits, by what they require."""
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

    def _remaining_shapes(self, groups: Sequence[_Group]) -> list[Shape] | None:
        """Return the shapes that all of these leave; None if there are too many."""
        (start, *more), *others = (group.conditions for group in groups)
        left: list[Shape] | None = list(start)
        for each in (more, *others):
            left = left and self._narrowed(left, each)
        return left

    def _narrowed(
        self, left: list[Shape], conditions: Sequence[Sequence[Shape]]
    ) -> list[Shape] | None:
        """Return the shapes under these conditions; None if there are too many."""
        for condition in conditions:
            count = len(left) * len(condition)
            if count > _MOST_SHAPES or not self._effort.spend(1 + count):
                return None
            left = narrowed(left, condition)
        return left

    def _find_overlap(self, groups: Sequence[_Group]) -> Iterator[Overlap]:
        """Yield one choice of policies with these requirements, with a pod that they match."""
        if any(
            self._remaining_shapes([g for g in groups if g is not each]) == [] for each in groups
        ):
            return  # the group is not minimal
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
    """Return whether all the others are enforced for each pod of one."""
    return any(all(other.outruns(each) for other in policies) for each in policies)


def shapes(terms: Iterable[Term]) -> list[Shape]:
    """Return the terms as shapes, without those that no node can meet."""
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
    """Return the nodes that match both lists of shapes; empty if there can be none."""
    found: list[Shape] = []
    for one in some:
        narrow = [_both(one, other) for other in condition]
        if one in narrow:
            found.append(one)  # the condition adds nothing
        else:
            found += [each for each in narrow if each is not None]
    return found


def _both(one: Shape, other: Shape) -> Shape | None:
    """Return the conjunction of two shapes; None if no node can match it."""
    found = dict(one)
    for key, group in other.items():
        mine = one.get(key, ())
        more = [each for each in group if each not in mine]
        if more and mine and not label_values.satisfiable([*mine, *more]):
            return None
        if more:
            found[key] = [*mine, *more]
    return found
