"""Whether one match block includes or excludes the pods of another, or can match no pod at all.

All answers are on the safe side: "yes" is proved for every possible pod, "no" means only that it is
not proved. One module: the last question is a case of the first two.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook import names
from webhook.interception import EXCLUDED_NAMESPACES
from webhook.placement import label_values
from webhook.placement.nodes import format_requirement
from webhook.policy.conditions import fields_of, given_fields, is_glob, to_range
from webhook.policy.selectors import compile_selector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.placement.schema.selectors import LabelSelector
    from webhook.placement.shapes import Requirement
    from webhook.policy.conditions import Range
    from webhook.policy.findings import Path
    from webhook.policy.match_model import Match

_NAMES: Final = fields_of("name")
_LABELS: Final = fields_of("labels")
_VALUE: Final = fields_of("value")
_SETS: Final = fields_of("value", "values")
_AMOUNTS: Final = fields_of("amounts")
# Whether a pod leads follows from other fields, too.
_FLAGS: Final = [name for name in fields_of("flag") if name != "coordinator"]
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
# Maximum number of blocks whose values are compared one by one.
_MOST_ATOMS: Final = 100
# Pairs of globs that are compared for one answer; each takes some half a µs.
_MOST_PAIRS: Final = 500


class _Names:
    """Names and globs, one of which the pod's name must match."""

    __slots__ = ("all", "any", "globs", "literals")

    def __init__(self, listed: frozenset[str]) -> None:
        self.all = listed
        self.globs = frozenset(name for name in listed if is_glob(name))
        self.literals = listed - self.globs
        self.any = any(set(name) == {"*"} for name in listed)

    def cover(self, other: _Names) -> bool:
        """Return whether every name of the other's is one of these."""
        others = other.all - self.all
        return len(self.globs) * len(others) <= _MOST_PAIRS and all(
            any(includes(wide, name) for wide in self.globs) for name in others
        )

    def is_disjoint(self, other: _Names) -> bool:
        """Return whether no name matches both."""
        if not self.literals.isdisjoint(other.literals):
            return False
        held = len(self.globs) * len(other.all) + len(other.globs) * len(self.literals)
        if held > _MOST_PAIRS:
            return False
        pairs = itertools.chain(
            itertools.product(self.globs, other.all),
            itertools.product(other.globs, self.literals),
        )
        return not any(overlap(left, right) for left, right in pairs)


