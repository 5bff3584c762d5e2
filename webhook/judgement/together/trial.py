"""What policies do to one pod together: the evaluation decides representative pods of a set.

A pod of each policy, of each two that may conflict, and of more that limit nodes. These policies
are tried alone, as if enforced. That pods are rejected, or have no node, is reported if it is so
beside all others that are enforced, too. Exceptions do not count, because they end.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.decision.arrival import Cluster
from webhook.evaluation.world import World
from webhook.judgement.together.alone import Conflict, finding
from webhook.judgement.together.outcomes import LACKS_NODE, REJECTED, PodOutcome
from webhook.judgement.together.policy_view import fold_steps, unfinished
from webhook.judgement.together.witness import find
from webhook.placement.fallback import fallen
from webhook.policy.findings import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from webhook.evaluation.evaluation import Evaluation
    from webhook.judgement.together.outcomes import Line
    from webhook.judgement.together.policy_view import Effort, LocatedSetting, Policy
    from webhook.judgement.together.warnings import Prepared
    from webhook.judgement.together.witness import Witness
    from webhook.placement.nodes import Node
    from webhook.placement.trace import Outcome
    from webhook.policy.findings import Finding
    from webhook.policy.policy_set import PolicySet

# Policies that are put together; of those with equal settings, how many are tried.
_MAX_POLICIES: Final = 5
_MOST_ALIKE: Final = 4
# Steps of an effort: for the evaluation of a pod, the search for one, and two matches compared.
_EVALUATION, _SEARCH, _LOOK = 80, 12, 1
# How often an evaluation goes through the condition on nodes.
_FOLDS: Final = 3
# When nodes were lost, for pods that have lost as many as a fallback may wait for.
_ANY_TIME: Final = datetime(2026, 1, 1, tzinfo=UTC)
_KINDS: Final[Mapping[Outcome, Kind]] = {
    "rejected": Kind.SOME_PODS_REJECTED,
    "dropped": Kind.DROPPED_BESIDE,
    "lost": Kind.EQUAL_PRIORITY,
}


class _Effect(NamedTuple):
    """What two policies do together: which settings of which of the two (0: the first) are without
    effect or reject the pod, and whether only after a fallback; and what else is wrong with it."""

    settings: tuple[tuple[int, int, Kind, bool], ...] = ()
    faults: frozenset[str] = frozenset()

    def between(self, first: Policy, second: Policy) -> _Effect | None:
        """Return what it is of policies with these priorities: if they differ, names decide
        nothing. None if there is nothing to report."""
        settings = self.settings
        if settings and first.order[0] != second.order[0]:
            settings = tuple([s for s in settings if s[2] is not Kind.EQUAL_PRIORITY])
        if not (settings or self.faults):
            return None
        return self._replace(settings=settings)


class Trial:
    """Tries policies that are prepared, on nodes if they are known."""

    def __init__(self, given: Prepared, nodes: Sequence[Node] | None, effort: Effort) -> None:
        self._policies = given.policies
        self._whole = given.whole
        self._tables = given.tables
        self._plugins = given.inputs
        self._total = len(nodes or ())
        self._nodes = given.tables.different(nodes) if nodes else None
        self._effort = effort
        # For which the steps did not suffice.
        self._unchecked: dict[str, Policy] = {}
        self._large: dict[tuple[int, ...], PolicySet] = {}
        # By name and the pod's operating system; by name, whether a policy alone leaves a node.
        self._alone: dict[tuple[str, str], PodOutcome | None] = {}
        self._sparing: dict[str, bool] = {}
        self._kept = given.tables.outcomes.beside(given.inputs)
        # What happens to the last pod, by the names of the policies and whether nodes count.
        self._last: tuple[Witness | None, dict[tuple[object, ...], PodOutcome]] = (None, {})
        self._pairs: dict[tuple[bytes, bytes], _Effect] = {}

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
                conflicts_by_key.setdefault(conflict.alike, []).append(conflict)
        for alike in conflicts_by_key.values():
            yield finding(sorted(alike, key=lambda conflict: [e.order for e in conflict.others]))
        yield from (unfinished(policy) for policy in self._unchecked.values())

    def conflicts(self, chosen: Sequence[Policy]) -> Iterator[Conflict]:
        """Yield what the chosen policies do together with others, and refusals of their own
        pods."""
        done: set[str] = set()
        for policy in chosen:
            refused = self._effort.refused
            done.add(policy.name)
            pod = self._find((policy,))
            if pod is not None and (outcome := self._own(policy, pod)):
                for why in sorted(outcome.refusals):
                    later, path = why not in outcome.before_fallbacks[1], ("spec",)
                    yield Conflict(policy, path, Kind.REFUSED_PODS, (), pod, why, policy, later)
                yield from self._as_served(policy, pod, outcome)
            for other in self._near(policy):
                if other.name in done:
                    continue
                first, second = (policy, other) if policy.order < other.order else (other, policy)
                effect = self._pairs.get((first.mind, second.mind))
                is_reported = effect is None or effect.between(first, second)
                if is_reported and self._meet(first, second):
                    yield from self._pair(first, second)
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

    def _near(self, policy: Policy) -> Sequence[Policy]:
        """Return the policies of other settings that may conflict with it, in their order."""
        near: set[Policy] = set()
        near.update(*(self._tables.by_token[token] for token in policy.tokens))
        if self._nodes and policy.concerns_nodes:
            near.update(self._tables.of_nodes)
        others = [other for other in near if other.mind != policy.mind]
        return sorted(others, key=self._tables.positions.__getitem__)

    def _meet(self, first: Policy, second: Policy) -> bool:
        """Return whether a pod may get settings of both; False, if there is no time."""
        look = _LOOK * max(first.work_to_match, second.work_to_match)
        return self._effort.spend(look) and not first.apart(second)

    def _pair(self, first: Policy, second: Policy) -> Iterator[Conflict]:
        both, key = (first, second), (first.mind, second.mind)
        pod = self._find(both)
        if pod is None:
            return
        if key not in self._pairs:
            self._pairs[key] = self._effect(both, pod)
        effect = self._pairs[key].between(first, second)
        for at, setting, kind, later in effect.settings if effect else ():
            policy, other = both if at == 0 else (second, first)
            if kind is not Kind.SOME_PODS_REJECTED or self._is_so(both, pod):
                path = policy.hard[setting].path
                yield Conflict(policy, path, kind, (other,), pod, later=later)
        for fault in sorted(effect.faults) if effect else ():
            yield from self._of_group(both, pod, fault)

    def _effect(self, both: tuple[Policy, Policy], pod: Witness) -> _Effect:
        """Return what two policies do together, and neither does alone."""
        outcome = self._evaluated(both, pod)
        if outcome is None:
            return _Effect()
        single_outcomes = [
            single_outcome for policy in both if (single_outcome := self._own(policy, pod))
        ]
        lines = outcome.lines.difference(
            *(single_outcome.lines for single_outcome in single_outcomes)
        )
        first = lines & outcome.before_fallbacks[0]
        settings = [
            (at, setting, kind, _kind(located, first, policy, both[1 - at]) is not kind)
            for at, policy in enumerate(both)
            for setting, located in enumerate(policy.hard)
            if (kind := _kind(located, lines, policy, both[1 - at]))
        ]
        faults = outcome.faults - {REJECTED}
        of_both = (fault for fault in faults if len(self._least(both, pod, fault)) == len(both))
        return _Effect(tuple(settings), frozenset(of_both))

    def _as_served(self, policy: Policy, pod: Witness, alone: PodOutcome) -> Iterator[Conflict]:
        """Yield why the API server refuses the policy's pod beside all policies that match it."""
        group = self._served_with((policy,), pod)
        outcome = self._evaluated(group, pod) if len(group) > 1 else None
        for fault in sorted(outcome.refusals - alone.refusals) if outcome else ():
            least = self._least(group, pod, fault)
            if policy in least:
                yield from self._of_group(least, pod, fault)

    def _served_with(self, group: Sequence[Policy], pod: Witness) -> list[Policy]:
        """Return the group, and the others that match the pod and are enforced."""
        self._effort.spend(self._tables.match_steps)
        # The positions are the same in both: policies have one order.
        matching = self._tables.matching(pod.subject)
        chosen = {at for at in matching if self._policies[at].enforced}
        chosen.update(self._tables.places[policy.name] for policy in group)
        return [self._policies[at] for at in sorted(chosen)]

    def _groups(self, policy: Policy) -> Iterator[Conflict]:
        """Yield minimal groups of three and more that leave no node, the policy among them."""
        if not self._leaves_some(policy):
            return
        # Of policies with equal settings, a few are tried.
        alike: dict[bytes, list[Policy]] = {}
        rivals = []
        for other in self._near(policy):
            tried = alike.setdefault(other.mind, [])
            if len(tried) < _MOST_ALIKE and self._meet(policy, other) and self._leaves_some(other):
                tried.append(other)
                rivals.append(other)
        covered: set[str] = set()
        for first in rivals:
            if first.name not in covered:
                yield from self._grown(policy, first, rivals, covered)

    def _grown(
        self, policy: Policy, first: Policy, rivals: Sequence[Policy], covered: set[str]
    ) -> Iterator[Conflict]:
        """Put rivals to the two as long as a node is left; yield what leaves none."""
        group: tuple[Policy, ...] = (policy, first)
        for other in rivals:
            if len(group) == _MAX_POLICIES:
                return
            if any(member.mind == other.mind or not self._meet(member, other) for member in group):
                continue
            larger = (*group, other)
            pod = self._find(larger)
            outcome = pod and self._evaluated(larger, pod)
            if not outcome or not pod:
                continue
            fault = next(
                (fault for fault in (REJECTED, LACKS_NODE) if fault in outcome.faults), None
            )
            if fault is None:
                group = larger
                covered.add(other.name)
                continue
            least = self._least(larger, pod, fault)
            if len(least) > 2 and policy in least:
                covered.add(other.name)
                yield from self._of_group(least, pod, fault)

    def _of_group(self, group: Sequence[Policy], pod: Witness, fault: str) -> Iterator[Conflict]:
        *others, last = group = sorted(group, key=lambda policy: policy.order)
        pod = find(group) or pod
        outcome = self._evaluated(group, pod)
        later = outcome is not None and fault not in outcome.before_fallbacks[1]
        if fault not in (REJECTED, LACKS_NODE):
            kind = Kind.REFUSED_PODS
            yield Conflict(last, ("spec",), kind, tuple(others), pod, fault, later=later)
        elif not self._is_so(group, pod):
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
            (policy for policy in reversed(group) if self._is_certain(policy, group)), None
        )
        paths = [located.path for located in last.settings if located.limits]
        path = paths[0] if len(paths) == 1 else ("spec",)
        why = str(self._total)
        certain = None if later else certain
        return Conflict(last, path, Kind.NO_NODE, tuple(others), pod, why, certain, later)

    def _least(self, group: Sequence[Policy], pod: Witness, fault: str) -> list[Policy]:
        """Return a part of the group with the same fault, and of which none may be left out."""
        left = list(group)
        for policy in group:
            fewer = [other for other in left if other is not policy]
            outcome = self._evaluated(fewer, pod) if fewer else None
            if outcome and fault in outcome.faults:
                left = fewer
        return [] if self._effort.is_over else left

    def _is_so(self, group: Sequence[Policy], pod: Witness) -> bool:
        """Return whether the pod is rejected or has no node beside all that is enforced, too."""
        outcome = self._evaluated(self._served_with(group, pod), pod, participants=group)
        return outcome is None or bool(outcome.faults & {REJECTED, LACKS_NODE})

    def _is_certain(self, policy: Policy, policies: Sequence[Policy]) -> bool:
        """Return whether it holds for each pod of one of the policies, which is enforced itself.

        All the others are enforced for each of these pods, and no further policy restricts nodes
        for some of them, because that may override these settings, or allow nodes.
        """
        if not policy.enforced or not all(other.outruns(policy) for other in policies):
            return False
        beside = (
            other for other in self._policies if other not in policies and not other.apart(policy)
        )
        return not any(other.concerns_nodes for other in beside)

    def _find(self, policies: Sequence[Policy]) -> Witness | None:
        work = max(policy.work_to_match for policy in policies)
        return find(policies) if self._effort.spend(_SEARCH * work) else None

    def _own(self, policy: Policy, pod: Witness) -> PodOutcome | None:
        """Return what happens to the policy's own pod with it alone, wherever there are nodes.

        To this pod instead, if it is for another operating system.
        """
        key = (policy.name, pod.system)
        if key not in self._alone:
            witness = policy.witness
            if witness is None or witness.system != pod.system:
                self._alone[key] = self._evaluated((policy,), pod, on_nodes=False)
            elif not self._effort.spend(_SEARCH * policy.work_to_match + _work((policy,))):
                return None
            else:
                if policy not in self._kept:
                    outcome = self._outcome((policy,), witness, nodes=None)
                    self._kept[policy] = _if_taking_part(outcome, (policy,))
                self._alone[key] = self._kept[policy]
        return self._alone[key]

    def _evaluated(
        self,
        group: Sequence[Policy],
        pod: Witness,
        participants: Sequence[Policy] = (),
        *,
        on_nodes: bool = True,
    ) -> PodOutcome | None:
        """Return what happens to the pod with these policies alone; None if they, or those in
        `participants`, do not all take part, or if there is no time."""
        nodes = self._nodes if on_nodes else None
        looks = len(nodes or ()) * any(map(self._limiting, group))
        if not self._effort.spend(_work(group) + looks):
            return None
        if self._last[0] != pod:
            self._last = pod, {}
        key = (on_nodes, *(policy.name for policy in group))
        outcomes = self._last[1]
        if key not in outcomes:
            outcomes[key] = self._outcome(group, pod, nodes=nodes)
        return _if_taking_part(outcomes[key], participants or group)

    def _outcome(
        self, group: Sequence[Policy], pod: Witness, *, nodes: Sequence[Node] | None
    ) -> PodOutcome:
        limiting = any(map(self._limiting, group))
        space = pod.subject.namespace
        world = World(
            policies=self._set_of(group),
            cluster=Cluster(),
            namespaces={space: pod.subject.namespace_labels},
            now=None,
            configuration=None,
            classes=None,
            plugins=self._plugins,
            nodes=nodes,
            server=None,
            history=None,
            faults=self._tables.outcomes.faults,
        )
        evaluation = world.evaluate(pod.manifest(), space, led=False)
        every = [evaluation]
        if classes := {name for policy in group for name in policy.fallbacks}:
            later = replace(world, history=fallen(classes, _ANY_TIME))
            every.append(later.evaluate(pod.manifest(), space, led=False))
        lines = [
            frozenset((e.policy, e.part, e.field, e.outcome) for e in evaluation.decision.trace)
            for evaluation in every
        ]
        faults = [frozenset(self._faults(evaluation, limiting=limiting)) for evaluation in every]
        all_lines, all_faults = lines[0].union(*lines), faults[0].union(*faults)
        policies = frozenset(evaluation.decision.policies)
        return PodOutcome(policies, all_lines, all_faults, (lines[0], faults[0]))

    def _faults(self, evaluation: Evaluation, *, limiting: bool) -> set[str]:
        decision = evaluation.decision
        if not decision.allowed:
            return {REJECTED}
        # What a RuntimeClass selects is no setting of a policy.
        classed = decision.placement and decision.placement.runtime_class_name
        checked = evaluation.world.nodes and (limiting or classed)
        lost = checked and evaluation.nodes and evaluation.nodes.none_left
        return {*evaluation.refusals, *([LACKS_NODE] if lost else ())}

    def _set_of(self, group: Sequence[Policy]) -> PolicySet:
        places = tuple([self._tables.places[policy.name] for policy in group])
        if len(places) <= _MAX_POLICIES:
            return self._whole.only(places)
        if places not in self._large:
            self._large[places] = self._whole.only(places)
        return self._large[places]

    def _leaves_some(self, policy: Policy) -> bool:
        """Return whether the policy limits nodes, and by itself leaves some, as far as known."""
        if not self._limiting(policy) or self._nodes is None or policy.witness is None:
            return self._limiting(policy)
        if policy.name not in self._sparing:
            alone = self._evaluated((policy,), policy.witness)
            self._sparing[policy.name] = not (alone and LACKS_NODE in alone.faults)
        return self._sparing[policy.name]

    def _limiting(self, policy: Policy) -> bool:
        settings = policy.settings if self._nodes else policy.requirements
        return any(located_setting.limits for located_setting in settings)


def _if_taking_part(outcome: PodOutcome, policies: Sequence[Policy]) -> PodOutcome | None:
    """Return the outcome, if all of these take part in it."""
    return outcome if outcome.policies.issuperset(policy.name for policy in policies) else None


def _work(group: Sequence[Policy]) -> int:
    """Return the steps of an evaluation of a pod with these policies, without nodes."""
    work = max(policy.work for policy in group) * (_EVALUATION + len(group))
    return work + _FOLDS * fold_steps(group)


def _kind(
    located: LocatedSetting,
    lines: Collection[Line],
    policy: Policy,
    other: Policy,
) -> Kind | None:
    """Return what becomes of a policy's setting beside the other policy; None for its effect."""
    setting = located.setting
    for outcome, kind in _KINDS.items():
        if (policy.name, setting.part, setting.field, outcome) in lines:
            if outcome != "lost":
                return kind
            rivals = {
                located_setting.setting.field for located_setting in other.of_parts("overrides")
            }
            if setting.part == "overrides" and setting.field in rivals:
                return kind
    return None
