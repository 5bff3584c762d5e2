"""Requirements that together reject every pod of a policy, kind, role or namespace.

A requirement rejects a pod if an enforced one contradicts it. A trial reports policies that reject
some pod. Here it is proved that each pod of a set is rejected. A set is the pods that a policy
matches, or all pods with a value that a match block names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from webhook.judgement.together.effort import fold_steps
from webhook.judgement.together.pod_sets import ALL_RUN_PODS, PodSet
from webhook.placement.capacity_setting import CapacitySetting
from webhook.placement.fold import fold
from webhook.placement.settings import TolerationSetting
from webhook.placement.tolerations import covers, normal
from webhook.policy.findings import Kind
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from webhook.judgement.together.effort import Effort
    from webhook.judgement.together.located_settings import LocatedSetting
    from webhook.judgement.together.policy_view import Policy
    from webhook.judgement.together.warnings import Prepared
    from webhook.placement.bundle import Bundle
    from webhook.placement.placement_setting import PlacementSetting
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

    conflict_keys: the node labels and fields that they restrict
    contradicted: whether they contradict those of a policy after it, as long as both are kept
    """

    policy: Policy
    settings: tuple[LocatedSetting, ...]
    conflict_keys: frozenset[str]
    contradicted: WeakKeyDictionary[Demand, bool] = field(default_factory=WeakKeyDictionary)

    def holds_for(self, pods: PodSet) -> bool:
        """Return whether the policy is enforced for all of these pods."""
        return self.policy.enforced_for(pods.reach, pods.policy, required=True)


class Rejecting(NamedTuple):
    """A minimal group of policies, in their order, and the pods that they reject."""

    members: tuple[Demand, ...]
    pods: tuple[str, ...]

    @property
    def policies(self) -> frozenset[Policy]:
        """The policies."""
        return frozenset(member.policy for member in self.members)

    def finding(self) -> Finding:
        """Return the error, at the policy that contradicts those before it."""
        bundle = _folded(self.members)
        last = next(entry for entry in reversed(bundle.trace) if entry.outcome == "rejected")
        policy, located = next(
            (member.policy, located)
            for member in self.members
            for located in member.settings
            if (member.policy.name, located.setting.field) == (last.policy, last.field)
        )
        what = f"every pod {first_few(self.pods, _NAMED)} is rejected: {bundle.contradictions[-1]}"
        about = " ".join(sorted(member.policy.name for member in self.members))
        return policy.document.finding(
            located.path, what, about=about, kind=Kind.EVERY_POD_REJECTED
        )


def rejecting(given: Prepared, chosen: Collection[Policy], effort: Effort) -> Iterator[Rejecting]:
    """Yield groups of policies that reject whole sets of pods, each with one of the chosen.

    A policy that contradicts itself is left out: it rejects all of its pods without any other.
    """
    if any(policy.requirements for policy in chosen):
        yield from _Search(given, chosen, effort).groups()


class _Search:
    def __init__(self, given: Prepared, chosen: Collection[Policy], effort: Effort) -> None:
        self._tables = given.tables
        self._policies = given.policies
        self._demands = given.tables.demands
        self._effort = effort
        # No other policy has part in a group.
        self._chosen = {
            demand.policy: demand for policy in chosen if (demand := self._demands.get(policy.name))
        }
        self._match_work = sum(policy.match_work for policy in self._chosen)
        self._known: dict[tuple[Demand, ...], bool] = {}

    def groups(self) -> Iterator[Rejecting]:
        """Yield groups that reject a set."""
        if not self._chosen:
            return
        texts_by_members: dict[tuple[Demand, ...], list[str]] = {}
        for pods in self._sets():
            if self._effort.is_over:
                break
            for members in self._minimal_groups(
                [demand for demand in self._candidates(pods) if demand.holds_for(pods)]
            ):
                texts_by_members.setdefault(members, []).append(pods.text)
        for members, texts in texts_by_members.items():
            # A policy's own pods are named only if they are not the pods of a listed set.
            words = [text for text in texts if not text.startswith("that policy")]
            listed = texts[:1] if texts[0] == ALL_RUN_PODS.text else words or texts
            yield from self._if_chosen(members, listed)

    def _sets(self) -> Iterator[PodSet]:
        """Yield the sets of pods for which one of the chosen holds.

        All of them if the chosen are many, each of which is evaluated later, and once nothing is
        left to spend.
        """
        if len(self._chosen) >= _POLICIES_EVALUATED_FIRST:
            yield from self._tables.pod_sets()
            return
        demands = list(self._chosen.values())
        work, spend = self._match_work, self._effort.spend
        for pods in self._tables.pod_sets():
            if not spend(work):
                yield pods
                continue
            for demand in demands:
                # Of most sets the match alone tells.
                policy = demand.policy
                if (policy.match.covers(pods.reach) or policy is pods.policy) and (
                    demand.holds_for(pods)
                ):
                    yield pods
                    break

    def _if_chosen(self, members: Sequence[Demand], texts: Sequence[str]) -> Iterator[Rejecting]:
        if any(demand.policy in self._chosen for demand in members) and self._effort.spend(
            _steps(members)
        ):
            yield Rejecting(_in_order(members), tuple(texts))

    def _candidates(self, pods: PodSet) -> Sequence[Demand]:
        """Return the policies that may hold for all of these pods, by name: those that match one.

        By name: of several that contradict, a change of priority shall not choose others.
        """
        size = pods.policy.match_work if pods.policy else 1
        steps = _STEPS_OF_A_SEARCH * size + self._tables.match_steps
        if not self._effort.spend(steps) or pods.is_empty:
            return ()
        candidates = [*self._demands.values()]
        if pods.example is not None:
            names = (self._policies[at].name for at in self._tables.matching(pods.example))
            candidates = [self._demands[name] for name in sorted(names) if name in self._demands]
        if not self._effort.spend(
            sum(demand.policy.match_work + size - 1 for demand in candidates)
        ):
            return ()
        return candidates

    def _minimal_groups(self, group: Sequence[Demand]) -> Iterator[tuple[Demand, ...]]:
        """Yield a minimal group for each policy that contradicts those before it: a pair, if
        possible. Of many policies, each is compared with the first for one of its conflict_keys."""
        few = len(group) <= _MAX_POLICIES
        if len(group) < 2 or (few and not self._contradict(group)):
            return
        kept: list[Demand] = []
        first: dict[str, Demand] = {}
        for demand in group:
            rivals = (
                kept if few else dict.fromkeys(first[t] for t in demand.conflict_keys if t in first)
            )
            pairs = [(rival, demand) for rival in rivals]
            members: tuple[Demand, ...] | None = next(filter(self._contradict, pairs), None)
            if members is None and few and self._contradict([*kept, demand]):
                members = self._minimal_group([*kept, demand])
            if members:
                yield members
                continue
            kept.append(demand)
            first = {**dict.fromkeys(demand.conflict_keys, demand), **first}

    def _minimal_group(self, group: list[Demand]) -> tuple[Demand, ...]:
        for demand in [*group]:
            others = [other for other in group if other is not demand]
            if self._contradict(others):
                group = others
        return tuple(group)

    def _contradict(self, group: Sequence[Demand]) -> bool:
        """Return whether the requirements of these contradict each other."""
        group = _in_order(group)
        is_contradictory = self._known.get(group)
        if is_contradictory is None:
            if not self._effort.spend(_steps(group)):
                return False
            is_contradictory = self._known[group] = _are_contradictory(group)
        return is_contradictory