class MatchedPods:
    """One match or exclude block, prepared for comparison with many others."""

    __slots__ = (
        "_amounts",
        "_coordinator",
        "_flags",
        "_labels",
        "_names",
        "_sets",
        "_within",
        "_words",
    )

    def __init__(self, match: Match) -> None:
        fields = {field.name: value for field, value in given_fields(match)}
        self._coordinator = match.coordinator
        self._flags = {name: fields[name] for name in _FLAGS if name in fields}
        self._amounts = {
            name: [*map(to_range, fields[name])] for name in _AMOUNTS if name in fields
        }
        self._labels = {name: _by_key(fields.get(name)) for name in _LABELS}
        # Each namespace has the label of its name.
        spaces = self._labels["namespace_selector"]
        if all(requirement["operator"] == "Exists" for requirement in spaces.get(_NAME_LABEL, ())):
            spaces.pop(_NAME_LABEL, None)
        self._sets: Mapping[str, frozenset[object]] = {
            name: frozenset(fields[name]) for name in _SETS if name in fields
        }
        # Conditions that other fields imply too: labels, and coordinator.
        self._words = {
            **self._sets,
            **dict(_selector_guarantees(self._sets, self._labels["pod_selector"])),
        }
        if self._coordinator is False and "roles" in self._words:
            self._words["roles"] -= names.COORDINATOR_ROLES
        self._names = {name: _Names(frozenset(fields[name])) for name in _NAMES if name in fields}
        self._within = {**self._names, **self._narrow_namespaces()}

    def _narrow_namespaces(self) -> dict[str, _Names]:
        """Return the namespaces that a selector on the name label leaves, if there is one."""
        labels = self._labels["namespace_selector"].get(_NAME_LABEL, ())
        named = [requirement["values"] for requirement in labels if requirement["operator"] == "In"]
        if not named:
            return {}
        left = frozenset(named[0]).intersection(*named[1:])
        listed = self._names.get("namespaces")
        if listed and len(left) * len(listed.all) <= _MOST_PAIRS:
            left = frozenset(
                name for name in left if any(includes(wide, name) for wide in listed.all)
            )
        return {"namespaces": _Names(left)}

    @property
    def _leads(self) -> bool | None:
        """Whether all of its pods lead their run; None if the block has no such condition."""
        roles = self._words.get("roles")
        if self._coordinator is None and roles and roles <= names.COORDINATOR_ROLES:
            return True
        return self._coordinator

    def covers(self, other: MatchedPods) -> bool:
        """Return whether every pod that meets the other block meets this one."""
        if self._coordinator is not None and self._coordinator != other._leads:
            return False
        if any(other._flags.get(name) != flag for name, flag in self._flags.items()):
            return False
        for name, ranges in self._amounts.items():
            narrow = other._amounts.get(name)
            if narrow is None or not all(any(_spans(w, n) for w in ranges) for n in narrow):
                return False
        for name, wanted in self._sets.items():
            has = other._words.get(name)
            if has is None:
                return False
            # A field of which a pod has several values takes globs.
            if not has <= wanted and (name in _VALUE or not _take_in(wanted, has)):
                return False
        for name, listed in self._names.items():
            within = other._within.get(name)
            if not listed.any and (within is None or not listed.cover(within)):
                return False
        return all(_implied(self._labels[name], other._labels[name]) for name in _LABELS)

    def is_disjoint(self, other: MatchedPods) -> bool:
        """Return whether no pod meets both blocks."""
        if {self._leads, other._leads} == {True, False}:
            return True
        if any(other._flags.get(name, flag) != flag for name, flag in self._flags.items()):
            return True
        for name, ranges in self._amounts.items():
            others = other._amounts.get(name)
            if others and all(itertools.starmap(_miss, itertools.product(ranges, others))):
                return True
        for name in _VALUE:
            own_words, other_words = self._words.get(name), other._words.get(name)
            if (
                own_words is not None
                and other_words is not None
                and own_words.isdisjoint(other_words)
            ):
                return True
        for name, within in self._within.items():
            if name in other._within and within.is_disjoint(other._within[name]):
                return True
        if self._is_left_out_by(other) or other._is_left_out_by(self):
            return True
        return any(
            not label_values.satisfiable([*labels[key], *other._labels[name][key]])
            for name, labels in self._labels.items()
            for key in labels.keys() & other._labels[name].keys()
        )

    def _is_left_out_by(self, other: MatchedPods) -> bool:
        """Return whether the other block excludes each namespace that this one lists, by label."""
        within = self._within.get("namespaces")
        labels = other._labels["namespace_selector"].get(_NAME_LABEL, ())
        if within is None or within.globs or not labels:
            return False
        return len(within.literals) * len(labels) <= _MOST_PAIRS and all(
            any(not label_values.holds(requirement, name) for requirement in labels)
            for name in within.literals
        )

    def unmet(self) -> tuple[str, str] | None:
        """Return why certainly no pod meets the block: the field that excludes all, and the
        reason."""
        for name, field in _LABELS.items():
            for group in self._labels[name].values():
                if not label_values.satisfiable(group):
                    return (
                        field.document_name,
                        f"no labels meet {' and '.join(map(format_requirement, group))}",
                    )
        for name, field in _VALUE.items():
            if name in self._sets and not self._words[name]:
                listed = ", ".join(map(str, sorted(self._sets[name], key=str)))
                if name == "roles" and self._coordinator is False:
                    return "coordinator", f"pods of role {listed} always lead their run"
                return (
                    "podSelector",
                    f"{field.label} contradicts {field.document_name}: {listed}",
                )
        for name, within in self._within.items():
            if why := self._explain_unmet_names(name, within):
                return why
        return None

    def _explain_unmet_names(self, name: str, within: _Names) -> tuple[str, str] | None:
        field = _NAMES[name]
        listed = ", ".join(sorted(self._names[name].all)) if name in self._names else ""
        if not within.all and listed:
            return "namespaceSelector", f"{_NAME_LABEL} matches none of the namespaces {listed}"
        if not any(_is_possible(listed_name, field.longest) for listed_name in within.all):
            return field.document_name, f"no {field.noun} can have the name {listed}"
        if name == "namespaces" and within.all <= {*EXCLUDED_NAMESPACES}:
            return "namespaces", f"pods in {listed or ', '.join(within.all)} never reach Fairlead"
        return None


