"""The results of policy tests: fields that differ, and policies that no test reaches."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook import names
from webhook.placement.fields import BY_NAME, is_empty
from webhook.policy import policy_documents
from webhook.policy.model import PlacementPolicy
from webhook.workloads.stored_pod import normal_fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.decision.decision import Result
    from webhook.placement.shapes import Json, JsonObject
    from webhook.placement.trace import Entry
    from webhook.policy_tests.policy_test_model import Fields, Lacking
    from webhook.strict import Strict


@dataclass(frozen=True, slots=True)
class Failure:
    """One expectation that was not met.

    field:    such as nodeSelector or runsOn
    expected: the expected value, in a line
    actual:     the actual value, in a line
    because:  lines with the reason, if known
    """

    field: str
    expected: str
    actual: str
    because: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of one test.

    line:     its line in its file, from 1
    result:   the engine's answer; None if there is none
    policies: names of the enforced policies that applied
    audited:  names of the policies under Audit that matched, and whether the test is about them
    trace:    the outcome and the reason for each field
    """

    name: str
    file: str
    line: int
    failures: Sequence[Failure]
    result: Result | None = None
    policies: tuple[str, ...] = ()
    audited: tuple[str, ...] = ()
    about_audit: bool = False
    trace: Sequence[Entry] = ()

    @property
    def reached(self) -> tuple[str, ...]:
        """Names of the policies that the test is about."""
        return (*self.policies, *(self.audited if self.about_audit else ()))

    @property
    def passed(self) -> bool:
        """Whether every expectation was met."""
        return not self.failures


class Place(NamedTuple):
    """A policy by its file and name: files that are alternatives may share names."""

    file: str
    policy: str


def policies_in(files: Mapping[str, bytes]) -> frozenset[Place]:
    """Return every valid policy in the files; errors are reported elsewhere."""
    documents = policy_documents.parse(files).documents
    return frozenset(
        Place(document.file, document.model.name)
        for document in documents
        if isinstance(document.model, PlacementPolicy)
    )


def reached(loaded: Iterable[Place], verdicts: Iterable[Verdict]) -> frozenset[Place]:
    """Return the policies that a test reaches."""
    named = {name for verdict in verdicts for name in verdict.reached}
    return frozenset(place for place in loaded if place.policy in named)


def stated_fields(model: Strict) -> dict[str, Any]:
    """Return the fields that a part of a test names, by their outer names, as JSON."""
    return normal_fields(model.model_dump(by_alias=True, exclude_none=True))


def field_of(pod: JsonObject, name: str) -> Json:
    """Return a placement field of a v1.Pod, None if it is unset. Our own annotation is left out."""
    value = pod[BY_NAME[name].holder].get(name)
    if name == "annotations" and isinstance(value, dict):
        return {key: text for key, text in value.items() if key != names.PLACEMENT}
    return value


def equals(expected: Fields, pod: JsonObject) -> Iterator[Failure]:
    """Fields that are not exactly what they should be. Empty and unset are the same."""
    for name, wanted in stated_fields(expected).items():
        actual = field_of(pod, name)
        if wanted != actual and not (is_empty(wanted) and is_empty(actual)):
            yield Failure(name, format_value(wanted), format_value(actual))


def contains(expected: Fields, pod: JsonObject) -> Iterator[Failure]:
    """Fields that do not hold what they should."""
    for name, wanted in stated_fields(expected).items():
        actual = field_of(pod, name)
        if not holds(actual, wanted):
            yield Failure(name, f"contains {format_value(wanted)}", format_value(actual))


def lacks(expected: Lacking, pod: JsonObject) -> Iterator[Failure]:
    """Fields that hold what they should not."""
    for name, unwanted in stated_fields(expected).items():
        actual = field_of(pod, name)
        for item in unwanted:
            is_present = (
                item in (actual or {}) if isinstance(item, str) else holds(actual or [], [item])
            )
            if is_present:
                yield Failure(name, f"without {format_value(item)}", format_value(actual))


def holds(actual: Json, wanted: Json) -> bool:
    """Return whether `actual` contains `wanted`: members of maps, and for each item of a list one
    that contains the item."""
    if isinstance(wanted, dict):
        return isinstance(actual, dict) and all(
            key in actual and holds(actual[key], value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(actual, list) and all(
            any(holds(actual_item, item) for actual_item in actual) for item in wanted
        )
    return type(actual) is type(wanted) and bool(actual == wanted)


def format_value(value: Json) -> str:
    """Return a value in one line; `unset` where there is nothing."""
    if is_empty(value):
        return "unset"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
