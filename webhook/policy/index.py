"""An index of policies by the pods that they can match.

Every policy is one bit. Each field of a match block that some policy gives is one dimension, and
gives the policies that a pod's value leaves possible; the AND over the dimensions are the
candidates, which then are tried in full. The cost grows with the dimensions, not with the policies.
"""

from __future__ import annotations

import math
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from webhook.policy.conditions import FIELDS, globs, is_glob
from webhook.policy.selectors import compile_selector

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from webhook.placement.schema.selectors import LabelSelector
    from webhook.policy.conditions import Form, MatchField
    from webhook.policy.match_model import Match, RequestRange
    from webhook.policy.selectors import Condition
    from webhook.policy.subject import Subject

# One dimension: the policies that it leaves possible for a pod.
Lookup: TypeAlias = "Callable[[Subject], int]"

# So many policies are tried with each pod rather than making an index again for each change.
MOST_UNINDEXED: Final = 32
# How many names are cached; a cluster has fewer namespaces, and forged names gain nothing.
_REMEMBERED_NAMES = 10_000


class _Key(NamedTuple):
    """The effect of one label key: the policies that it makes possible, and those it excludes.

    Each by the values that selectors name; `other` is for any other value, if the key is there.
    """

    by_value: dict[str, tuple[int, int]]
    other: tuple[int, int]


class LabelTable:
    """The dimension of a label selector.

    A selector is indexed by one label that it needs, and excluded by each label that contradicts
    it. Only conditions on several labels at once are left for the full test.
    """

    def __init__(self, selectors: Iterable[LabelSelector | None]) -> None:
        self.open = 0
        entered: dict[str, dict[str | None, int]] = {}
        ruled_out: dict[str, dict[str | None, int]] = {}
        for bit, selector in enumerate(selectors):
            conditions = compile_selector(selector).conditions if selector else ()
            needed = []
            for condition in conditions:
                if condition.operator in ("In", "Exists"):
                    needed.append(condition)
                else:
                    _enter(ruled_out, condition, 1 << bit)
            if needed:
                # The condition with the fewest values excludes the most.
                fewest = min(needed, key=lambda condition: len(condition.values) or math.inf)
                _enter(entered, fewest, 1 << bit)
            else:
                self.open |= 1 << bit
        self._by_key = {
            key: _key(entered.get(key, {}), ruled_out.get(key, {}))
            for key in {**entered, **ruled_out}
        }

    def possible(self, labels: Mapping[str, str]) -> int:
        """Return the policies possible for these labels."""
        mask, ruled_out = self.open, 0
        if self._by_key:
            for key in self._by_key.keys() & labels.keys():
                by_value, other = self._by_key[key]
                possible, out = by_value.get(labels[key], other)
                mask |= possible
                ruled_out |= out
        return mask & ~ruled_out


def _enter(table: dict[str, dict[str | None, int]], condition: Condition, bit: int) -> None:
    """Set the policy's bit for each value that the condition names; None is any value."""
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


def _index_value(field: MatchField, wanted: Sequence[Any]) -> Lookup:
    """Return the dimension of a list or a flag, of which a pod has one value."""
    open_to_all, by_value = _make_table(wanted)
    possible = {value: open_to_all | mask for value, mask in by_value.items()}
    value = attrgetter(field.subject)
    return lambda subject: possible.get(value(subject), open_to_all)


def _index_values(field: MatchField, wanted: Sequence[Any]) -> Lookup:
    """Return the dimension of globs, of which a pod may have several values."""
    open_to_all, mask_of = _make_globs(wanted)
    values = attrgetter(field.subject)

    def possible(subject: Subject) -> int:
        mask = open_to_all
        for value in values(subject):
            mask |= mask_of(value)
        return mask

    return possible


def _index_amounts(field: MatchField, wanted: Sequence[Sequence[RequestRange] | None]) -> Lookup:
    """Return the dimension of ranges, by the resources that they are about."""
    resources = [
        None if ranges is None else [request.resource for request in ranges] for ranges in wanted
    ]
    open_to_all, by_resource = _make_table(resources)
    amounts = attrgetter(field.subject)

    def possible(subject: Subject) -> int:
        mask = open_to_all
        for resource in amounts(subject):
            mask |= by_resource.get(resource, 0)
        return mask

    return possible


def _index_names(field: MatchField, wanted: Sequence[Sequence[str] | None]) -> Lookup:
    """Return the dimension of globs, of which a pod has one name."""
    open_to_all, mask_of = _make_globs(wanted)
    value = attrgetter(field.subject)
    return lambda subject: open_to_all | mask_of(value(subject))


