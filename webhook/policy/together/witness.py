"""A pod that several policies match: found by trying, and proved by their very conditions."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, NamedTuple

from webhook import names
from webhook.identity import identify
from webhook.interception import EXCLUDED_NAMESPACES
from webhook.placement import label_values
from webhook.placement.schema.syntax import is_dns_label
from webhook.policy import conditions
from webhook.policy.findings import first_few
from webhook.policy.match_model import Match
from webhook.policy.subject import Subject
from webhook.policy.together.wanted import Wanted, of_blocks, ways_around, ways_to_lead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.placement.shapes import Requirement
    from webhook.policy.together.said import Policy

_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_USUAL_NAMES: Final = ("default", "example", "other")
# What is tried: names of a namespace for one pod, and pods for one question.
_MOST_NAMES: Final = 100
_MOST_PODS: Final = 12
_NAMED: Final = 5


class Witness(NamedTuple):
    """What tells of a pod which policies match it.

    `resources` are those that it requests, `volumes` types, `system` the one that it is for (empty:
    it says none).
    """

    namespace: str
    namespace_labels: Mapping[str, str]
    labels: Mapping[str, str]
    resources: frozenset[str]
    volumes: frozenset[str]
    system: str

    def __str__(self) -> str:
        said = [f"in namespace {self.namespace}"]
        spaces = _pairs(self.namespace_labels, _NAME_LABEL)
        if spaces:
            said[0] += f" ({spaces})"
        if labels := _pairs(self.labels, names.RUN):
            said.append(f"with {labels}")
        if self.resources:
            said.append(f"requesting {first_few(sorted(self.resources), _NAMED)}")
        if self.volumes:
            said.append(f"with volumes {first_few(sorted(self.volumes), _NAMED)}")
        if self.system:
            said.append(f"for {self.system}")
        return ", ".join(said)


def _pairs(labels: Mapping[str, str], but: str) -> str:
    return first_few([f"{k}={v}" for k, v in sorted(labels.items()) if k != but], _NAMED)


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
    left = [of_blocks(matches)]
    for _ in range(_MOST_PODS):
        if not left:
            return None
        wanted = left.pop()
        leads = set(wanted.coordinator)
        if len(leads) == 1:
            left += [wanted._replace(coordinator=()).beside(way) for way in ways_to_lead(*leads)][
                ::-1
            ]
            continue
        pod = None if leads else _pod(wanted, systems)
        subject = pod and _subject(pod)
        if pod is None or subject is None:
            continue
        if not all(conditions.block(each).holds(subject) for each in matches):
            continue
        shut = next((each for each in excludes if conditions.block(each).holds(subject)), None)
        if shut is None:
            return pod
        left += [wanted.beside(way) for way in ways_around(shut)][::-1]
    return None


def _subject(pod: Witness) -> Subject | None:
    identity = identify(pod.labels, {}, pod.namespace_labels)
    if identity is None:
        return None
    return Subject(
        pod.namespace, pod.namespace_labels, pod.labels, identity, pod.resources, pod.volumes
    )


def _pod(wanted: Wanted, systems: set[str]) -> Witness | None:
    namespace = _namespace(wanted)
    own = _labels(wanted.labels)
    spaces = _labels(wanted.space_labels, {_NAME_LABEL: namespace}) if namespace else None
    resources = _one_of_each(wanted.resources, wanted.no_resources)
    volumes = _one_of_each(wanted.volumes, wanted.no_volumes)
    if namespace is None or own is None or spaces is None or resources is None or volumes is None:
        return None
    if not any(each["key"] == names.RUN for each in wanted.labels):
        own[names.RUN] = "example"
    return Witness(namespace, spaces, own, resources, volumes, next(iter(systems), ""))


def _one_of_each(lists: Sequence[Sequence[str]], but: Sequence[str]) -> frozenset[str] | None:
    chosen = [next((value for value in values if value not in but), None) for values in lists]
    found = frozenset(each for each in chosen if each is not None)
    return None if None in chosen else found


def _labels(
    wanted: Sequence[Requirement], given: Mapping[str, str] | None = None
) -> dict[str, str] | None:
    """Labels that meet all that is wanted, the given ones among them; None if there are none."""
    by_key: dict[str, list[Requirement]] = {}
    for each in wanted:
        by_key.setdefault(each["key"], []).append(each)
    found = dict(given or {})
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


def _namespace(wanted: Wanted) -> str | None:
    patterns = [conditions.globs(each) for each in wanted.spaces]
    others = conditions.globs(wanted.other_spaces) if wanted.other_spaces else None
    for name in itertools.islice(_names(wanted), _MOST_NAMES):
        if (
            is_dns_label(name)
            and name not in EXCLUDED_NAMESPACES
            and all(pattern.match(name) for pattern in patterns)
            and not (others and others.match(name))
        ):
            return name
    return None


def _names(wanted: Wanted) -> Iterator[str]:
    """Names that are spoken of, then some that the globs are of, then any."""
    for each in wanted.space_labels:
        if each["key"] == _NAME_LABEL:
            yield from each.get("values") or ()
    listed = [each for globs in wanted.spaces for each in globs]
    globs = [each for each in listed if conditions.is_glob(each)]
    yield from (each for each in listed if not conditions.is_glob(each))
    fillers = ["", "x", *(each.replace("*", "").replace("?", "x") for each in globs)]
    for filler, glob in itertools.product(fillers, globs):
        yield glob.replace("*", filler).replace("?", "x")
    yield from _USUAL_NAMES
