"""Finds the policies that can match a pod without trying each one.

Every policy is one bit. For each dimension of a match block a table gives, for a value that a pod
may have, the policies that it leaves possible; the AND over the dimensions are the candidates,
which then are tried in full. The cost grows with the dimensions, not with the policies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.policy.conditions import globs, is_glob
from webhook.policy.selectors import compile_selector

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

    from webhook.placement.schema.selectors import LabelSelector
    from webhook.policy.match_model import Match
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


class LabelTable:
    """The dimension of a label selector, told by one label that it cannot do without."""

    def __init__(self, selectors: Iterable[LabelSelector | None]) -> None:
        self.open = 0
        self.by_key: dict[str, dict[str, int]] = {}
        for bit, selector in enumerate(selectors):
            pairs = () if selector is None else compile_selector(selector).required_pairs
            if not pairs:
                self.open |= 1 << bit
                continue
            # The fewest values tell the most.
            key, values = min(pairs, key=lambda pair: len(pair[1]))
            table = self.by_key.setdefault(key, {})
            for value in values:
                table[value] = table.get(value, 0) | 1 << bit

    def possible(self, labels: Mapping[str, str]) -> int:
        """The policies possible for these labels."""
        mask = self.open
        if self.by_key:
            for key in self.by_key.keys() & labels.keys():
                mask |= self.by_key[key].get(labels[key], 0)
        return mask


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
