"""The table of match fields, and compiled match blocks.

A row describes how a field is compared. Evaluation, the index, the comparison of two blocks, the
search for a pod that several policies match, explanations and exported policies use these rows.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from webhook import names
from webhook.dns_names import MAX_LABEL, MAX_SUBDOMAIN, is_label, is_subdomain
from webhook.frameworks.table import FRAMEWORKS
from webhook.placement.quantity import counted, format_quantity, nanos
from webhook.placement.schema.syntax import qualified_name_fault
from webhook.policy.match_model import Match
from webhook.policy.selectors import compile_selector
from webhook.sources.marks import parse_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from webhook.placement.schema.selectors import LabelSelector
    from webhook.policy.match_model import RequestRange
    from webhook.policy.subject import Subject

# How a pod's value is compared with a field's:
# name    a name, which one of the globs matches
# value   a value or None, which is one of the list
# values  a set, of which one of the globs matches one
# flag    true or false, which is the same
# labels  labels, which the selector selects
# amounts amounts by name, of which one is within one of the ranges
Form: TypeAlias = Literal["name", "value", "values", "flag", "labels", "amounts"]
# A resource and the bounds of its amount in nanos; None: no upper one.
Range: TypeAlias = tuple[str, int, int | None]


class MatchField(NamedTuple):
    """One field of a match block.

    name:    its name in Match
    form:    how it is compared
    subject: where a Subject has the pod's value
    cel:     the pod's value in the exported policies; `webhook.exported.matching` writes `values`
    noun:    in "every pod of role worker"; without one, such sets of pods are not checked
    phrase:  what a warning puts before the value of a pod that it describes
    dotted:  whether a name is a DNS subdomain, and not a DNS label
    label:   the label of ours that gives the value, before any other system's label
    words:   all allowed values; () if there is no such list
    always:  whether a pod always has one of these values
    flags:   what a pod does for which a flag is true, and for which it is false
    """

    name: str
    form: Form
    subject: str
    cel: str = ""
    noun: str = ""
    phrase: str = ""
    dotted: bool = False
    label: str = ""
    words: tuple[str, ...] = ()
    always: bool = False
    flags: tuple[str, str] = ("", "")

    @property
    def document_name(self) -> str:
        """The field's name in documents."""
        return Match.model_fields[self.name].alias or self.name

    @property
    def title(self) -> str:
        """Its name in messages: "service account"."""
        return self.noun or self.label.removeprefix(names.PREFIX)

    @property
    def longest(self) -> int:
        """How long a name can be."""
        return MAX_SUBDOMAIN if self.dotted else MAX_LABEL

    def is_name(self, text: str) -> bool:
        """Return whether the API server accepts the text as a name."""
        if self.form == "values":
            return not qualified_name_fault(text)
        return is_subdomain(text) if self.dotted else is_label(text)

    def parse_label(self, text: str) -> object:
        """Return the value for a text in the field's label; None if it counts as unset."""
        if not self.words:
            return parse_index(text)
        return text.lower() if text.lower() in self.words else None


# In the order of the fields of Match: conditions are tested in it, and the first failure is
# reported.
FIELDS: Final = (
    MatchField("namespaces", "name", "namespace", "request.namespace", "namespace"),
    MatchField("namespace_selector", "labels", "namespace_labels", "variables.namespace_labels"),
    MatchField("pod_selector", "labels", "labels", "variables.own_labels"),
    MatchField(
        "annotation_selector", "labels", "annotations", "variables.own_annotations",
        phrase="with annotations",
    ),
    MatchField(
        "kinds", "value", "identity.kind", "variables.kind", "kind",
        label=names.KIND, words=names.KINDS, always=True,
    ),
    MatchField(
        "frameworks", "value", "identity.framework", "variables.framework", "framework",
        label=names.FRAMEWORK, words=tuple(FRAMEWORKS),
    ),
    MatchField(
        "roles", "value", "identity.role", "variables.role", "role",
        label=names.ROLE, words=names.ROLES,
    ),
    MatchField(
        "replica_indexes", "value", "identity.replica_index", "variables.index",
        label=names.REPLICA_INDEX,
    ),
    MatchField(
        "coordinator", "flag", "identity.coordinator", "variables.coordinator",
        flags=("leads its run", "does not lead its run"),
    ),
    MatchField("resources", "values", "resources", noun="resource", phrase="requesting"),
    MatchField("requests", "amounts", "requests"),
    MatchField(
        "resource_claims", "flag", "resource_claims",
        "(size(object.spec.?resourceClaims.orValue([])) > 0)",
        phrase="with resource claims", flags=("has resource claims", "has no resource claims"),
    ),
    MatchField("volumes", "values", "volumes", noun="volume type", phrase="with volumes"),
    MatchField(
        "service_accounts", "name", "service_account",
        "object.spec.?serviceAccountName.orValue('default')",
        noun="service account", phrase="with service account", dotted=True,
    ),
)  # fmt: skip