def _spans(wide: Range, narrow: Range) -> bool:
    """Return whether every amount in a range is in the other one."""
    resource, least, most = wide
    return (
        resource == narrow[0]
        and least <= narrow[1]
        and (most is None or (narrow[2] is not None and narrow[2] <= most))
    )


def _miss(first: Range, second: Range) -> bool:
    """Return whether no amount is in both ranges. A pod may request two resources."""
    most = [bound for bound in (first[2], second[2]) if bound is not None]
    return first[0] == second[0] and bool(most) and min(most) < max(first[1], second[1])


def _take_in(wanted: frozenset[object], has: frozenset[object]) -> bool:
    """Return whether each of these globs and names is one of the wanted ones, or within one."""
    return _Names(frozenset(map(str, wanted))).cover(_Names(frozenset(map(str, has))))


def atoms(match: Match) -> Iterator[Match]:
    """Smaller blocks that together match the same pods; the block itself if they are too many."""
    lists: dict[str, Sequence[object]] = {}
    for name, field in {**_VALUE, **_NAMES}.items():
        values = getattr(match, name)
        if values is None and field.always:
            lists[name] = field.words
        elif values is not None and len(values) > 1:
            lists[name] = values
    count = math.prod(map(len, lists.values())) * (2 if match.coordinator is None else 1)
    if count > _MOST_ATOMS:
        yield match
        return
    leads = (True, False) if match.coordinator is None else (match.coordinator,)
    for coordinator, *values in itertools.product(leads, *lists.values()):
        single_values = {name: [value] for name, value in zip(lists, values, strict=True)}
        yield match.model_copy(update={**single_values, "coordinator": coordinator})


def _selector_guarantees(
    sets: Mapping[str, frozenset[object]], labels: Mapping[str, Sequence[Requirement]]
) -> Iterator[tuple[str, frozenset[object]]]:
    """By field the values that a selector of our labels certainly leaves."""
    for name, field in _VALUE.items():
        listed = frozenset[object]()
        for requirement in labels.get(field.label, ()):
            if requirement["operator"] == "In":
                values = {field.parse_label(value) for value in requirement["values"]}
                if None not in values:
                    listed = listed & values if listed else frozenset(values)
        if listed:
            yield name, listed & sets[name] if name in sets else listed


def includes(wide: str, narrow: str) -> bool:
    """Return whether a glob matches every name that another glob or name matches."""
    if wide == narrow or not is_glob(wide):
        return wide == narrow
    # Each of a thousand policies is compared with each other: most differ at the start. Only a * of
    # the wider glob matches what a * of the narrower one matches.
    return (
        narrow.startswith(literal(wide)) and _compiled(wide, "[^*]").fullmatch(narrow) is not None
    )


def shared(some: Sequence[str], others: Sequence[str]) -> Sequence[str]:
    """Globs and names that match every name that both lists match, and few others."""
    if len(some) * len(others) > _MOST_PAIRS:
        return some
    shared_names: dict[str, None] = {}
    for name in some:
        for other in others:
            if overlap(name, other):
                shared_names[other if includes(name, other) else name] = None
    return list(shared_names)


