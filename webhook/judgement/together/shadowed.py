"""Settings that never take effect, because an earlier policy always decides the field.

Only certain cases are reported. The deciding setting belongs to a policy that is enforced for every
pod of the other one. It is accepted in the fold with any other policies (see `placement.fold`), or
has lost to another one in the same place. Exceptions do not count, because they end.
"""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from webhook.placement import node_affinity
from webhook.placement.settings import is_selector
from webhook.policy.findings import Kind
from webhook.policy.node_settings import limits

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from webhook.judgement.together.located_settings import RankedSetting
    from webhook.judgement.together.policy_view import Policy
    from webhook.placement.shapes import Term
    from webhook.policy.findings import Finding

    _Rank = tuple[int, tuple[int, str]]


K = TypeVar("K")
T = TypeVar("T")


class Shadows:
    """The settings of all policies. What only some checks need is computed for the first one."""

    def __init__(
        self,
        policies: Iterable[Policy],
        before: Shadows | None = None,
        gone: Iterable[Policy] = (),
    ) -> None:
        """With `before`, have its settings too, without those of the policies that are gone."""
        new, removed = _settings_of(policies), _settings_of(gone)
        self.by_key: dict[Hashable, list[RankedSetting]] = changed_groups(
            before.by_key if before else {}, new, removed
        )
        # The keys whose settings are in the order in which they are folded; whether one of a key's
        # settings accepts some values.
        changed = {key for key, _ in (*new, *removed)}
        self.in_order: set[Hashable] = before.in_order - changed if before else set()
        self.accepting: dict[Hashable, bool] = dict(before.accepting) if before else {}
        for key in changed:
            self.accepting.pop(key, None)

    @property
    def _settings(self) -> Iterator[RankedSetting]:
        return itertools.chain.from_iterable(self.by_key.values())

    @cached_property
    def _with_terms(self) -> Sequence[RankedSetting]:
        return [ranked for ranked in self._settings if ranked.terms]

    @cached_property
    def _first(self) -> Mapping[str, _Rank]:
        """When the first setting that limits a label is folded, by label."""
        return _first_ranks(self._settings)

    @cached_property
    def _first_terms(self) -> Mapping[str, _Rank]:
        """The same, of settings that are not selectors."""
        return _first_ranks(self._with_terms)

    @cached_property
    def _few_terms(self) -> bool:
        conditions = {ranked.text: ranked.terms for ranked in self._with_terms}
        return _few(conditions.values())

    def _accepts_some(self, key: Hashable) -> bool:
        if key not in self.accepting:
            settings = (ranked.located.setting for ranked in self.by_key[key])
            self.accepting[key] = any(setting.accepts_some for setting in settings)
        return self.accepting[key]

    def findings_about(self, policy: Policy) -> Iterator[tuple[Policy, Finding]]:
        """Yield settings of the policy that never take effect, after the policy."""
        for ranked in policy.ranked:
            decides = self._winner(ranked)
            if decides is not None:
                yield policy, _finding(ranked, decides)

    def findings_because_of(self, policy: Policy) -> Iterator[tuple[Policy, Finding]]:
        """Yield settings of other policies that never take effect because of this one, each after
        its policy."""
        for ranked in policy.ranked:
            for other in self._rivals(ranked):
                if (
                    other.policy is not policy
                    and self._decides(ranked, other)
                    and policy.is_enforced_wherever(other.policy)
                    and self._winner(other) is ranked
                ):
                    yield other.policy, _finding(other, ranked)

    def _rivals(self, ranked: RankedSetting) -> Sequence[RankedSetting]:
        """Return the settings of what it sets, the first that is folded first."""
        rivals, key = self.by_key[ranked.identity], ranked.identity
        if key not in self.in_order:
            rivals.sort(key=attrgetter("rank"))
            self.in_order.add(key)
        return rivals

    def _winner(self, ranked: RankedSetting) -> RankedSetting | None:
        """Return the first setting that decides the field for every pod of the policy."""
        if ranked.located.setting.part == "requirements":
            return None  # it never loses in silence
        for rival in self._rivals(ranked):
            if rival.rank > ranked.rank or rival is ranked:
                return None
            if self._decides(rival, ranked) and rival.policy.is_enforced_wherever(ranked.policy):
                return rival
        return None

    def _decides(self, rival: RankedSetting, ranked: RankedSetting) -> bool:
        """Return whether the setting never takes effect where the earlier rival applies."""
        setting, before = ranked.located.setting, rival.located.setting
        if setting.part == "requirements" or rival.rank > ranked.rank:
            return False
        return (
            not setting.agrees(before)
            and self._never_dropped(rival)
            and setting.loses_to(before, some_accepted=self._accepts_some(ranked.identity))
        )

    def _never_dropped(self, ranked: RankedSetting) -> bool:
        """Return whether the setting is never dropped because it leaves no node.

        A requirement is not: the pod is rejected. Others are if an earlier one limits the same
        labels, or if all of them together make too many terms; and a pod that Kueue admitted may
        have limits of its own, which go before overrides.
        """
        setting = ranked.located.setting
        if setting.part == "requirements" or not ranked.located.node_keys:
            return True
        if is_selector(setting):
            return self._few_terms and not _is_limited(self._first_terms, ranked)
        return (
            setting.is_default
            and self._few_terms
            and not _is_limited(self._first, ranked)
            and node_affinity.satisfiable(limits(setting), {})
        )


