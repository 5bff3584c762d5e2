"""A pod that several policies match: found by trying, and proved by their very conditions.

The run's kind, framework, role and index are taken as Fairlead's own labels, which tell them of a
pod of any system (see `webhook.identity`).
"""

from __future__ import annotations

import itertools
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.identity import identify
from webhook.interception import EXCLUDED_NAMESPACES
from webhook.placement import label_values
from webhook.policy import conditions
from webhook.policy.findings import first_few
from webhook.policy.match_model import Match
from webhook.policy.subject import Subject
from webhook.policy.together.reach import requirements
from webhook.run.rendezvous.table import WORKER_ZERO_LEADS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.placement.shapes import Requirement
    from webhook.policy.conditions import MatchField
    from webhook.policy.together.policy_view import Policy

_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_USUAL_NAMES: Final = ("default", "example", "other")
# What is tried: names for one pod, and pods for one question.
_MOST_NAMES: Final = 100
_MOST_PODS: Final = 12
_NAMED: Final = 5


class Witness(NamedTuple):
    """A pod, and the operating system that it is for (empty: it says none)."""

    subject: Subject
    system: str

    def __str__(self) -> str:
        pod = self.subject
        said = [f"in namespace {pod.namespace}"]
        if spaces := _pairs(pod.namespace_labels, _NAME_LABEL):
            said[0] += f" ({spaces})"
        if labels := _pairs(pod.labels, names.RUN):
            said.append(f"with {labels}")
        for field in conditions.FIELDS:
            value = attrgetter(field.subject)(pod)
            if field.phrase and value != Subject._field_defaults[field.subject]:
                values = [value] if field.form == "name" else sorted(value)
                said.append(f"{field.phrase} {first_few(values, _NAMED)}")
        if self.system:
            said.append(f"for {self.system}")
        return ", ".join(said)


def _pairs(labels: Mapping[str, str], but: str) -> str:
    return first_few([f"{k}={v}" for k, v in sorted(labels.items()) if k != but], _NAMED)


class _Wanted(NamedTuple):
    """Conditions that must all hold.

    one_of:  fields, each with a list of which the pod's name matches one, or it has one
    none_of: the same of lists of which it matches or has none
    labels:  fields of selectors, each with what is said of one label
    coordinator: all that is said of whether the pod leads
    """

    one_of: tuple[tuple[str, Sequence[str]], ...] = ()
    none_of: tuple[tuple[str, Sequence[str]], ...] = ()
    labels: tuple[tuple[str, Requirement], ...] = ()
    coordinator: tuple[bool, ...] = ()

    def beside(self, other: _Wanted) -> _Wanted:
        """The conditions of both."""
        return _Wanted._make(one + two for one, two in zip(self, other, strict=True))


def _want_label(key: str, operator: str, values: Iterable[object]) -> _Wanted:
    """A condition on a label of the pod."""
    requirement: Requirement = {"key": key, "operator": operator, "values": [*map(str, values)]}
    return _Wanted(labels=(("pod_selector", requirement),))


def find(policies: Sequence[Policy]) -> Witness | None:
    """A pod of a run that all of the policies match, and none of them excludes; None: not found.

    What is found is proved: the policies' conditions were asked about it. There may be such a pod
    though none is found.
    """
    systems = {each.system[1] for each in policies if each.system}
    if len(systems) > 1:
        return None
    specs = [each.model.spec for each in policies]
    matches = [spec.match or Match() for spec in specs]
    excludes = [block for spec in specs for block in spec.exclude]
    left = [_collect_wanted(matches)]
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
        if pod is None or not all(conditions.block(each).holds(pod) for each in matches):
            continue
        shut = next((each for each in excludes if conditions.block(each).holds(pod)), None)
        if shut is None:
            return Witness(pod, next(iter(systems), ""))
        left += reversed([wanted.beside(way) for way in _list_ways_around(shut)])
    return None


def _collect_wanted(blocks: Iterable[Match]) -> _Wanted:
    """What a pod needs to meet every block."""
    wanted = _Wanted()
    for block in blocks:
        for field, value in conditions.given_fields(block):
            wanted = wanted.beside(_translate_field(field, value))
    return wanted


def _translate_field(field: MatchField, value: Any) -> _Wanted:
    match field.form:
        case "labels":
            return _Wanted(labels=tuple((field.name, each) for each in requirements(value)))
        case "value":
            return _want_label(field.label, "In", value)
        case "flag":
            return _Wanted(coordinator=(value,))
    return _Wanted(one_of=((field.name, value),))


def _list_ways_around(block: Match) -> Iterator[_Wanted]:
    """Conditions of which each keeps a pod from meeting the block."""
    for field, value in conditions.given_fields(block):
        match field.form:
            case "labels":
                for each in requirements(value):
                    yield _Wanted(labels=((field.name, label_values.negated(each)),))
            case "value" if field.always:
                # Without a label the pod has one of the words all the same.
                yield _want_label(field.label, "In", [w for w in field.words if w not in value])
            case "value":
                yield _want_label(field.label, "NotIn", value)
            case "flag":
                yield _Wanted(coordinator=(not value,))
            case _:
                yield _Wanted(none_of=((field.name, value),))


