"""Find a pod that several policies match.

The run's kind, framework, role and index are given by Fairlead's own labels, which are valid for a
pod of any system (see `webhook.identity`).
"""

from __future__ import annotations

import itertools
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.frameworks.table import WORKER_ZERO_LEADS
from webhook.identity import identify
from webhook.interception import EXCLUDED_NAMESPACES
from webhook.placement import label_values
from webhook.placement.quantity import NANOS, unit_of
from webhook.policy import conditions
from webhook.policy.matched_pods import requirements
from webhook.policy.subject import Subject, quantity_of, spec_of
from webhook.shortening import first_few

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.judgement.together.policy_view import Policy
    from webhook.placement.shapes import JsonObject, Requirement
    from webhook.policy.conditions import MatchField, Range
    from webhook.policy.match_model import Match

_NAME_LABEL: Final = "kubernetes.io/metadata.name"
# Of those that a glob may match, the first ones that a pod gets.
_USUAL_RESOURCES: Final = ("nvidia.com/gpu", "cpu", "memory")
_USUAL_NAMES: Final = ("default", "example", "other")
# The limits of the search: names for one pod, and pods for one question.
_MOST_NAMES: Final = 100
_MOST_PODS: Final = 12
_NAMED: Final = 5


class Witness(NamedTuple):
    """A pod, and its operating system (empty: none)."""

    subject: Subject
    system: str

    def __str__(self) -> str:
        pod = self.subject
        parts = [f"in namespace {pod.namespace}"]
        if spaces := _pairs(pod.namespace_labels, _NAME_LABEL):
            parts[0] += f" ({spaces})"
        if labels := _pairs(pod.labels, names.RUN):
            parts.append(f"with {labels}")
        for field in conditions.FIELDS:
            value = attrgetter(field.subject)(pod)
            if field.phrase and value != Subject._field_defaults[field.subject]:
                values = _describe(field, value, pod)
                if not values:
                    parts.append(field.phrase)
                    continue
                parts.append(f"{field.phrase} {first_few(values, _NAMED)}")
        if self.system:
            parts.append(f"for {self.system}")
        return ", ".join(parts)

    def manifest(self) -> JsonObject:
        """Return it as a v1.Pod."""
        system = {"os": {"name": self.system}} if self.system else {}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "p",
                "labels": dict(self.subject.labels),
                "annotations": dict(self.subject.annotations),
            },
            "spec": {**spec_of(self.subject), **system},
        }


def _describe(field: MatchField, value: Any, pod: Subject) -> Sequence[str]:
    """Return what a pod has of a field, as texts; none for a flag."""
    match field.form:
        case "flag":
            return ()
        case "name":
            return [value]
        case "labels":
            return [f"{key}={text}" for key, text in sorted(value.items())]
        case _ if field.subject == "resources":
            texts = ((name, quantity_of(pod, name)) for name in sorted(value))
            return [name if text == "1" else f"{text} {name}" for name, text in texts]
    return sorted(value)


def _pairs(labels: Mapping[str, str], without: str) -> str:
    return first_few([f"{k}={v}" for k, v in sorted(labels.items()) if k != without], _NAMED)


class _Conditions(NamedTuple):
    """Conditions that must all hold.

    one_of:  fields, each with a list of which the pod must match or have one
    none_of: fields, each with a list of which the pod must match or have none
    labels:  fields of selectors, each with a condition on one label
    coordinator: the conditions on whether the pod leads
    """

    one_of: tuple[tuple[str, Sequence[Any]], ...] = ()
    none_of: tuple[tuple[str, Sequence[Any]], ...] = ()
    labels: tuple[tuple[str, Requirement], ...] = ()
    coordinator: tuple[bool, ...] = ()

    def beside(self, other: _Conditions) -> _Conditions:
        """Return the conditions of both."""
        return _Conditions._make(first + second for first, second in zip(self, other, strict=True))


def _want_label(key: str, operator: str, values: Iterable[object]) -> _Conditions:
    """Return a condition on a label of the pod."""
    requirement: Requirement = {"key": key, "operator": operator, "values": [*map(str, values)]}
    return _Conditions(labels=(("pod_selector", requirement),))


def find(policies: Sequence[Policy]) -> Witness | None:
    """Return a pod of a run that all of the policies match, and none of them excludes; None: not
    found."""
    systems = {policy.system[1] for policy in policies if policy.system}
    if len(systems) > 1:
        return None
    matches = [policy.match_block for policy in policies]
    pod = find_subject(matches, [block for policy in policies for block in policy.exclude_blocks])
    return None if pod is None else Witness(pod, next(iter(systems), ""))


class WantedBlock:
    """A match or exclude block, prepared for the search for many pods."""

    def __init__(self, match: Match) -> None:
        self.match = match
        self.holds = conditions.block(match).holds
        self.conditions = _collect_conditions(match)