def fields_of(*forms: Form) -> dict[str, MatchField]:
    """Return the fields of these forms, by name."""
    return {field.name: field for field in FIELDS if field.form in forms}


def given_fields(match: Match) -> list[tuple[MatchField, Any]]:
    """Return the fields that a block gives, each with its value."""
    values = vars(match)
    return [(field, values[field.name]) for field in FIELDS if values[field.name] is not None]


def describe_fields(match: Match) -> Iterator[tuple[MatchField, str]]:
    """Yield the fields that a block gives, each with its value as a text for people."""
    for field, value in given_fields(match):
        if field.form == "labels":
            yield field, ", ".join(map(str, compile_selector(value).conditions)) or "any"
        elif field.form == "flag":
            yield field, str(value).lower()
        elif field.form == "amounts":
            yield field, " or ".join(map(describe_range, value))
        else:
            yield field, ", ".join(map(str, value))


def collect_tested(blocks: Iterable[Match]) -> dict[str, frozenset[object]]:
    """For each field that a block gives, the values that distinguish pods.

    For a selector these are the pairs of `Selector.tested`.
    """
    return merge_tested(
        {field.name: _collect_values(field, value)}
        for block in blocks
        for field, value in given_fields(block)
    )


def _collect_values(field: MatchField, value: Any) -> frozenset[object]:
    match field.form:
        case "labels":
            return frozenset(compile_selector(value).tested)
        case "flag":
            return frozenset([value])
        case "amounts":
            return frozenset(map(to_range, value))
    return frozenset(value)


def to_range(written: RequestRange) -> Range:
    """Return the range that a document writes."""
    most = None if written.at_most is None else nanos(written.at_most)
    return written.resource, nanos(written.at_least or 0), most


def describe_range(written: RequestRange) -> str:
    """Return a range as a text for people: `at least 8 nvidia.com/gpu`."""
    bounds = [
        f"{word} {bound}"
        for word, bound in (("at least", written.at_least), ("at most", written.at_most))
        if bound is not None
    ]
    return f"{' and '.join(bounds)} {written.resource}"


def is_within(amounts: Mapping[str, int], wanted: Range) -> bool:
    """Return whether the amount of the range's resource is within it; none never is."""
    resource, least, most = wanted
    amount = amounts.get(resource, 0)
    return amount > 0 and amount >= least and (most is None or amount <= most)


def merge_tested(
    parts: Iterable[Mapping[str, frozenset[object]]],
) -> dict[str, frozenset[object]]:
    """Return the fields and values of all the parts."""
    values_by_name: dict[str, set[object]] = {}
    for part in parts:
        for name, values in part.items():
            values_by_name.setdefault(name, set()).update(values)
    return {name: frozenset(values) for name, values in values_by_name.items()}


def list_resources(tested: Mapping[str, Iterable[Any]]) -> frozenset[str]:
    """Return the resources, also as globs, by which a pod's values are distinguished."""
    ranges = (resource for resource, _, _ in tested.get("requests", ()))
    return frozenset([*tested.get("resources", ()), *ranges])


def reduce_value(field: MatchField, subject: Subject, tested: frozenset[object]) -> object:
    """Return the part of the pod's value that blocks with only these values can distinguish."""
    value = attrgetter(field.subject)(subject)
    match field.form:
        case "labels":
            return [
                (key, text if (key, text) in tested else None)
                for key, text in sorted(value.items())
                if (key, text) in tested or (key, None) in tested
            ]
        case "values":
            return sorted(among(value, frozenset(map(str, tested))))
        case "value":
            return value if value in tested else None
        case "amounts":
            ranges: Any = tested
            # The least amounts are numbers, the largest may be missing.
            return sorted([str(wanted) for wanted in ranges if is_within(value, wanted)])
    return value


class Condition(NamedTuple):
    """One condition: its name in policy files, the test, and what the pod has instead."""

    name: str
    holds: Callable[[Subject], bool]
    instead: Callable[[Subject], str]


