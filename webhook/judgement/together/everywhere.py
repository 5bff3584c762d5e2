"""Requirements that together reject every pod of a policy, kind, role or namespace.

A requirement rejects a pod if an enforced one contradicts it. A trial reports policies that reject
some pod. Here it is proved that each pod of a set is rejected. A set is the pods that a policy
matches, or all pods with a value that a match block names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.judgement.together.witness import find_subject
from webhook.placement.fold import fold
from webhook.placement.settings import CapacitySetting, TolerationSetting
from webhook.placement.tolerations import covers, normal
from webhook.policy.conditions import FIELDS
from webhook.policy.findings import Kind
from webhook.policy.match_model import Match
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
_MOST: Final = 20
# Up to this number, each of the chosen policies is evaluated first.
_FEW: Final = 8
# The cost of folding one policy with others, and of finding a pod.
_STEPS_OF_A_FOLD: Final = 10
_STEPS_OF_A_SEARCH: Final = 12


class _Pods(NamedTuple):
    """A set of pods. `text` follows "every pod"; `of` is the policy that matches them, if one."""

    text: str
    match: Match
    reach: MatchedPods
    of: Policy | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Demand:
    """An enforced policy with the requirements that no other policy can make yield.

    `tokens` are the node labels and fields that they restrict.
    """

    policy: Policy
    settings: tuple[LocatedSetting, ...]
    tokens: frozenset[str]

    def holds_for(self, pods: _Pods) -> bool:
        """Return whether the policy is enforced for all of these pods."""
        return self.policy.enforced_for(pods.reach, pods.of, required=True)


class Rejecting(NamedTuple):
    """A minimal group of policies, in their order, and the pods that they reject."""

    members: tuple[_Demand, ...]
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
    return _Search(given, chosen, effort).groups()


class _Search:
    def __init__(self, given: Prepared, chosen: Collection[Policy], effort: Effort) -> None:
        self._policies = [each for each in given.policies if not each.contradictory]
        self._whole = given.whole
        self._chosen = chosen
        self._effort = effort
        self._demands = _demands(self._policies)
        self._known: dict[tuple[_Demand, ...], bool] = {}

    def groups(self) -> Iterator[Rejecting]:
        """Yield groups that reject a set, then those each of which rejects a part of one."""
        found: dict[tuple[_Demand, ...], list[str]] = {}
        for pods in filter(self._concerns_chosen, _sets_of_pods(self._policies)):
            for core in self._cores([each for each in self._near(pods) if each.holds_for(pods)]):
                found.setdefault(core, []).append(pods.text)
        for core, texts in found.items():
            # A policy's own pods are named only if they are not the pods of a listed set.
            words = [each for each in texts if not each.startswith("that policy")]
            listed = texts[:1] if texts[0] == _EVERY.text else words or texts
            yield from self._chosen_one(core, listed)
        known = {each for core in found for each in core}
        some = (self._demands[each.name] for each in self._chosen if each.name in self._demands)
        tokens = frozenset[str]().union(*(each.tokens for each in some))
        for one in self._demands.values():
            pods = _pods_of(one.policy)
            if one in known or not (one.policy in self._chosen or one.tokens & tokens):
                continue
            if one.holds_for(pods) and (rivals := self._covering(one, pods)):
                yield from self._chosen_one((one, *rivals), [pods.text])

    def _concerns_chosen(self, pods: _Pods) -> bool:
        """Return whether one of the chosen holds for the pods; of many, each is evaluated later."""
        if len(self._chosen) >= _FEW:
            return True
        return self._effort.spend(sum(each.work_to_match for each in self._chosen)) and any(
            each.name in self._demands and self._demands[each.name].holds_for(pods)
            for each in self._chosen
        )

    def _chosen_one(self, core: Sequence[_Demand], texts: Sequence[str]) -> Iterator[Rejecting]:
        if any(each.policy in self._chosen for each in core):
            yield Rejecting(_in_order(core), tuple(texts))

    def _near(self, pods: _Pods) -> Sequence[_Demand]:
        """Return the policies that may hold for all of these pods, by name: those that match one.

        By name: of several that contradict, a change of priority shall not choose others.
        """
        size = pods.of.work_to_match if pods.of else 1
        if not self._effort.spend(_STEPS_OF_A_SEARCH * size) or pods.reach.unmet():
            return ()
        pod = find_subject([pods.match], pods.of.model.spec.exclude if pods.of else ())
        found = [*self._demands.values()]
        if pod is not None:
            names = (self._whole.policies[at].name for at in self._whole.matching(pod))
            found = [self._demands[name] for name in sorted(names) if name in self._demands]
        if not self._effort.spend(sum(each.policy.work_to_match + size - 1 for each in found)):
            return ()
        return found

    def _cores(self, group: Sequence[_Demand]) -> Iterator[tuple[_Demand, ...]]:
        """Yield a minimal group for each policy that contradicts those before it: a pair, if
        possible. Of many policies, each is compared with the first for one of its tokens."""
        few = len(group) <= _MOST
        if len(group) < 2 or (few and not self._contradict(group)):
            return
        kept: list[_Demand] = []
        first: dict[str, _Demand] = {}
        for each in group:
            rivals = kept if few else dict.fromkeys(first[t] for t in each.tokens if t in first)
            pairs = [(one, each) for one in rivals]
            core: tuple[_Demand, ...] | None = next(filter(self._contradict, pairs), None)
            if core is None and few and self._contradict([*kept, each]):
                core = self._least([*kept, each])
            if core:
                yield core
                continue
            kept.append(each)
            first = {**dict.fromkeys(each.tokens, each), **first}

    def _least(self, group: list[_Demand]) -> tuple[_Demand, ...]:
        for each in [*group]:
            others = [other for other in group if other is not each]
            if self._contradict(others):
                group = others
        return tuple(group)

    def _covering(self, one: _Demand, whole: _Pods) -> Sequence[_Demand]:
        """Return policies of which each pod of the policy is rejected by one, and none rejects the
        whole; none if a pod may pass.

        For example one for workers, with one for jobs and one for all other kinds.
        """
        found: dict[_Demand, None] = {}
        for atom in atoms(one.policy.bound):
            pods = _Pods("", atom, MatchedPods(atom), one.policy)
            if pods.reach.unmet():
                continue
            near = [each for each in self._near(pods) if each.tokens & one.tokens]
            rivals = [e for e in near if self._contradict((one, e)) and e.holds_for(pods)]
            # A policy that rejects all of its pods is already known.
            if not rivals or any(each.holds_for(whole) for each in rivals):
                return ()
            found[rivals[0]] = None
        return [*found]

    def _contradict(self, some: Sequence[_Demand]) -> bool:
        """Return whether the requirements of these contradict each other."""
        some = _in_order(some)
        found = self._known.get(some)
        if found is None:
            if not self._effort.spend(_STEPS_OF_A_FOLD * sum(each.policy.work for each in some)):
                return False
            found = self._known[some] = bool(_folded(some).contradictions)
        return found


_EMPTY: Final = Match()
_EVERY: Final = _Pods("of every run", _EMPTY, MatchedPods(_EMPTY))


def _sets_of_pods(policies: Sequence[Policy]) -> Iterator[_Pods]:
    yield _EVERY
    checked: set[tuple[str, object]] = set()
    for policy in policies:
        spec = policy.model.spec
        match = spec.match or _EMPTY
        for field in FIELDS:
            values = list(getattr(match, field.name) or ()) if field.noun else []
            if field.name == "namespaces" and spec.rollout:
                values += spec.rollout.namespaces
            for value in values:
                if (field.name, value) not in checked:
                    checked.add((field.name, value))
                    one = _EMPTY.model_copy(update={field.name: [value]})
                    yield _Pods(f"of {field.noun} {value}", one, MatchedPods(one))
        if match.coordinator is not None and ("coordinator", match.coordinator) not in checked:
            checked.add(("coordinator", match.coordinator))
            who = "that leads its run" if match.coordinator else "that does not lead its run"
            one = Match(coordinator=match.coordinator)
            yield _Pods(who, one, MatchedPods(one))
    matches: set[bytes] = set()
    for policy in policies:
        spec = policy.model.spec
        blocks = [block for block in (spec.match, *spec.exclude) if block]
        same = b"".join(block.model_dump_json(exclude_none=True).encode() for block in blocks)
        same += spec.rollout.model_dump_json().encode() if spec.rollout else b""
        if policy.matches_something and (spec.exclude or same not in matches):
            matches.add(same)
            yield _pods_of(policy)


def _pods_of(policy: Policy) -> _Pods:
    """Return the pods that a policy matches, or for which its rollout enforces it."""
    verb = "is enforced for" if policy.rollout else "matches"
    reach = MatchedPods(policy.bound) if policy.rollout else policy.match
    return _Pods(f"that policy {policy.name!r} {verb}", policy.bound, reach, policy)


def _demands(policies: Sequence[Policy]) -> dict[str, _Demand]:
    """Return the enforced policies by name, without requirements that may yield to another's.

    A requirement of a class yields if another policy requires None of it, and a toleration if a
    wider one comes before it.
    """
    required = [located.setting for each in policies for located in each.of_parts("requirements")]
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
    for policy in sorted(policies, key=lambda each: each.name):
        sure = [each for each in policy.of_parts("requirements") if is_sure(each.setting)]
        # Prefer and Prevent contradict each other, though Prefer limits no nodes.
        classes = {each.setting.field for each in sure if isinstance(each.setting, CapacitySetting)}
        tokens = {token for each in sure for token in each.rivals or {each.setting.field}}
        if policy.enforced and sure:
            found[policy.name] = _Demand(policy, tuple(sure), frozenset(tokens | classes))
    return found


def _in_order(some: Iterable[_Demand]) -> tuple[_Demand, ...]:
    return tuple(sorted(some, key=lambda each: each.policy.order))


def _folded(some: Sequence[_Demand]) -> Bundle:
    names = [each.policy.name for each in some]
    return fold(names, [located.setting for each in some for located in each.settings])