def find_subject(matches: Sequence[WantedBlock], excludes: Sequence[WantedBlock]) -> Subject | None:
    """Return a pod of a run that meets all of `matches` and none of `excludes`; None: not found.

    A pod that is found is proved: the conditions were tested on it. There may be such a pod even
    if none is found.
    """
    wanted = _Conditions()
    for match in matches:
        wanted = wanted.beside(match.conditions)
    left = [wanted]
    for _ in range(_MOST_PODS):
        if not left:
            return None
        wanted = left.pop()
        leads = set(wanted.coordinator)
        if len(leads) == 1:
            rest = wanted._replace(coordinator=())
            left += reversed([rest.beside(way) for way in _list_ways_to_lead(*leads)])
            continue
        pod = None if leads else _build_subject(wanted)
        if pod is None or not all(match.holds(pod) for match in matches):
            continue
        excluding = next((exclusion for exclusion in excludes if exclusion.holds(pod)), None)
        if excluding is None:
            return pod
        left += reversed([wanted.beside(way) for way in _list_ways_around(excluding.match)])
    return None


def _collect_conditions(block: Match) -> _Conditions:
    """Return what a pod needs to meet the block."""
    wanted = _Conditions()
    for field, value in conditions.given_fields(block):
        wanted = wanted.beside(_translate_field(field, value))
    return wanted


def _translate_field(field: MatchField, value: Any) -> _Conditions:
    match field.form:
        case "labels":
            return _Conditions(
                labels=tuple((field.name, requirement) for requirement in requirements(value))
            )
        case "value":
            return _want_label(field.label, "In", value)
        case "flag" if field.name == "coordinator":
            return _Conditions(coordinator=(value,))
    return _Conditions(one_of=((field.name, _list_choices(field, value)),))


def _list_choices(field: MatchField, value: Any) -> Sequence[Any]:
    match field.form:
        case "flag":
            return [value]
        case "amounts":
            return [*map(conditions.to_range, value)]
    listed: Sequence[Any] = value
    return listed


def _list_ways_around(block: Match) -> Iterator[_Conditions]:
    """Conditions, each of which prevents a match of the block."""
    for field, value in conditions.given_fields(block):
        match field.form:
            case "labels":
                for requirement in requirements(value):
                    yield _Conditions(labels=((field.name, label_values.negated(requirement)),))
            case "value" if field.always:
                # Without a label the pod still has one of the values.
                yield _want_label(field.label, "In", [w for w in field.words if w not in value])
            case "value":
                yield _want_label(field.label, "NotIn", value)
            case "flag" if field.name == "coordinator":
                yield _Conditions(coordinator=(not value,))
            case _:
                yield _Conditions(none_of=((field.name, _list_choices(field, value)),))


def _list_ways_to_lead(leads: bool) -> Iterator[_Conditions]:
    """Label conditions, each of which makes a pod lead its run, or not lead."""
    first = (
        (names.REPLICA_INDEX, ["0"]),
        (names.FRAMEWORK, sorted(WORKER_ZERO_LEADS)),
        (names.ROLE, ["worker"]),
    )
    if leads:
        yield _want_label(names.ROLE, "In", sorted(names.COORDINATOR_ROLES))
        wanted = _Conditions()
        for key, values in first:
            wanted = wanted.beside(_want_label(key, "In", values))
        yield wanted
        return
    no_role = _want_label(names.ROLE, "NotIn", names.COORDINATOR_ROLES)
    for key, values in first:
        yield no_role.beside(_want_label(key, "NotIn", values))


def _build_subject(wanted: _Conditions) -> Subject | None:
    """Return a pod of a run that meets all conditions; None if none is found."""
    subject_fields: dict[str, Any] = {}
    for field in conditions.FIELDS:
        lists = [listed for name, listed in wanted.one_of if name == field.name]
        others = [word for name, listed in wanted.none_of if name == field.name for word in listed]
        if field.form == "name" and (lists or others or field.name == "namespaces"):
            subject_fields[field.subject] = _choose_name(field, wanted, lists, others)
        elif field.form == "values":
            subject_fields[field.subject] = _choose_each(field, lists, others)
        elif field.form == "flag" and field.name != "coordinator":
            left = {True, False}.intersection(*map(frozenset, lists)).difference(others)
            subject_fields[field.subject] = min(left, default=None)
        elif field.form == "amounts":
            shut = [
                word for name, listed in wanted.none_of if name == "resources" for word in listed
            ]
            present = subject_fields["resources"] or frozenset()
            amounts = _choose_amounts(lists, others, present, shut)
            subject_fields[field.subject] = amounts
            if subject_fields["resources"] is not None:
                subject_fields["resources"] = frozenset(amounts or ())
        elif field.form == "labels":
            named = field.name == "namespace_selector" and subject_fields["namespace"]
            parts = [requirement for name, requirement in wanted.labels if name == field.name]
            subject_fields[field.subject] = _choose_labels(
                parts, {_NAME_LABEL: named} if named else {}
            )
    if None in subject_fields.values():
        return None
    if not any(
        field_name == "pod_selector" and parts["key"] == names.RUN
        for field_name, parts in wanted.labels
    ):
        subject_fields["labels"][names.RUN] = "example"
    identity = identify(
        subject_fields["labels"],
        subject_fields["annotations"],
        subject_fields["namespace_labels"],
    )
    return Subject(identity=identity, **subject_fields) if identity else None


