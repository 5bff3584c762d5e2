"""How far a block of conditions reaches: whether it takes in another's pods, or none of them.

Both questions are answered on the safe side: "yes" is proved of every pod there can be, "no" says
only that it is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.placement import label_values
from webhook.policy.conditions import globs, is_glob
from webhook.policy.selectors import compile_selector

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.placement.schema import LabelSelector
    from webhook.placement.shapes import Requirement
    from webhook.policy.match_model import Match

# Of these a pod has one value, or none.
_SINGLE: Final = ("kinds", "frameworks", "roles", "replica_indexes")
# Of these it may have several, and one that is asked for is enough.
_SEVERAL: Final = ("resources", "volumes")


class Reach:
    """One match or exclude block, made ready to be held against many others."""

    __slots__ = (
        "_coordinator",
        "_globs",
        "_literals",
        "_namespace_labels",
        "_namespaces",
        "_pattern",
        "_pod_labels",
        "_sets",
    )

    def __init__(self, match: Match) -> None:
        self._namespaces = frozenset(match.namespaces) if match.namespaces else None
        self._globs = frozenset(each for each in match.namespaces or () if is_glob(each))
        self._literals = (self._namespaces or frozenset()) - self._globs
        self._pattern: re.Pattern[str] | None = globs(sorted(self._globs)) if self._globs else None
        self._namespace_labels = _by_key(match.namespace_selector)
        self._pod_labels = _by_key(match.pod_selector)
        self._coordinator = match.coordinator
        self._sets: Mapping[str, frozenset[object]] = {
            name: frozenset(values)
            for name in (*_SINGLE, *_SEVERAL)
            if (values := getattr(match, name))
        }

    def covers(self, other: Reach) -> bool:
        """Whether every pod that meets the other block meets this one."""
        if self._coordinator is not None and self._coordinator != other._coordinator:
            return False
        for name, wanted in self._sets.items():
            has = other._sets.get(name)
            if has is None or not has <= wanted:
                return False
        return (
            self._covers_namespaces(other)
            and _implied(self._namespace_labels, other._namespace_labels)
            and _implied(self._pod_labels, other._pod_labels)
        )

    def _covers_namespaces(self, other: Reach) -> bool:
        if self._namespaces is None or "*" in self._namespaces:
            return True
        if other._namespaces is None:
            return False
        return all(
            each in self._namespaces
            or (self._pattern and each in other._literals and self._pattern.match(each))
            for each in other._namespaces
        )

    def apart(self, other: Reach) -> bool:
        """Whether no pod meets both blocks."""
        if {self._coordinator, other._coordinator} == {True, False}:
            return True
        for name in _SINGLE:
            one, two = self._sets.get(name), other._sets.get(name)
            if one is not None and two is not None and one.isdisjoint(two):
                return True
        return (
            self._in_other_namespaces(other)
            or _never_both(self._namespace_labels, other._namespace_labels)
            or _never_both(self._pod_labels, other._pod_labels)
        )

    def _in_other_namespaces(self, other: Reach) -> bool:
        if self._namespaces is None or other._namespaces is None:
            return False
        # What two globs have in common is not worked out.
        if self._globs and other._globs:
            return False
        return self._namespaces.isdisjoint(other._namespaces) and not (
            _any_of(self._pattern, other._literals) or _any_of(other._pattern, self._literals)
        )


def _any_of(pattern: re.Pattern[str] | None, literals: frozenset[str]) -> bool:
    return pattern is not None and any(pattern.match(each) for each in literals)


def requirements(selector: LabelSelector | None) -> Iterator[Requirement]:
    """What a selector says of labels, expression by expression."""
    for condition in compile_selector(selector).conditions if selector else ():
        requirement: Requirement = {"key": condition.key, "operator": condition.operator}
        if condition.values:
            requirement["values"] = list(condition.values)
        yield requirement


def _by_key(selector: LabelSelector | None) -> Mapping[str, Sequence[Requirement]]:
    result: dict[str, list[Requirement]] = {}
    for requirement in requirements(selector):
        result.setdefault(requirement["key"], []).append(requirement)
    return result


def _implied(
    wanted: Mapping[str, Sequence[Requirement]], given: Mapping[str, Sequence[Requirement]]
) -> bool:
    """Whether labels that meet all that is given meet all that is wanted."""
    # No condition holds for every value and for absence too: each wanted key has to be given.
    return wanted.keys() <= given.keys() and all(
        not label_values.satisfiable([*given[key], label_values.negated(each)])
        for key, group in wanted.items()
        for each in group
    )


def _never_both(
    one: Mapping[str, Sequence[Requirement]], other: Mapping[str, Sequence[Requirement]]
) -> bool:
    return any(
        not label_values.satisfiable([*one[key], *other[key]]) for key in one.keys() & other.keys()
    )