class Block(NamedTuple):
    """A block of conditions which must all hold."""

    conditions: tuple[Condition, ...]

    def holds(self, subject: Subject) -> bool:
        """Return whether every condition holds."""
        for condition in self.conditions:  # noqa: SIM110  a generator costs twice as much
            if not condition.holds(subject):
                return False
        return True

    def failed(self, subject: Subject) -> str | None:
        """Return the first condition that does not hold, and what the pod has instead; or None."""
        for condition in self.conditions:
            if not condition.holds(subject):
                return f"{condition.name}: {condition.instead(subject)}"
        return None


def block(match: Match) -> Block:
    """Return the compiled block."""
    return Block(
        tuple(_COMPILERS[field.form](field, value) for field, value in given_fields(match))
    )


def _compile_name(field: MatchField, wanted: Sequence[str]) -> Condition:
    pattern, value = globs(wanted), attrgetter(field.subject)
    return Condition(
        field.document_name,
        lambda s: pattern.match(value(s)) is not None,
        lambda s: f"{field.title} is {value(s)!r}; the policy wants {' or '.join(wanted)}",
    )


def _compile_labels(field: MatchField, wanted: LabelSelector) -> Condition:
    selector, value = compile_selector(wanted), attrgetter(field.subject)
    noun = "annotation" if field.subject == "annotations" else "label"
    return Condition(
        field.document_name,
        lambda s: selector.matches(value(s)),
        lambda s: str(selector.failed(value(s), noun)),
    )


def _compile_value(field: MatchField, wanted: Sequence[object]) -> Condition:
    allowed, value = frozenset(wanted), attrgetter(field.subject)
    text = " or ".join(map(str, wanted))

    def instead(subject: Subject) -> str:
        actual = value(subject)
        actual_text = (
            f"the pod has no {field.title}" if actual is None else f"{field.title} is {actual}"
        )
        return f"{actual_text}; the policy wants {text}"

    return Condition(field.document_name, lambda s: value(s) in allowed, instead)


def _compile_flag(field: MatchField, wanted: bool) -> Condition:
    value = attrgetter(field.subject)
    return Condition(
        field.document_name,
        lambda s: value(s) is wanted,
        lambda s: f"the pod {field.flags[0] if value(s) else field.flags[1]}",
    )


def _compile_amounts(field: MatchField, wanted: Sequence[RequestRange]) -> Condition:
    ranges, value = [*map(to_range, wanted)], attrgetter(field.subject)
    text = " or ".join(map(describe_range, wanted))

    def holds(subject: Subject) -> bool:
        amounts = value(subject)
        return any(is_within(amounts, wanted_range) for wanted_range in ranges)

    def instead(subject: Subject) -> str:
        amounts = value(subject)
        names_of_ranges = dict.fromkeys(resource for resource, _, _ in ranges)
        requested = " and ".join(
            f"{format_quantity(name, counted(name, amounts.get(name, 0)))} {name}"
            for name in names_of_ranges
        )
        return f"the pod requests {requested}; the policy wants {text}"

    return Condition(field.document_name, holds, instead)


def _compile_values(field: MatchField, wanted: Sequence[str]) -> Condition:
    allowed, values = frozenset(wanted), attrgetter(field.subject)
    with_globs = any(map(is_glob, wanted))
    return Condition(
        field.document_name,
        (lambda s: bool(among(values(s), allowed)))
        if with_globs
        else lambda s: not allowed.isdisjoint(values(s)),
        lambda s: (
            f"the pod has {', '.join(sorted(values(s))) or 'none'}; the policy wants "
            f"{' or '.join(wanted)}"
        ),
    )


_COMPILERS: Final[Mapping[Form, Callable[[MatchField, Any], Condition]]] = {
    "name": _compile_name,
    "value": _compile_value,
    "values": _compile_values,
    "flag": _compile_flag,
    "labels": _compile_labels,
    "amounts": _compile_amounts,
}


def among(values: frozenset[str], listed: frozenset[str]) -> frozenset[str]:
    """Return the values that are listed, or match a listed glob."""
    patterns = [name for name in listed if is_glob(name)]
    if not patterns:
        return values & listed
    pattern = globs(sorted(patterns))
    return frozenset(value for value in values if value in listed or pattern.match(value))


def globs(patterns: Sequence[str]) -> re.Pattern[str]:
    """Return one pattern that matches what any of the globs matches (`*` any text, `?` one
    character)."""
    return _compiled(tuple(patterns))


# Half of the time to compile a set in which one policy of a thousand changed; Python caches 512.
@functools.lru_cache(maxsize=4096)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns))


def is_glob(pattern: str) -> bool:
    """Return whether it may match more than itself."""
    return "*" in pattern or "?" in pattern