def overlap(left: str, right: str) -> bool:
    """Return whether an object can have a name that two globs or names both match.

    True also for a few pairs whose shared names would all be too long or begin with "-".
    """
    first, second = literal(left), literal(right)
    if not first.startswith(second) and not second.startswith(first):
        return False
    # A name begins and ends with a letter or a digit.
    if "-" in {left[0], left[-1], right[0], right[-1]}:
        return False
    if "*" in left and "*" in right:
        # The * of each glob matches everything between the ends of the other.
        heads = zip(left.split("*", 1)[0], right.split("*", 1)[0], strict=False)
        tails = zip(left.rsplit("*", 1)[1][::-1], right.rsplit("*", 1)[1][::-1], strict=False)
        return all(a == b or "?" in (a, b) for a, b in itertools.chain(heads, tails))
    wide, narrow = (left, right) if "*" in left else (right, left)
    # This matches the globs without a * that share a name with the wide one.
    return _compiled(wide, ".", "[{}?]").fullmatch(narrow) is not None


def _is_possible(glob: str, longest: int) -> bool:
    """Return whether a name of at most `longest` characters can match it."""
    return len(glob.replace("*", "")) <= longest and overlap(glob, "*")


@functools.lru_cache(maxsize=8192)
def literal(glob: str) -> str:
    """Return the common start of all names that match."""
    return re.split("[*?]", glob, maxsplit=1)[0]


@functools.lru_cache(maxsize=16_384)
def _compiled(glob: str, question_mark: str, same: str = "{}") -> re.Pattern[str]:
    """Return a pattern in which `question_mark` matches ?, and `same` any other character."""
    head, *others = (
        "".join(question_mark if char == "?" else same.format(re.escape(char)) for char in part)
        for part in glob.split("*")
    )
    if not others:
        return re.compile(head)
    # The first place that fits is as good as any later one. Were they tried too, a glob with
    # many * would take years.
    middle = "".join(f"(?>.*?{part})" for part in others[:-1])
    return re.compile(f"{head}{middle}.*{others[-1]}")


def requirements(selector: LabelSelector | None) -> Iterator[Requirement]:
    """Yield the expressions of a selector."""
    for condition in compile_selector(selector).conditions if selector else ():
        requirement: Requirement = {"key": condition.key, "operator": condition.operator}
        if condition.values:
            requirement["values"] = list(condition.values)
        yield requirement


def _by_key(selector: LabelSelector | None) -> dict[str, list[Requirement]]:
    result: dict[str, list[Requirement]] = {}
    for requirement in requirements(selector):
        result.setdefault(requirement["key"], []).append(requirement)
    return result


def _implied(
    wanted: Mapping[str, Sequence[Requirement]], given: Mapping[str, Sequence[Requirement]]
) -> bool:
    """Return whether labels that meet all given requirements meet all wanted ones."""
    # No condition holds for every value and for absence too: each wanted key has to be given.
    return wanted.keys() <= given.keys() and all(
        not label_values.satisfiable([*given[key], label_values.negated(requirement)])
        for key, group in wanted.items()
        for requirement in group
    )


class Unmatchable(NamedTuple):
    """Why no pod matches; `at` is the path below spec."""

    at: Path
    why: str


def unmatchable(match: Match, exclude: Sequence[Match] = ()) -> Unmatchable | None:
    """Return why no pod can match without being excluded; None if a pod can."""
    reach = MatchedPods(match)
    if unmet := reach.unmet():
        field, why = unmet
        return Unmatchable(("match", field), why)
    blocks = [MatchedPods(excluded_match) for excluded_match in exclude]
    for at, block in enumerate(blocks):
        if block.covers(reach):
            return Unmatchable(("exclude", at), "it excludes every pod that match selects")
    if blocks and all(
        atom.unmet() is not None or any(block.covers(atom) for block in blocks)
        for atom in map(MatchedPods, atoms(match))
    ):
        return Unmatchable(("exclude",), "together they exclude every pod that match selects")
    return None
