"""Requirements that together reject every pod of a policy, kind, role or namespace.

A requirement rejects a pod if an enforced one contradicts it. A trial reports policies that reject
some pod. Here it is proved that each pod of a set is rejected. A set is the pods that a policy
matches, or all pods with a value that a match block names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from webhook.judgement.together.pod_sets import ALL_RUN_PODS, PodSet
from webhook.judgement.together.policy_view import fold_steps
from webhook.placement.fold import fold
from webhook.placement.settings import CapacitySetting, TolerationSetting
from webhook.placement.tolerations import covers, normal
from webhook.policy.findings import Kind
from webhook.policy.matched_pods import MatchedPods, atoms
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from webhook.judgement.together.policy_view import Effort, LocatedSetting, Policy
    from webhook.judgement.together.warnings import Prepared
    from webhook.placement.bundle import Bundle
    from webhook.placement.settings import PlacementSetting
    from webhook.policy.findings import Finding

_NAMED: Final = 3
# Above this number, only requirements for the same node label or field are checked together.
_MAX_POLICIES: Final = 20
# Up to this number, each of the chosen policies is evaluated first.
_POLICIES_EVALUATED_FIRST: Final = 8
# The cost of folding one policy with others, and of finding a pod.
_STEPS_OF_A_FOLD: Final = 10
_STEPS_OF_A_SEARCH: Final = 12


@dataclass(frozen=True, eq=False)
class Demand:
    """An enforced policy with the requirements that no other policy can make yield.

    `tokens` are the node labels and fields that they restrict. `contradicted` has whether they
    contradict those of a policy after it, as long as both are kept.
    """

    policy: Policy
    settings: tuple[LocatedSetting, ...]
    tokens: frozenset[str]
    contradicted: WeakKeyDictionary[Demand, bool] = field(default_factory=WeakKeyDictionary)

    def holds_for(self, pods: PodSet) -> bool:
        """Return whether the policy is enforced for all of these pods."""
        return self.policy.enforced_for(pods.reach, pods.of, required=True)


class Rejecting(NamedTuple):
    """A minimal group of policies, in their order, and the pods that they reject."""

    members: tuple[Demand, ...]
    pods: tuple[str, ...]

    @property
    def policies(self) -> frozenset[Policy]:
        """The policies."""
        return frozenset(each.policy for each in self.members)

    def finding(self) -> Finding:
        """Return the error, at the policy that contradicts those before it."""
        bundle = _folded(self.members)
        last = next(each for each in reversed(bundle.trace) if each.outcome == "rejected")
        policy, located = next(
            (each.policy, located)
            for each in self.members
            for located in each.settings
            if (each.policy.name, located.setting.field) == (last.policy, last.field)
        )
        what = f"every pod {first_few(self.pods, _NAMED)} is rejected: {bundle.contradictions[-1]}"
        about = " ".join(sorted(each.policy.name for each in self.members))
        return policy.document.finding(
            located.path, what, about=about, kind=Kind.EVERY_POD_REJECTED
        )


def rejecting(given: Prepared, chosen: Collection[Policy], effort: Effort) -> Iterator[Rejecting]:
    """Yield groups of policies that reject whole sets of pods, each with one of the chosen.

    A policy that contradicts itself is left out: it rejects all of its pods without any other.
    """
    if any(each.requirements for each in chosen):
        yield from _Search(given, chosen, effort).groups()


class _Search:
    def __init__(self, given: Prepared, chosen: Collection[Policy], effort: Effort) -> None:
        self._tables = given.tables
        self._policies = given.policies
        self._demands = given.tables.demands
        self._effort = effort
        # No other policy has part in a group.
        self._chosen = {
            each.policy: each for one in chosen if (each := self._demands.get(one.name))
        }
        self._work_to_match = sum(each.work_to_match for each in self._chosen)
        self._known: dict[tuple[Demand, ...], bool] = {}

    def groups(self) -> Iterator[Rejecting]:
        """Yield groups that reject a set, then those each of which rejects a part of one."""
        if not self._chosen:
            return
        found: dict[tuple[Demand, ...], list[str]] = {}
        for pods in filter(self._concerns_chosen, self._tables.pod_sets()):
            if self._effort.is_over:
                break
            for core in self._cores([each for each in self._near(pods) if each.holds_for(pods)]):
                found.setdefault(core, []).append(pods.text)
        for core, texts in found.items():
            # A policy's own pods are named only if they are not the pods of a listed set.
            words = [each for each in texts if not each.startswith("that policy")]
            listed = texts[:1] if texts[0] == ALL_RUN_PODS.text else words or texts
            yield from self._chosen_one(core, listed)
        known = {each for core in found for each in core}
        tokens = frozenset[str]().union(*(each.tokens for each in self._chosen.values()))
        for one in self._demands.values():
            if self._effort.is_over:
                return
            if one in known or tokens.isdisjoint(one.tokens):
                continue
            pods = one.policy.matched_set
            if one.holds_for(pods) and (rivals := self._covering(one, pods)):
                yield from self._chosen_one((one, *rivals), [pods.text])

    def _concerns_chosen(self, pods: PodSet) -> bool:
        """Return whether one of the chosen holds for the pods; of many, each is evaluated later.
        Also, once nothing is left to spend."""
        if len(self._chosen) >= _POLICIES_EVALUATED_FIRST or not self._effort.spend(
            self._work_to_match
        ):
            return True
        return any(each.holds_for(pods) for each in self._chosen.values())

    def _chosen_one(self, core: Sequence[Demand], texts: Sequence[str]) -> Iterator[Rejecting]:
        if any(each.policy in self._chosen for each in core) and self._effort.spend(_steps(core)):
            yield Rejecting(_in_order(core), tuple(texts))

    def _near(self, pods: PodSet) -> Sequence[Demand]:
        """Return the policies that may hold for all of these pods, by name: those that match one.

        By name: of several that contradict, a change of priority shall not choose others.
        """
        size = pods.of.work_to_match if pods.of else 1
        steps = _STEPS_OF_A_SEARCH * size + self._tables.match_steps
        if not self._effort.spend(steps) or pods.is_empty:
            return ()
        found = [*self._demands.values()]
        if pods.example is not None:
            names = (self._policies[at].name for at in self._tables.matching(pods.example))
            found = [self._demands[name] for name in sorted(names) if name in self._demands]
        if not self._effort.spend(sum(each.policy.work_to_match + size - 1 for each in found)):
            return ()
        return found

    def _cores(self, group: Sequence[Demand]) -> Iterator[tuple[Demand, ...]]:
        """Yield a minimal group for each policy that contradicts those before it: a pair, if
        possible. Of many policies, each is compared with the first for one of its tokens."""
        few = len(group) <= _MAX_POLICIES
        if len(group) < 2 or (few and not self._contradict(group)):
            return
        kept: list[Demand] = []
        first: dict[str, Demand] = {}
        for each in group:
            rivals = kept if few else dict.fromkeys(first[t] for t in each.tokens if t in first)
            pairs = [(one, each) for one in rivals]
            core: tuple[Demand, ...] | None = next(filter(self._contradict, pairs), None)
            if core is None and few and self._contradict([*kept, each]):
                core = self._least([*kept, each])
            if core:
                yield core
                continue
            kept.append(each)
            first = {**dict.fromkeys(each.tokens, each), **first}

    def _least(self, group: list[Demand]) -> tuple[Demand, ...]:
        for each in [*group]:
            others = [other for other in group if other is not each]
            if self._contradict(others):
                group = others
        return tuple(group)

    def _covering(self, one: Demand, whole: PodSet) -> Sequence[Demand]:
        """Return policies of which each pod of the policy is rejected by one, and none rejects the
        whole; none if a pod may pass.

        For example one for workers, with one for jobs and one for all other kinds.
        """
        found: dict[Demand, None] = {}
        chosen = self._chosen_beside(one)
        if not chosen:
            return ()
        parts = [
            PodSet("", atom, MatchedPods(atom), one.policy) for atom in atoms(one.policy.bound)
        ]
        if one not in chosen and not any(each.holds_for(p) for each in chosen for p in parts):
            return ()
        for pods in parts:
            if pods.is_empty:
                continue
            near = [each for each in self._near(pods) if each.tokens & one.tokens]
            # Few of those that match one of the pods hold for all of them.
            rivals = [e for e in near if e.holds_for(pods) and self._contradict((one, e))]
            # A policy that rejects all of its pods is already known.
            if not rivals or any(each.holds_for(whole) for each in rivals):
                return ()
            found[rivals[0]] = None
        return [*found]

    def _chosen_beside(self, one: Demand) -> Sequence[Demand]:
        """Return the chosen policies that may have part in a group with this one: itself, if it is
        chosen. If many are chosen, they are not asked for."""
        if one.policy in self._chosen or len(self._chosen) >= _POLICIES_EVALUATED_FIRST:
            return [one]
        return [
            each
            for each in self._chosen.values()
            if not one.tokens.isdisjoint(each.tokens)
            and self._effort.spend(max(one.policy.work_to_match, each.policy.work_to_match))
            and each.policy.match.may_cover_part(one.policy.matched_set.reach)
            and not one.policy.apart(each.policy)
        ]

    def _contradict(self, some: Sequence[Demand]) -> bool:
        """Return whether the requirements of these contradict each other."""
        some = _in_order(some)
        found = self._known.get(some)
        if found is None:
            if not self._effort.spend(_steps(some)):
                return False
            found = self._known[some] = _are_contradictory(some)
        return found


def _steps(some: Sequence[Demand]) -> int:
    work = _STEPS_OF_A_FOLD * sum(each.policy.work for each in some)
    return work + fold_steps(each.policy for each in some)


def _are_contradictory(some: tuple[Demand, ...]) -> bool:
    # Of two it is remembered for the next set: most of its policies are in this one.
    first, *others = some
    if len(others) != 1:
        return bool(_folded(some).contradictions)
    found = first.contradicted.get(others[0])
    if found is None:
        found = first.contradicted[others[0]] = bool(_folded(some).contradictions)
    return found


def demands(policies: Sequence[Policy]) -> dict[str, Demand]:
    """Return the enforced policies by name, without requirements that may yield to another's.

    A requirement of a class yields if another policy requires None of it, and a toleration if a
    wider one comes before it. A policy that contradicts itself is left out.
    """
    requiring = [each for each in policies if each.requirements and not each.contradictory]
    required = [located.setting for each in requiring for located in each.requirements]
    capacity = [each for each in required if isinstance(each, CapacitySetting)]
    none = {each.field for each in capacity if each.mode.does_nothing}
    broad = {
        normal(each.toleration).reach: each.toleration
        for each in required
        if isinstance(each, TolerationSetting)
    }

    def is_sure(setting: PlacementSetting) -> bool:
        if isinstance(setting, CapacitySetting):
            return setting.field not in none
        return not isinstance(setting, TolerationSetting) or not any(
            covers(wider, setting.toleration)
            for reach, wider in broad.items()
            if reach != normal(setting.toleration).reach
        )

    found = {}
    for policy in sorted(requiring, key=lambda each: each.name):
        listed = enumerate(policy.requirements)
        sure = tuple([at for at, each in listed if is_sure(each.setting)])
        if policy.enforced and sure:
            if sure not in policy.demands:
                policy.demands[sure] = _demand(policy, [policy.requirements[at] for at in sure])
            found[policy.name] = policy.demands[sure]
    return found


def _demand(policy: Policy, sure: Sequence[LocatedSetting]) -> Demand:
    # Prefer and Prevent contradict each other, though Prefer limits no nodes.
    classes = {each.setting.field for each in sure if isinstance(each.setting, CapacitySetting)}
    tokens = {token for each in sure for token in each.rivals or {each.setting.field}}
    return Demand(policy, tuple(sure), frozenset(tokens | classes))


def _in_order(some: Iterable[Demand]) -> tuple[Demand, ...]:
    return tuple(sorted(some, key=lambda each: each.policy.order))


def _folded(some: Sequence[Demand]) -> Bundle:
    names = [each.policy.name for each in some]
    return fold(names, [located.setting for each in some for located in each.settings])