def _settings_of(policies: Iterable[Policy]) -> list[tuple[Hashable, RankedSetting]]:
    return [(ranked.identity, ranked) for policy in policies for ranked in policy.ranked]


def changed_groups(
    groups: Mapping[K, list[T]], new: Iterable[tuple[K, T]], gone: Iterable[tuple[K, T]] = ()
) -> dict[K, list[T]]:
    """Return groups of values by key, with the new ones and without those gone.

    The lists that do not change are shared.
    """
    result = dict(groups)
    gone_by_key: dict[K, set[int]] = {}
    for key, value in gone:
        gone_by_key.setdefault(key, set()).add(id(value))
    for key, gone_ids in gone_by_key.items():
        left = [value for value in result.pop(key) if id(value) not in gone_ids]
        if left:
            result[key] = left
    changed = set(gone_by_key)
    for key, value in new:
        if key not in changed:
            changed.add(key)
            result[key] = [*result.get(key, ())]
        result.setdefault(key, []).append(value)
    return result


def _first_ranks(settings: Iterable[RankedSetting]) -> dict[str, _Rank]:
    rank_by_label: dict[str, _Rank] = {}
    for ranked in settings:
        for label in ranked.located.node_keys:
            rank_by_label[label] = min(ranked.rank, rank_by_label.get(label, ranked.rank))
    return rank_by_label


def _is_limited(first: Mapping[str, _Rank], ranked: RankedSetting) -> bool:
    return any(key in first and first[key] <= ranked.rank for key in ranked.located.node_keys)


def _few(conditions: Iterable[Sequence[Term]]) -> bool:
    """Return whether no combination of the conditions makes too many terms."""
    listed = list(conditions)
    most = math.prod(min(len(terms), node_affinity.MAX_TERMS + 1) for terms in listed)
    longest = sum(
        max(len(term.get("matchExpressions") or ()) for term in terms) for terms in listed
    )
    return most <= node_affinity.MAX_TERMS and most * longest <= node_affinity.MAX_REQUIREMENTS


def _finding(ranked: RankedSetting, decides: RankedSetting) -> Finding:
    is_same_policy = decides.policy is ranked.policy
    who = "the policy's own" if is_same_policy else f"policy {decides.policy.name!r}:"
    what = f"no pod gets it: {who} {decides.located.setting.part} always set it first"
    return ranked.policy.document.finding(
        ranked.located.path, what, "warning", kind=Kind.NEVER_APPLIED
    )