def _choose_each(
    field: MatchField, lists: Sequence[Sequence[str]], refused: Sequence[str]
) -> frozenset[str] | None:
    """Return a value of each list, which the others do not match; None if one is not found."""
    words, shut = set[str](), conditions.globs([*refused])
    for listed in lists:
        usual = _USUAL_RESOURCES if any(map(conditions.is_glob, listed)) else ()
        names_of_list = itertools.islice(_candidate_names([listed], usual), _MOST_NAMES)
        fitting = (
            name
            for name in names_of_list
            if field.is_name(name)
            and conditions.globs(listed).match(name)
            and not (refused and shut.match(name))
        )
        word = next(fitting, None)
        if word is None:
            return None
        words.add(word)
    return frozenset(words)


def _choose_amounts(
    lists: Sequence[Sequence[Range]],
    others: Sequence[Range],
    present: frozenset[str],
    shut: Sequence[str],
) -> Mapping[str, int] | None:
    """Return amounts in nanos of the present resources, and within a range of each list.

    None of `others` is met, and no resource matches the globs `shut`. None: not found.
    """
    closed = conditions.globs(shut)
    for chosen in itertools.islice(itertools.product(*lists), _MOST_PODS):
        amounts: dict[str, int] = {}
        for resource in sorted({*present, *(wanted[0] for wanted in chosen)}):
            ranges = [wanted for wanted in chosen if wanted[0] == resource]
            unit = unit_of(resource)
            least = [-(-wanted[1] // unit) * unit for wanted in ranges]
            beyond = [(most // unit + 1) * unit for _, _, most in others if most is not None]
            fitting = (
                amount
                for amount in (NANOS, *least, *beyond, unit)
                if all(conditions.is_within({resource: amount}, wanted) for wanted in ranges)
                and not any(conditions.is_within({resource: amount}, other) for other in others)
            )
            amount = next(fitting, None)
            if amount is None or (shut and closed.match(resource)):
                break
            amounts[resource] = amount
        else:
            return amounts
    return None


def _choose_labels(
    wanted: Sequence[Requirement], given: Mapping[str, str]
) -> dict[str, str] | None:
    """Labels that meet all conditions, including the given labels; None if there are none."""
    by_key: dict[str, list[Requirement]] = {}
    for requirement in wanted:
        by_key.setdefault(requirement["key"], []).append(requirement)
    labels = dict(given)
    for key, group in by_key.items():
        choices: Iterator[str | None] = (
            iter([labels[key]]) if key in labels else _candidate_values(group)
        )
        fitting = (
            choice
            for choice in choices
            if all(label_values.holds(requirement, choice) for requirement in group)
        )
        try:
            value = next(fitting)
        except StopIteration:
            return None
        if value is not None:
            labels[key] = value
    return labels


def _candidate_values(group: Sequence[Requirement]) -> Iterator[str | None]:
    """Candidates: no label, the values in the conditions, and another value."""
    yield None
    listed = [value for requirement in group for value in requirement.get("values") or ()]
    yield from dict.fromkeys(listed)
    yield next(text for at in itertools.count() if (text := f"any{at or ''}") not in listed)


def _choose_name(
    field: MatchField, wanted: _Conditions, lists: Sequence[Sequence[str]], others: Sequence[str]
) -> str | None:
    patterns = [conditions.globs(words) for words in lists]
    is_space = field.name == "namespaces"
    refused = conditions.globs([*others, *(EXCLUDED_NAMESPACES if is_space else ())])
    labelled = [
        value
        for name, requirement in wanted.labels
        if is_space and name == "namespace_selector" and requirement["key"] == _NAME_LABEL
        for value in requirement.get("values") or ()
    ]
    for name in itertools.islice(_candidate_names(lists, labelled), _MOST_NAMES):
        if (
            field.is_name(name)
            and all(pattern.match(name) for pattern in patterns)
            and not ((others or is_space) and refused.match(name))
        ):
            return name
    return None


def _candidate_names(lists: Sequence[Sequence[str]], labelled: Sequence[str]) -> Iterator[str]:
    """Candidate names: those in the conditions, some that match the globs, then others."""
    yield from labelled
    listed = [glob for globs in lists for glob in globs]
    globs = [word for word in listed if conditions.is_glob(word)]
    yield from (word for word in listed if not conditions.is_glob(word))
    fillers = ["", "x", *(glob.replace("*", "").replace("?", "x") for glob in globs)]
    for filler, glob in itertools.product(fillers, globs):
        yield glob.replace("*", filler).replace("?", "x")
    yield from _USUAL_NAMES