def _list_ways_to_lead(leads: bool) -> Iterator[_Wanted]:
    """Labels of which each makes a pod lead its run, or keeps it from that."""
    first = (
        (names.REPLICA_INDEX, ["0"]),
        (names.FRAMEWORK, sorted(WORKER_ZERO_LEADS)),
        (names.ROLE, ["worker"]),
    )
    if leads:
        yield _want_label(names.ROLE, "In", sorted(names.COORDINATOR_ROLES))
        wanted = _Wanted()
        for key, values in first:
            wanted = wanted.beside(_want_label(key, "In", values))
        yield wanted
        return
    no_role = _want_label(names.ROLE, "NotIn", names.COORDINATOR_ROLES)
    for key, values in first:
        yield no_role.beside(_want_label(key, "NotIn", values))


def _build_subject(wanted: _Wanted) -> Subject | None:
    """A pod of a run that has all that is wanted; None if none is found."""
    found: dict[str, Any] = {}
    for field in conditions.FIELDS:
        lists = [listed for name, listed in wanted.one_of if name == field.name]
        others = [each for name, listed in wanted.none_of if name == field.name for each in listed]
        if field.form == "name" and (lists or others or field.name == "namespaces"):
            found[field.subject] = _choose_name(field, wanted, lists, others)
        elif field.form == "values":
            found[field.subject] = _choose_each(lists, others)
        elif field.form == "labels":
            named = field.name == "namespace_selector" and found["namespace"]
            said = [each for name, each in wanted.labels if name == field.name]
            found[field.subject] = _labels(said, {_NAME_LABEL: named} if named else {})
    if None in found.values():
        return None
    if not any(each == "pod_selector" and said["key"] == names.RUN for each, said in wanted.labels):
        found["labels"][names.RUN] = "example"
    identity = identify(found["labels"], {}, found["namespace_labels"])
    return Subject(identity=identity, **found) if identity else None


def _choose_each(lists: Sequence[Sequence[str]], but: Sequence[str]) -> frozenset[str] | None:
    chosen = [next((value for value in values if value not in but), None) for values in lists]
    found = frozenset(each for each in chosen if each is not None)
    return None if None in chosen else found


def _labels(wanted: Sequence[Requirement], given: Mapping[str, str]) -> dict[str, str] | None:
    """Labels that meet all that is wanted, the given ones among them; None if there are none."""
    by_key: dict[str, list[Requirement]] = {}
    for each in wanted:
        by_key.setdefault(each["key"], []).append(each)
    found = dict(given)
    for key, group in by_key.items():
        choices: Iterator[str | None] = iter([found[key]]) if key in found else _values(group)
        fitting = (each for each in choices if _holds(group, each))
        try:
            value = next(fitting)
        except StopIteration:
            return None
        if value is not None:
            found[key] = value
    return found


def _holds(group: Sequence[Requirement], value: str | None) -> bool:
    return all(label_values.holds(each, value) for each in group)


def _values(group: Sequence[Requirement]) -> Iterator[str | None]:
    """No label, the values that are spoken of, and one that is not."""
    yield None
    listed = [value for each in group for value in each.get("values") or ()]
    yield from dict.fromkeys(listed)
    yield next(text for at in itertools.count() if (text := f"any{at or ''}") not in listed)


def _choose_name(
    field: MatchField, wanted: _Wanted, lists: Sequence[Sequence[str]], others: Sequence[str]
) -> str | None:
    patterns = [conditions.globs(each) for each in lists]
    is_space = field.name == "namespaces"
    shut = conditions.globs([*others, *(EXCLUDED_NAMESPACES if is_space else ())])
    spoken = [
        value
        for name, each in wanted.labels
        if is_space and name == "namespace_selector" and each["key"] == _NAME_LABEL
        for value in each.get("values") or ()
    ]
    for name in itertools.islice(_names(lists, spoken), _MOST_NAMES):
        if (
            field.is_name(name)
            and all(pattern.match(name) for pattern in patterns)
            and not ((others or is_space) and shut.match(name))
        ):
            return name
    return None


def _names(lists: Sequence[Sequence[str]], spoken: Sequence[str]) -> Iterator[str]:
    """Names that are spoken of, then some that the globs are of, then any."""
    yield from spoken
    listed = [each for globs in lists for each in globs]
    globs = [each for each in listed if conditions.is_glob(each)]
    yield from (each for each in listed if not conditions.is_glob(each))
    fillers = ["", "x", *(each.replace("*", "").replace("?", "x") for each in globs)]
    for filler, glob in itertools.product(fillers, globs):
        yield glob.replace("*", filler).replace("?", "x")
    yield from _USUAL_NAMES
