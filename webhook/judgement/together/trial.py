"""Conflicts of policies by trial: representative pods of each policy, pair and group are evaluated.

A pod of each policy, of each two that may conflict, and of more that limit nodes. These policies
are tried alone, as if enforced. That pods are rejected, or have no node, is reported if it is so
beside all others that are enforced, too. Exceptions do not count, because they end.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.judgement.together.conflicts import Conflict, finding
from webhook.judgement.together.effort import unfinished
from webhook.judgement.together.outcomes import PLACEMENT_FAULTS, REJECTED
from webhook.judgement.together.pod_trials import MAX_POLICIES, PodTrials
from webhook.judgement.together.witness import find
from webhook.policy.findings import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from webhook.judgement.together.effort import Effort
    from webhook.judgement.together.located_settings import LocatedSetting
    from webhook.judgement.together.outcomes import Line
    from webhook.judgement.together.policy_view import Policy
    from webhook.judgement.together.warnings import Prepared
    from webhook.judgement.together.witness import Witness
    from webhook.placement.nodes import Node
    from webhook.placement.trace import Outcome
    from webhook.policy.findings import Finding

# Of policies with equal settings, how many are tried.
_MOST_ALIKE: Final = 4
# Steps of an effort for two matches compared.
_COMPARISON: Final = 1
_KINDS: Final[Mapping[Outcome, Kind]] = {
    "rejected": Kind.SOME_PODS_REJECTED,
    "dropped": Kind.DROPPED_BESIDE,
    "lost": Kind.EQUAL_PRIORITY,
}


class _SettingEffect(NamedTuple):
    """What becomes of a setting beside another policy.

    member:   which of the two policies has it: 0, the first, or 1
    position: among its `non_defaults`
    later:    only after a fallback
    """

    member: int
    position: int
    kind: Kind
    later: bool


class _PairEffect(NamedTuple):
    """What two policies do together: settings without effect or that reject the pod, and what else
    is wrong with it."""

    settings: tuple[_SettingEffect, ...] = ()
    faults: frozenset[str] = frozenset()

    def between(self, first: Policy, second: Policy) -> _PairEffect | None:
        """Return what it is of policies with these priorities: if they differ, names decide
        nothing. None if there is nothing to report."""
        settings = self.settings
        if settings and first.order[0] != second.order[0]:
            settings = tuple([e for e in settings if e.kind is not Kind.EQUAL_PRIORITY])
        if not (settings or self.faults):
            return None
        return self._replace(settings=settings)


class Trial:
    """Tries policies that are prepared, on nodes if they are known."""

    def __init__(self, given: Prepared, nodes: Sequence[Node] | None, effort: Effort) -> None:
        self._policies = given.policies
        self._tables = given.tables
        self._node_count = len(nodes or ())
        self._effort = effort
        self._pods = PodTrials(given, nodes, effort)
        # For which the steps did not suffice.
        self._unchecked: dict[str, Policy] = {}
        self._pair_effects: dict[tuple[bytes, bytes], _PairEffect] = {}

    def findings(
        self, chosen: Sequence[Policy], *, reported: Collection[frozenset[Policy]] = ()
    ) -> Iterator[Finding]:
        """Yield findings that involve the chosen policies.

        Groups in `reported` are already known to reject pods.
        """
        conflicts_by_key: dict[tuple[object, ...], list[Conflict]] = {}
        for conflict in self.conflicts(chosen):
            is_reported = frozenset((conflict.policy, *conflict.others)) in reported
            if not (is_reported and conflict.kind is Kind.SOME_PODS_REJECTED):
                conflicts_by_key.setdefault(conflict.finding_key, []).append(conflict)
        for conflicts in conflicts_by_key.values():
            yield finding(
                sorted(conflicts, key=lambda conflict: [e.order for e in conflict.others])
            )
        yield from (unfinished(policy) for policy in self._unchecked.values())

    def conflicts(self, chosen: Sequence[Policy]) -> Iterator[Conflict]:
        """Yield what the chosen policies do together with others, and refusals of their own
        pods."""
        tried: set[str] = set()
        for policy in chosen:
            refused = self._effort.refused
            tried.add(policy.name)
            yield from self._refusals(policy)
            yield from self._pairs(policy, tried)
            self._note_unchecked(policy, refused)
        reported_names: set[str] = set()
        for policy in chosen:
            refused = self._effort.refused
            for conflict in self._groups(policy):
                if conflict.policy.name not in reported_names:
                    reported_names.add(conflict.policy.name)
                    yield conflict
            self._note_unchecked(policy, refused)

    def _note_unchecked(self, policy: Policy, refused: int) -> None:
        if self._effort.refused > refused:
            self._unchecked[policy.name] = policy

    def _candidates(self, policy: Policy) -> Sequence[Policy]:
        """Return the policies of other settings that may conflict with it, in their order."""
        by_key = self._tables.by_conflict_key
        near: set[Policy] = set()
        near.update(*(by_key[key] for key in policy.conflict_keys))
        if self._pods.knows_nodes and policy.concerns_nodes:
            near.update(self._tables.concerning_nodes)
        others = [other for other in near if other.settings_text != policy.settings_text]
        return sorted(others, key=self._tables.places.__getitem__)

    def _share_pods(self, first: Policy, second: Policy) -> bool:
        """Return whether a pod may get settings of both; False, if there is no time."""
        steps = _COMPARISON * max(first.match_work, second.match_work)
        return self._effort.spend(steps) and not first.is_disjoint(second)

    # One policy.

    def _refusals(self, policy: Policy) -> Iterator[Conflict]:
        """Yield why the API server refuses the policy's pod, with it alone and beside others."""
        pod = self._pods.find((policy,))
        outcome = pod and self._pods.outcome_alone(policy, pod)
        if pod is None or not outcome:
            return
        for why in sorted(outcome.refusals):
            later = why not in outcome.before_fallbacks[1]
            yield Conflict(policy, ("spec",), Kind.REFUSED_PODS, (), pod, why, policy, later)
        group = self._pods.with_enforced((policy,), pod)
        together = self._pods.outcome(group, pod) if len(group) > 1 else None
        for why in sorted(together.refusals - outcome.refusals) if together else ():
            needed = self._pods.minimal_group(group, pod, why)
            if policy in needed:
                yield from self._group_conflict(needed, pod, why)

    # Two policies.

    def _pairs(self, policy: Policy, tried: Collection[str]) -> Iterator[Conflict]:
        """Yield what the policy does together with each other one that was not tried before."""
        for other in self._candidates(policy):
            if other.name in tried:
                continue
            first, second = (policy, other) if policy.order < other.order else (other, policy)
            effect = self._pair_effects.get((first.settings_text, second.settings_text))
            may_conflict = effect is None or effect.between(first, second)
            if may_conflict and self._share_pods(first, second):
                yield from self._pair(first, second)

    def _pair(self, first: Policy, second: Policy) -> Iterator[Conflict]:
        both, key = (first, second), (first.settings_text, second.settings_text)
        pod = self._pods.find(both)
        if pod is None:
            return
        if key not in self._pair_effects:
            self._pair_effects[key] = self._pair_effect(both, pod)
        effect = self._pair_effects[key].between(first, second)
        if effect is None:
            return
        for member, position, kind, later in effect.settings:
            policy, other = both[member], both[1 - member]
            if kind is not Kind.SOME_PODS_REJECTED or self._pods.is_unplaced(both, pod):
                path = policy.non_defaults[position].path
                yield Conflict(policy, path, kind, (other,), pod, later=later)
        for fault in sorted(effect.faults):
            yield from self._group_conflict(both, pod, fault)

    def _pair_effect(self, both: tuple[Policy, Policy], pod: Witness) -> _PairEffect:
        """Return what two policies do together, and neither does alone."""
        outcome = self._pods.outcome(both, pod)
        if outcome is None:
            return _PairEffect()
        alone = [self._pods.outcome_alone(policy, pod) for policy in both]
        lines = outcome.lines.difference(*(single.lines for single in alone if single))
        first_lines = lines & outcome.before_fallbacks[0]
        settings = [
            _SettingEffect(
                member, position, kind, _kind(located, first_lines, policy, other) is not kind
            )
            for member, (policy, other) in enumerate((both, both[::-1]))
            for position, located in enumerate(policy.non_defaults)
            if (kind := _kind(located, lines, policy, other))
        ]
        faults = frozenset(
            fault
            for fault in outcome.faults - {REJECTED}
            if len(self._pods.minimal_group(both, pod, fault)) == len(both)
        )
        return _PairEffect(tuple(settings), faults)

    # Three policies and more.

    def _groups(self, policy: Policy) -> Iterator[Conflict]:
        """Yield minimal groups of three and more that leave no node, the policy among them."""
        if not self._pods.leaves_nodes(policy):
            return
        rivals = self._rivals(policy)
        covered: set[str] = set()
        for first in rivals:
            if first.name not in covered:
                yield from self._grow((policy, first), rivals, covered)

    def _rivals(self, policy: Policy) -> list[Policy]:
        """Return policies that leave some nodes to the pods that they share with the policy.

        Of policies with equal settings, a few are tried.
        """
        alike: Counter[bytes] = Counter()
        rivals = []
        for other in self._candidates(policy):
            if (
                alike[other.settings_text] < _MOST_ALIKE
                and self._share_pods(policy, other)
                and self._pods.leaves_nodes(other)
            ):
                alike[other.settings_text] += 1
                rivals.append(other)
        return rivals

    def _grow(
        self, group: tuple[Policy, ...], rivals: Sequence[Policy], covered: set[str]
    ) -> Iterator[Conflict]:
        """Add rivals to the group as long as a node is left; yield what leaves none.

        Names of rivals that were added, or are in a conflict, are added to `covered`.
        """
        policy = group[0]
        for rival in rivals:
            if len(group) == MAX_POLICIES:
                return
            if not all(self._may_join(rival, member) for member in group):
                continue
            larger = (*group, rival)
            pod = self._pods.find(larger)
            outcome = pod and self._pods.outcome(larger, pod)
            if not outcome or not pod:
                continue
            fault = next((fault for fault in PLACEMENT_FAULTS if fault in outcome.faults), None)
            if fault is None:
                group = larger
                covered.add(rival.name)
                continue
            needed = self._pods.minimal_group(larger, pod, fault)
            if len(needed) > 2 and policy in needed:
                covered.add(rival.name)
                yield from self._group_conflict(needed, pod, fault)

    def _may_join(self, rival: Policy, member: Policy) -> bool:
        """Return whether the two have other settings, and pods in common."""
        return member.settings_text != rival.settings_text and self._share_pods(member, rival)

    def _group_conflict(
        self, group: Sequence[Policy], pod: Witness, fault: str
    ) -> Iterator[Conflict]:
        """Yield the conflict of a group with this fault, at the last of its policies."""
        *others, last = group = sorted(group, key=lambda policy: policy.order)
        pod = find(group) or pod
        outcome = self._pods.outcome(group, pod)
        later = outcome is not None and fault not in outcome.before_fallbacks[1]
        if fault not in PLACEMENT_FAULTS:
            kind = Kind.REFUSED_PODS
            yield Conflict(last, ("spec",), kind, tuple(others), pod, fault, later=later)
        elif not self._pods.is_unplaced(group, pod):
            return
        elif fault == REJECTED:
            path = ("spec", "requirements")
            kind = Kind.SOME_PODS_REJECTED
            yield Conflict(last, path, kind, tuple(others), pod, later=later)
        else:
            yield self._without_node(group, pod, later=later)

    def _without_node(self, group: Sequence[Policy], pod: Witness, *, later: bool) -> Conflict:
        *others, last = group
        # The last first: the finding is reported there.
        certain = next(
            (policy for policy in reversed(group) if self._concerns_all_pods(policy, group)), None
        )
        paths = [located.path for located in last.settings if located.node_keys]
        return Conflict(
            policy=last,
            path=paths[0] if len(paths) == 1 else ("spec",),
            kind=Kind.NO_NODE,
            others=tuple(others),
            pod=pod,
            why=str(self._node_count),
            certain=None if later else certain,
            later=later,
        )

    def _concerns_all_pods(self, policy: Policy, group: Sequence[Policy]) -> bool:
        """Return whether a conflict holds for each pod of a policy, which is enforced itself.

        All the others are enforced for each of these pods, and no further policy restricts nodes
        for some of them, because that may override these settings, or allow nodes.
        """
        if not policy.enforced or not all(other.is_enforced_wherever(policy) for other in group):
            return False
        return not any(
            other.concerns_nodes and not other.is_disjoint(policy)
            for other in self._policies
            if other not in group
        )


def _kind(
    located: LocatedSetting, lines: Collection[Line], policy: Policy, other: Policy
) -> Kind | None:
    """Return what becomes of a policy's setting beside the other policy; None for its effect."""
    setting = located.setting
    for outcome, kind in _KINDS.items():
        if (policy.name, setting.part, setting.field, outcome) in lines:
            if outcome != "lost":
                return kind
            rivals = {rival.setting.field for rival in other.settings_of("overrides")}
            if setting.part == "overrides" and setting.field in rivals:
                return kind
    return None