def _make_globs(
    wanted: Sequence[Sequence[str] | None],
) -> tuple[int, Callable[[str], int]]:
    """Return the policies without the field, and what tells which others a name leaves possible."""
    with_globs = [listed is not None and any(map(is_glob, listed)) for listed in wanted]
    patterns = [
        (1 << bit, globs(listed or ())) for bit, listed in enumerate(wanted) if with_globs[bit]
    ]
    # An empty list is a condition that no name meets.
    open_to_all, by_name = _make_table(
        () if g else w for g, w in zip(with_globs, wanted, strict=True)
    )
    mask_by_name: dict[str, int] = {}

    def mask_of(name: str) -> int:
        mask = mask_by_name.get(name)
        if mask is None:
            mask = by_name.get(name, 0)
            for bit, pattern in patterns:
                if pattern.match(name):
                    mask |= bit
            if len(mask_by_name) >= _REMEMBERED_NAMES:
                mask_by_name.clear()
            mask_by_name[name] = mask
        return mask

    return open_to_all, mask_of


def _index_labels(field: MatchField, wanted: Sequence[LabelSelector | None]) -> Lookup:
    possible, labels = LabelTable(wanted).possible, attrgetter(field.subject)
    return lambda subject: possible(labels(subject))


def _make_table(wanted: Iterable[Any]) -> tuple[int, dict[Hashable, int]]:
    """Return the policies without the field, and those that each value leaves possible."""
    open_to_all = 0
    by_value: dict[Hashable, int] = {}
    for bit, values in enumerate(wanted):
        if values is None:
            open_to_all |= 1 << bit
            continue
        for value in [values] if isinstance(values, bool) else values:
            by_value[value] = by_value.get(value, 0) | 1 << bit
    return open_to_all, by_value


_LOOKUPS: Final[Mapping[Form, Callable[[MatchField, Sequence[Any]], Lookup]]] = {
    "name": _index_names,
    "value": _index_value,
    "values": _index_values,
    "flag": _index_value,
    "labels": _index_labels,
    "amounts": _index_amounts,
}


class Index:
    """The dimensions of a policy set, whose match blocks are given in the policies' order.

    A field that no policy gives has no dimension.
    """

    def __init__(self, matches: Sequence[Match]) -> None:
        self._all = (1 << len(matches)) - 1
        self._lookups = [
            _LOOKUPS[field.form](field, wanted)
            for field in FIELDS
            for wanted in [[getattr(match, field.name) for match in matches]]
            if any(value is not None for value in wanted)
        ]

    def candidates(self, subject: Subject) -> Iterator[int]:
        """Yield the positions of the policies that the pod may match, in their order."""
        mask = self._all
        for lookup in self._lookups:
            mask &= lookup(subject)
        while mask:
            lowest = mask & -mask
            yield lowest.bit_length() - 1
            mask ^= lowest


class MovedIndex(NamedTuple):
    """The index of another set, for one that has most of its policies.

    older:     the index of the other set
    places:    the position in this set of each policy of the other one; None if it has gone
    unindexed: the positions of policies that the other set does not have; each pod may match them
    """

    older: Index
    places: Sequence[int | None]
    unindexed: Sequence[int]

    def candidates(self, subject: Subject) -> Sequence[int]:
        """Return the positions of the policies that the pod may match, in their order."""
        places = (self.places[at] for at in self.older.candidates(subject))
        return sorted([*self.unindexed, *(at for at in places if at is not None)])


def always_tried(count: int) -> MovedIndex:
    """Return the index of so few policies that each of them is tried."""
    return MovedIndex(_EMPTY, (), range(count))


class IndexCache:
    """Makes the indexes of sets that differ in a few policies, one after the other."""

    def __init__(self) -> None:
        # The policies are kept, so that no other one can have the identity of one of them.
        self._last: tuple[Index, Mapping[int, int], Sequence[object]] = (_EMPTY, {}, ())

    def index(
        self, policies: Sequence[object], matches: Callable[[], Sequence[Match]]
    ) -> MovedIndex:
        """Return the index of the policies, given in their order; `matches` are their match blocks.

        A new one takes as long as to try all policies with some ten pods.
        """
        index, position_by_id, _ = self._last
        places = dict(zip(map(id, policies), range(len(policies)), strict=True))
        unindexed = sorted([places[new] for new in places.keys() - position_by_id.keys()])
        gone = len(position_by_id) + len(unindexed) - len(policies)
        if not position_by_id or max(gone, len(unindexed)) > MOST_UNINDEXED:
            index, position_by_id, unindexed = Index(matches()), places, []
            self._last = index, position_by_id, policies
        return MovedIndex(index, [*map(places.get, position_by_id)], unindexed)


_EMPTY: Final = Index(())
