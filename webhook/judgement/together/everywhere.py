"""Requirements that together reject every pod of a policy, kind, role or namespace.

A requirement rejects a pod if an enforced one contradicts it. `contradicting` reports two policies
that may match one pod. Here it is proved that each pod of a set matches all of the policies. A set
is the pods that a policy matches, or all pods with a value that a match block names.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

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
    from webhook.placement.bundle import Bundle
    from webhook.placement.settings import PlacementSetting
    from webhook.policy.findings import Finding

_ByAsked: TypeAlias = "dict[frozenset[str], list[_Demand]]"
_NAMED: Final = 3
# Above this number, only requirements for the same key are checked against each other.
_MOST: Final = 20
# The cost of folding one policy with others.
_STEPS_OF_A_FOLD: Final = 10
# Up to this number, each is evaluated first.
_FEW: Final = 8


class _Pods(NamedTuple):
    """A set of pods. `text` follows "every pod"; `of` is the policy that matches them, if one."""

    text: str
    reach: MatchedPods
    of: Policy | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Demand:
    """A policy with the requirements that no other policy can make yield.

    A requirement of a class yields if another policy requires None of it, and a toleration if a
    wider one comes before it. `tokens` are the node labels and fields that they restrict.
    """

    policy: Policy
    settings: tuple[LocatedSetting, ...]
    tokens: frozenset[str]


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


def rejecting(
    policies: Sequence[Policy], chosen: Collection[Policy], effort: Effort
) -> Iterator[Rejecting]:
    """Yield groups of policies that reject whole sets of pods, each with one of the chosen.

    The policies are given in their order. One test whether a policy is enforced for a whole set
    costs a step, or more for a large policy.
    """
    unsure = _Unsure(policies)
    sure = [_sure(each, unsure) for each in policies if each.enforced]
    index = _Index(sure)
    cores = _Cores(effort)
    found: dict[tuple[_Demand, ...], list[str]] = {}
    for pods in _sets_of_pods(policies):
        if len(chosen) < _FEW:
            if not effort.spend(sum(each.work_to_match for each in chosen)):
                break
            if not any(_requires_of(each, pods) for each in chosen):
                continue
        near = index.possibly_overlapping(pods.reach)
        larger = pods.of.work_to_match - 1 if pods.of else 0
        if not effort.spend(sum(each.policy.work_to_match + larger for each in near)):
            break
        group = [each for each in near if _requires_of(each.policy, pods)]
        # By name: of several that contradict, a change of priority shall not choose others.
        for core in cores.cores(sorted(group, key=lambda each: each.policy.name)):
            if any(each.policy in chosen for each in core):
                found.setdefault(core, []).append(pods.text)
    for core, texts in found.items():
        # A policy's own pods are named only if they are not the pods of a listed set.
        words = [each for each in texts if not each.startswith("that policy")]
        yield Rejecting(
            _in_order(core), (texts[0],) if texts[0] == _EVERY.text else tuple(words or texts)
        )
    known = {each.policy for core in found for each in core}
    yield from _by_several([each for each in sure if each.policy not in known], chosen, cores)


def _requires_of(policy: Policy, pods: _Pods) -> bool:
    return policy.enforced_for(pods.reach, pods.of, required=True)


def _by_several(
    sure: Sequence[_Demand], chosen: Collection[Policy], cores: _Cores
) -> Iterator[Rejecting]:
    """Policies all of whose pods are rejected, some by one other policy and some by another.

    For example one for workers, with one for jobs and one for all other kinds.
    """
    by_token: dict[str, list[_Demand]] = defaultdict(list)
    for each in sure:
        for token in each.tokens:
            by_token[token].append(each)
    for one in sure:
        near = list(dict.fromkeys(other for token in one.tokens for other in by_token[token]))
        if not one.policy.matches_something or len(near) < 2:
            continue
        if one.policy not in chosen and all(each.policy not in chosen for each in near):
            continue
        if not cores.effort.spend(sum(each.policy.work_to_match for each in near)):
            return
        rivals = [
            each
            for each in near
            if each is not one
            and not each.policy.match.apart(one.policy.match)
            and cores.contradict((one, each))
        ]
        pods = _pods_of(one.policy)
        if not _requires_of(one.policy, pods):
            continue
        # A policy that matches all of its pods is already known.
        if any(_requires_of(each.policy, pods) for each in rivals):
            continue
        members = rivals and _covering(one.policy, rivals, cores.effort)
        if members and (one.policy in chosen or any(each.policy in chosen for each in members)):
            yield Rejecting(_in_order((one, *members)), (pods.text,))


def _covering(policy: Policy, rivals: Sequence[_Demand], effort: Effort) -> list[_Demand]:
    """Return the rivals of which each pod of the policy matches one; none if a pod may match
    none."""
    found: dict[_Demand, None] = {}
    for atom in atoms(policy.bound):
        pods = _Pods("", MatchedPods(atom), policy)
        if pods.reach.unmet():
            continue
        if not effort.spend(sum(each.policy.work_to_match for each in rivals)):
            return []
        rival = next((each for each in rivals if _requires_of(each.policy, pods)), None)
        if rival is None:
            return []
        found[rival] = None
    return list(found)


_EMPTY: Final = Match()
_EVERY: Final = _Pods("of every run", MatchedPods(_EMPTY))


def _sets_of_pods(policies: Sequence[Policy]) -> Iterator[_Pods]:
    yield _EVERY
    checked: set[tuple[str, object]] = set()
    for policy in policies:
        spec = policy.model.spec
        match = spec.match or Match()
        for field in FIELDS:
            values = list(getattr(match, field.name) or ()) if field.noun else []
            if field.name == "namespaces" and spec.rollout:
                values += spec.rollout.namespaces
            for value in values:
                if (field.name, value) not in checked:
                    checked.add((field.name, value))
                    one = MatchedPods(_EMPTY.model_copy(update={field.name: [value]}))
                    yield _Pods(f"of {field.noun} {value}", one)
        if match.coordinator is not None and ("coordinator", match.coordinator) not in checked:
            checked.add(("coordinator", match.coordinator))
            who = "that leads its run" if match.coordinator else "that does not lead its run"
            yield _Pods(who, MatchedPods(Match(coordinator=match.coordinator)))
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
    return _Pods(f"that policy {policy.name!r} {verb}", reach, policy)


class _Index:
    """Policies by the conditions of their matches: of a thousand, few can match a whole set."""

    def __init__(self, policies: Iterable[_Demand]) -> None:
        self._by_start: dict[str, _ByAsked] = defaultdict(lambda: defaultdict(list))
        self._anywhere: _ByAsked = defaultdict(list)
        for each in policies:
            reach = each.policy.match
            if not each.settings:
                continue
            asked = reach.conditions
            if "namespaces" in asked:
                for start in reach.starts:
                    self._by_start[start][asked].append(each)
            else:
                self._anywhere[asked].append(each)

    def possibly_overlapping(self, reach: MatchedPods) -> list[_Demand]:
        """Policies that may match all of these pods, and some others."""
        guaranteed = reach.guarantees
        tables = [self._anywhere]
        # A policy that matches all of its namespaces matches the first.
        for first in sorted(reach.spaces or ())[:1]:
            starts = (first[:end] for end in range(len(first) + 1))
            tables += [self._by_start[each] for each in starts if each in self._by_start]
        found = (
            policies for table in tables for asked, policies in table.items() if asked <= guaranteed
        )
        return list(dict.fromkeys(itertools.chain.from_iterable(found)))


class _Unsure:
    """The requirements that may yield to one of another policy."""

    def __init__(self, policies: Sequence[Policy]) -> None:
        self._classes = frozenset[str]().union(*(each.required_none for each in policies))
        settings = (
            located.setting for each in policies for located in each.of_parts("requirements")
        )
        self._tolerations = {
            normal(setting.toleration).reach: setting.toleration
            for setting in settings
            if isinstance(setting, TolerationSetting)
        }

    def has(self, setting: PlacementSetting) -> bool:
        """Return whether this one may."""
        if isinstance(setting, CapacitySetting):
            return setting.field in self._classes
        return isinstance(setting, TolerationSetting) and any(
            covers(broad, setting.toleration)
            for reach, broad in self._tolerations.items()
            if reach != normal(setting.toleration).reach
        )


def _sure(policy: Policy, unsure: _Unsure) -> _Demand:
    located = [each for each in policy.of_parts("requirements") if not unsure.has(each.setting)]
    tokens = {token for each in located for token in each.rivals or {each.setting.field}}
    # Prefer and Prevent contradict each other, though Prefer limits no nodes.
    tokens |= {each.setting.field for each in located if isinstance(each.setting, CapacitySetting)}
    return _Demand(policy, tuple(located), frozenset(tokens))


class _Cores:
    """Finds, among policies that are all enforced for the same pods, those that reject them."""

    def __init__(self, effort: Effort) -> None:
        self.effort = effort
        self._known: dict[tuple[_Demand, ...], bool] = {}

    def cores(self, group: Sequence[_Demand]) -> Iterator[tuple[_Demand, ...]]:
        """Minimal groups: pairs, each with another second policy; else a larger group."""
        for connected in _connected(group) if len(group) > 1 else ():
            spared = set[_Demand]()
            for pair in _pairs(connected):
                # A policy that must change anyway is reported once.
                if spared.isdisjoint(pair) and self.contradict(pair):
                    spared.add(pair[1])
                    yield pair
            rest = [each for each in connected if each not in spared]
            if 2 < len(rest) <= _MOST and self.contradict(rest):
                for each in list(rest):
                    others = [other for other in rest if other is not each]
                    if self.contradict(others):
                        rest = others
                yield tuple(rest)

    def contradict(self, some: Sequence[_Demand]) -> bool:
        """Return whether these contradict each other."""
        some = _in_order(some)
        found = self._known.get(some)
        if found is None:
            if not self.effort.spend(_STEPS_OF_A_FOLD * sum(each.policy.work for each in some)):
                return False
            found = self._known[some] = bool(_folded(some).contradictions)
        return found


def _in_order(some: Iterable[_Demand]) -> tuple[_Demand, ...]:
    return tuple(sorted(some, key=lambda each: each.policy.order))


def _folded(some: Sequence[_Demand]) -> Bundle:
    names = [each.policy.name for each in some]
    return fold(names, [located.setting for each in some for located in each.settings])


def _connected(group: Sequence[_Demand]) -> list[list[_Demand]]:
    """Return the policies in groups without a common node label or field, each in order."""
    above: dict[str, str] = {}

    def top(token: str) -> str:
        while (higher := above.setdefault(token, token)) != token:
            token = higher
        return token

    for each in group:
        first, *others = sorted(each.tokens)
        for token in others:
            above[top(token)] = top(first)
    parts: dict[str, list[_Demand]] = {}
    for each in group:
        parts.setdefault(top(min(each.tokens)), []).append(each)
    return [members for members in parts.values() if len(members) > 1]


def _pairs(group: Sequence[_Demand]) -> Iterator[tuple[_Demand, _Demand]]:
    """Yield all pairs; of many policies, the first for a field with each other one."""
    if len(group) <= _MOST:
        yield from itertools.combinations(group, 2)
        return
    first: dict[str, _Demand] = {}
    for each in group:
        rivals = {id(other): other for token in each.tokens if (other := first.get(token))}
        yield from ((other, each) for other in rivals.values())
        for token in each.tokens:
            first.setdefault(token, each)
