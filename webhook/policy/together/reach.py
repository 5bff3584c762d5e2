"""How far a block of conditions reaches: whether it takes in another's pods, or none of them.

Both questions are answered on the safe side: "yes" is proved of every pod there can be, "no" says
only that it is not.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.interception import EXCLUDED_NAMESPACES
from webhook.placement import label_values
from webhook.placement.nodes import written
from webhook.policy.conditions import is_glob
from webhook.policy.selectors import compile_selector
from webhook.replicas import parse_index
from webhook.run.rendezvous.table import FRAMEWORKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.placement.schema import LabelSelector
    from webhook.placement.shapes import Requirement
    from webhook.policy.match_model import Match

# Of these a pod has one value, or none; with the label of ours that goes before any other word.
_SINGLE: Final = {
    "kinds": names.KIND,
    "frameworks": names.FRAMEWORK,
    "roles": names.ROLE,
    "replica_indexes": names.REPLICA_INDEX,
}
# By name what documents write otherwise.
_WRITTEN: Final = {"replica_indexes": "replicaIndexes"}
# Of these it may have several, and one that is asked for is enough.
_SEVERAL: Final = ("resources", "volumes")
_KNOWN: Final = {"kinds": names.KINDS, "frameworks": tuple(FRAMEWORKS), "roles": names.ROLES}
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
# Blocks of which each value is looked at by itself.
_MOST_ATOMS: Final = 100
# Globs that are held against each other for one answer; each takes some half a µs.
_MOST_PAIRS: Final = 500


class Reach:
    """One match or exclude block, made ready to be held against many others.

    spaces:   names and globs, of one of which a pod's namespace is; None: of any
    literals: those without a glob
    """

    __slots__ = (
        "_anywhere",
        "_coordinator",
        "_globs",
        "_namespace_labels",
        "_namespaces",
        "_pod_labels",
        "_sets",
        "_wider",
        "_words",
        "literals",
        "spaces",
    )

    def __init__(self, match: Match) -> None:
        self._namespaces = frozenset(match.namespaces) if match.namespaces else None
        self._wider = [each for each in self._namespaces or () if is_glob(each)]
        # In any namespace that there can be.
        self._anywhere = self._namespaces is None or any(
            set(each) == {"*"} for each in self._namespaces
        )
        self._namespace_labels = _by_key(match.namespace_selector)
        # Each namespace has the label of its name.
        if all(e["operator"] == "Exists" for e in self._namespace_labels.get(_NAME_LABEL, ())):
            self._namespace_labels.pop(_NAME_LABEL, None)
        self._pod_labels = _by_key(match.pod_selector)
        self._coordinator = match.coordinator
        self._sets: Mapping[str, frozenset[object]] = {
            name: frozenset(values)
            for name in (*_SINGLE, *_SEVERAL)
            if (values := getattr(match, name))
        }
        # What is said of a pod in other words, too: its labels, and that it leads.
        self._words = {**self._sets, **dict(_told(self._sets, self._pod_labels))}
        if self._coordinator is False and "roles" in self._words:
            self._words["roles"] -= names.COORDINATOR_ROLES
        self.spaces = _spaces(self._namespaces, self._namespace_labels)
        self._globs = frozenset(each for each in self.spaces or () if is_glob(each))
        self.literals = (self.spaces or frozenset()) - self._globs

    @property
    def _leads(self) -> bool | None:
        """Whether all of its pods lead their run; None if that is not said."""
        roles = self._words.get("roles")
        if self._coordinator is None and roles and roles <= names.COORDINATOR_ROLES:
            return True
        return self._coordinator

    @property
    def asked(self) -> frozenset[str]:
        """What the block asks of a pod. It covers no block that does not tell all of it."""
        found = {*self._sets, *self._label_keys}
        if self._coordinator is not None:
            found.add("coordinator")
        if not self._anywhere:
            found.add("namespaces")
        return frozenset(found)

    @property
    def told(self) -> frozenset[str]:
        """What the block tells of its pods, as `asked` has it."""
        found = {*self._words, *self._label_keys}
        if self._leads is not None:
            found.add("coordinator")
        if self.spaces is not None:
            found.add("namespaces")
        return frozenset(found)

    @property
    def _label_keys(self) -> set[str]:
        return {f"namespace/{key}" for key in self._namespace_labels} | {
            f"pod/{key}" for key in self._pod_labels
        }

    @property
    def starts(self) -> frozenset[str]:
        """What each name of a namespace that the block asks for begins with one of."""
        return frozenset(map(literal, self._namespaces or ()))

    def covers(self, other: Reach) -> bool:
        """Whether every pod that meets the other block meets this one."""
        if self._coordinator is not None and self._coordinator != other._leads:
            return False
        for name, wanted in self._sets.items():
            has = other._words.get(name)
            if has is None or not has <= wanted:
                return False
        return (
            self._covers_namespaces(other)
            and _implied(self._namespace_labels, other._namespace_labels)
            and _implied(self._pod_labels, other._pod_labels)
        )

    def _covers_namespaces(self, other: Reach) -> bool:
        if self._anywhere:
            return True
        if self._namespaces is None or other.spaces is None:
            return False
        others = other.spaces - self._namespaces
        return len(self._wider) * len(others) <= _MOST_PAIRS and all(
            any(includes(wide, each) for wide in self._wider) for each in others
        )

    def apart(self, other: Reach) -> bool:
        """Whether no pod meets both blocks."""
        if {self._leads, other._leads} == {True, False}:
            return True
        for name in _SINGLE:
            one, two = self._words.get(name), other._words.get(name)
            if one is not None and two is not None and one.isdisjoint(two):
                return True
        return (
            self._in_other_namespaces(other)
            or _never_both(self._namespace_labels, other._namespace_labels)
            or _never_both(self._pod_labels, other._pod_labels)
        )

    def _in_other_namespaces(self, other: Reach) -> bool:
        if self.spaces is None or other.spaces is None:
            return False
        if not self.literals.isdisjoint(other.literals):
            return False
        if len(self._globs) * len(other.spaces) + len(other._globs) * len(self.spaces) > (
            _MOST_PAIRS
        ):
            return False
        pairs = itertools.chain(
            itertools.product(self._globs, other.spaces),
            itertools.product(other._globs, self.literals),
        )
        return not any(overlap(one, two) for one, two in pairs)

    def unmet(self) -> tuple[str, str] | None:
        """Why no pod meets the block, if it is certain: the field that rules all out, and why."""
        for field, labels in (
            ("namespaceSelector", self._namespace_labels),
            ("podSelector", self._pod_labels),
        ):
            for group in labels.values():
                if not label_values.satisfiable(group):
                    return field, f"no labels meet {' and '.join(map(written, group))}"
        for field in _SINGLE:
            if field in self._sets and not self._words[field]:
                said = ", ".join(map(str, sorted(self._sets[field], key=str)))
                if field == "roles" and self._coordinator is False:
                    return "coordinator", f"pods of role {said} always lead their run"
                name = _WRITTEN.get(field, field)
                return "podSelector", f"{_SINGLE[field]} says otherwise than {name}: {said}"
        return self._no_namespace()

    def _no_namespace(self) -> tuple[str, str] | None:
        if self.spaces is None:
            return None
        said = ", ".join(sorted(self._namespaces or ()))
        if not self.spaces and self._namespaces:
            return "namespaceSelector", f"{_NAME_LABEL} names none of the namespaces {said}"
        if not any(overlap(each, "*") for each in self.spaces):
            return "namespaces", f"no namespace can have the name {said}"
        if self.spaces <= {*EXCLUDED_NAMESPACES}:
            return "namespaces", f"pods in {said or ', '.join(self.spaces)} never reach Fairlead"
        return None


def atoms(match: Match) -> Iterator[Match]:
    """Blocks of which each pod of the block meets one; the block itself if they are too many."""
    fields = [name for name in (*_SINGLE, "namespaces") if len(getattr(match, name) or ()) > 1]
    lists = [getattr(match, name) for name in fields]
    if match.kinds is None:
        # A pod always has a kind.
        fields, lists = [*fields, "kinds"], [*lists, names.KINDS]
    if match.coordinator is None:
        fields, lists = [*fields, "coordinator"], [*lists, (True, False)]
    count = 1
    for each in lists:
        count *= len(each)
    if count > _MOST_ATOMS:
        yield match
        return
    for values in itertools.product(*lists):
        one = {
            name: value if name == "coordinator" else [value]
            for name, value in zip(fields, values, strict=True)
        }
        yield match.model_copy(update=one)


def _told(
    sets: Mapping[str, frozenset[object]], labels: Mapping[str, Sequence[Requirement]]
) -> Iterator[tuple[str, frozenset[object]]]:
    """By field what a selector of our own labels leaves of it, where it says that for certain."""
    for field, label in _SINGLE.items():
        said = frozenset[object]()
        for each in labels.get(label, ()):
            if each["operator"] == "In":
                values = {_word(field, value) for value in each["values"]}
                if None not in values:
                    said = said & values if said else frozenset(values)
        if said:
            yield field, said & sets[field] if field in sets else said


def _word(field: str, value: str) -> object:
    """What a label of ours tells; None if its value counts as not said."""
    if field == "replica_indexes":
        return parse_index(value)
    return value.lower() if value.lower() in _KNOWN[field] else None


def _spaces(
    namespaces: frozenset[str] | None, labels: Mapping[str, Sequence[Requirement]]
) -> frozenset[str] | None:
    """Names and globs that a pod's namespace is of, as namespaces and the label of its name say."""
    named = [each["values"] for each in labels.get(_NAME_LABEL, ()) if each["operator"] == "In"]
    if not named:
        return namespaces
    listed = frozenset(named[0]).intersection(*named[1:])
    if namespaces is None:
        return listed
    return frozenset(each for each in listed if any(includes(wide, each) for wide in namespaces))


