"""Finds the policies that can match a pod without trying each one.

Every policy is one bit. For each dimension of a match block a table gives, for a value that a pod
may have, the policies that it leaves possible; the AND over the dimensions are the candidates,
which then are tried in full. The cost grows with the dimensions, not with the policies.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from webhook.policy.conditions import globs, is_glob
from webhook.policy.selectors import compile_selector

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from webhook.placement.schema.selectors import LabelSelector
    from webhook.policy.match_model import Match
    from webhook.policy.selectors import Condition
    from webhook.policy.subject import Subject

# Namespaces whose globs have been tried; a cluster has fewer, and a forger gains nothing.
_REMEMBERED_NAMESPACES = 10_000


class Table:
    """One dimension: the policies possible for a value; `open` are those that do not ask."""

    def __init__(self, wanted: Iterable[Sequence[Hashable] | None]) -> None:
        self.open = 0
        self.by_value: dict[Hashable, int] = {}
        for bit, values in enumerate(wanted):
            if not values:
                self.open |= 1 << bit
            for value in values or ():
                self.by_value[value] = self.by_value.get(value, 0) | 1 << bit

    def one(self, value: Hashable) -> int:
        """The policies possible for a pod that has one value."""
        return self.open | self.by_value.get(value, 0)

    def any_of(self, values: Iterable[Hashable]) -> int:
        """The policies possible for a pod that has several."""
        mask = self.open
        for value in values:
            mask |= self.by_value.get(value, 0)
        return mask


class _Key(NamedTuple):
    """What one label key decides: the policies that it makes possible, and those that it rules out.

    Each by the values that selectors name; `other` is for any other value, if the key is there.
    """

    by_value: dict[str, tuple[int, int]]
    other: tuple[int, int]


class LabelTable:
    """The dimension of a label selector.

    A selector is entered by one label that it cannot do without, and ruled out by each that it
    cannot do with. Only what needs several labels at once is left to be tried.
    """

    def __init__(self, selectors: Iterable[LabelSelector | None]) -> None:
        self.open = 0
        entered: dict[str, dict[str | None, int]] = {}
        ruled_out: dict[str, dict[str | None, int]] = {}
        for bit, selector in enumerate(selectors):
            conditions = compile_selector(selector).conditions if selector else ()
            needed = []
            for each in conditions:
                if each.operator in ("In", "Exists"):
                    needed.append(each)
                else:
                    _enter(ruled_out, each, 1 << bit)
            if needed:
                # The fewest values tell the most.
                fewest = min(needed, key=lambda each: len(each.values) or math.inf)
                _enter(entered, fewest, 1 << bit)
            else:
                self.open |= 1 << bit
        self._by_key = {
            key: _key(entered.get(key, {}), ruled_out.get(key, {}))
            for key in {**entered, **ruled_out}
        }

    def possible(self, labels: Mapping[str, str]) -> int:
        """The policies possible for these labels."""
        mask, ruled_out = self.open, 0
        if self._by_key:
            for key in self._by_key.keys() & labels.keys():
                by_value, other = self._by_key[key]
                possible, out = by_value.get(labels[key], other)
                mask |= possible
                ruled_out |= out
        return mask & ~ruled_out


def _enter(table: dict[str, dict[str | None, int]], condition: Condition, bit: int) -> None:
    """Note the policy's bit for each value that the condition names; None is any value."""
    by_value = table.setdefault(condition.key, {})
    for value in condition.values or (None,):
        by_value[value] = by_value.get(value, 0) | bit


def _key(entered: Mapping[str | None, int], ruled_out: Mapping[str | None, int]) -> _Key:
    possible, out = entered.get(None, 0), ruled_out.get(None, 0)
    by_value = {
        value: (possible | entered.get(value, 0), out | ruled_out.get(value, 0))
        for value in (*entered, *ruled_out)
        if value is not None
    }
    return _Key(by_value, (possible, out))


class Index:
    """The tables of a policy set, whose match blocks are given in the policies' order."""

    def __init__(self, matches: Sequence[Match]) -> None:
        self._globs = [
            (1 << bit, globs(match.namespaces))
            for bit, match in enumerate(matches)
            if match.namespaces and any(map(is_glob, match.namespaces))
        ]
        glob_bits = sum(bit for bit, _ in self._globs)
        self._namespaces = Table(
            None if 1 << bit & glob_bits else match.namespaces for bit, match in enumerate(matches)
        )
        self._namespaces.open &= ~glob_bits
        self._by_namespace: dict[str, int] = {}
        self._namespace_labels = LabelTable(m.namespace_selector for m in matches)
        self._pod_labels = LabelTable(m.pod_selector for m in matches)
        self._kinds = Table(m.kinds for m in matches)
        self._frameworks = Table(m.frameworks for m in matches)
        self._roles = Table(m.roles for m in matches)
        self._indexes = Table(m.replica_indexes for m in matches)
        self._coordinator = Table(
            None if m.coordinator is None else (m.coordinator,) for m in matches
        )
        self._resources = Table(m.resources for m in matches)
        self._volumes = Table(m.volumes for m in matches)

    def _in_namespace(self, namespace: str) -> int:
        mask = self._by_namespace.get(namespace)
        if mask is None:
            mask = self._namespaces.one(namespace)
            for bit, pattern in self._globs:
                if pattern.match(namespace):
                    mask |= bit
            if len(self._by_namespace) >= _REMEMBERED_NAMESPACES:
                self._by_namespace.clear()
            self._by_namespace[namespace] = mask
        return mask

    def candidates(self, subject: Subject) -> Iterator[int]:
        """The positions of the policies that the pod may match, in their order."""
        identity = subject.identity
        mask = (
            self._in_namespace(subject.namespace)
            & self._pod_labels.possible(subject.labels)
            & self._namespace_labels.possible(subject.namespace_labels)
            & self._kinds.one(identity.kind)
            & self._frameworks.one(identity.framework)
            & self._roles.one(identity.role)
            & self._indexes.one(identity.replica_index)
            & self._coordinator.one(identity.coordinator)
            & self._resources.any_of(subject.resources)
            & self._volumes.any_of(subject.volumes)
        )
        while mask:
            lowest = mask & -mask
            yield lowest.bit_length() - 1
            mask ^= lowest