def _steps(group: Sequence[Demand]) -> int:
    work = _STEPS_OF_A_FOLD * sum(demand.policy.fold_work for demand in group)
    return work + fold_steps(demand.policy.condition for demand in group)


def _are_contradictory(group: tuple[Demand, ...]) -> bool:
    # Of two it is remembered for the next set: most of its policies are in this one.
    first, *others = group
    if len(others) != 1:
        return bool(_folded(group).contradictions)
    is_contradictory = first.contradicted.get(others[0])
    if is_contradictory is None:
        is_contradictory = first.contradicted[others[0]] = bool(_folded(group).contradictions)
    return is_contradictory


def demands(policies: Sequence[Policy]) -> dict[str, Demand]:
    """Return the enforced policies by name, without requirements that may yield to another's.

    A requirement of a class yields if another policy requires None of it, and a toleration if a
    wider one comes before it. A policy that contradicts itself is left out.
    """
    requiring = [policy for policy in policies if policy.requirements and not policy.contradictory]
    required = [located.setting for policy in requiring for located in policy.requirements]
    capacity = [setting for setting in required if isinstance(setting, CapacitySetting)]
    none = {setting.field for setting in capacity if setting.mode.does_nothing}
    broad = {
        normal(setting.toleration).reach: setting.toleration
        for setting in required
        if isinstance(setting, TolerationSetting)
    }

    def is_sure(setting: PlacementSetting) -> bool:
        if isinstance(setting, CapacitySetting):
            return setting.field not in none
        return not isinstance(setting, TolerationSetting) or not any(
            covers(wider, setting.toleration)
            for reach, wider in broad.items()
            if reach != normal(setting.toleration).reach
        )

    demand_by_name = {}
    for policy in sorted(requiring, key=lambda policy: policy.name):
        listed = enumerate(policy.requirements)
        sure = tuple([at for at, located in listed if is_sure(located.setting)])
        if policy.enforced and sure:
            if sure not in policy.demands:
                policy.demands[sure] = _demand(policy, [policy.requirements[at] for at in sure])
            demand_by_name[policy.name] = policy.demands[sure]
    return demand_by_name


def _demand(policy: Policy, sure: Sequence[LocatedSetting]) -> Demand:
    # Prefer and Prevent contradict each other, though Prefer limits no nodes.
    classes = {
        located.setting.field for located in sure if isinstance(located.setting, CapacitySetting)
    }
    conflict_keys = {
        conflict_key
        for located in sure
        for conflict_key in located.conflict_keys or {located.setting.field}
    }
    return Demand(policy, tuple(sure), frozenset(conflict_keys | classes))


def _in_order(group: Iterable[Demand]) -> tuple[Demand, ...]:
    return tuple(sorted(group, key=lambda demand: demand.policy.order))


def _folded(group: Sequence[Demand]) -> Bundle:
    names = [demand.policy.name for demand in group]
    return fold(names, [located.setting for demand in group for located in demand.settings])