def includes(wide: str, narrow: str) -> bool:
    """Whether a glob takes in every name that another one, or a name, does."""
    if wide == narrow or not is_glob(wide):
        return wide == narrow
    # Of a thousand policies each is held against each other: most differ where they begin.
    return narrow.startswith(literal(wide)) and _pattern(wide).fullmatch(narrow) is not None


@functools.lru_cache(maxsize=8192)
def _pattern(glob: str) -> re.Pattern[str]:
    # What * stands for in the narrower one, only * takes in.
    return _compiled(glob, one="[^*]")


def overlap(one: str, two: str) -> bool:
    """Whether a namespace can have a name that both of two globs or names match.

    It says so, too, of a few pairs whose shared names would all be too long or begin with "-".
    """
    first, second = literal(one), literal(two)
    if not first.startswith(second) and not second.startswith(first):
        return False
    # A name begins and ends with a letter or a digit.
    if "-" in {one[0], one[-1], two[0], two[-1]}:
        return False
    if "*" in one and "*" in two:
        # What stands between the ends of either, a * of the other one takes in.
        heads = zip(one.split("*", 1)[0], two.split("*", 1)[0], strict=False)
        tails = zip(one.rsplit("*", 1)[1][::-1], two.rsplit("*", 1)[1][::-1], strict=False)
        return all(a == b or "?" in (a, b) for a, b in itertools.chain(heads, tails))
    wide, narrow = (one, two) if "*" in one else (two, one)
    return _meeting(wide).fullmatch(narrow) is not None


@functools.lru_cache(maxsize=8192)
def literal(glob: str) -> str:
    """What every name begins with."""
    return re.split("[*?]", glob, maxsplit=1)[0]


@functools.lru_cache(maxsize=8192)
def _meeting(glob: str) -> re.Pattern[str]:
    """What matches the globs without a * that share a name with this one."""
    return _compiled(glob, one=".", same="[{}?]")


def _compiled(glob: str, one: str, same: str = "{}") -> re.Pattern[str]:
    """A pattern of which `one` stands for ?, and `same` for any other character."""
    head, *others = (
        "".join(one if char == "?" else same.format(re.escape(char)) for char in part)
        for part in glob.split("*")
    )
    if not others:
        return re.compile(head)
    # The first place that fits is as good as any later one. Were they tried too, a glob with
    # many * would take years.
    middle = "".join(f"(?>.*?{part})" for part in others[:-1])
    return re.compile(f"{head}{middle}.*{others[-1]}")


def requirements(selector: LabelSelector | None) -> Iterator[Requirement]:
    """What a selector says of labels, expression by expression."""
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
