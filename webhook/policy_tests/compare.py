"""Comparing what a test expects of a pod's fields with what is there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from webhook import names
from webhook.placement.fields import BY_NAME, says_nothing
from webhook.policy_tests.verdict import Failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webhook.placement.shapes import Json, JsonObject
    from webhook.policy_tests.model import Fields, Lacking
    from webhook.strict import Strict


def said(model: Strict) -> dict[str, Any]:
    """The fields that a part of a test names, by their outer names, as JSON."""
    return model.model_dump(by_alias=True, exclude_none=True)


def field_of(pod: JsonObject, name: str) -> Json:
    """A placement field of a v1.Pod, None if it is unset. Our own annotation is no field of it."""
    value = pod[BY_NAME[name].holder].get(name)
    if name == "annotations" and isinstance(value, dict):
        return {key: text for key, text in value.items() if key != names.PLACEMENT}
    return value


def equals(expected: Fields, pod: JsonObject) -> Iterator[Failure]:
    """Fields that are not exactly what they should be. Empty and unset are the same."""
    for name, wanted in said(expected).items():
        seen = field_of(pod, name)
        if wanted != seen and not (says_nothing(wanted) and says_nothing(seen)):
            yield Failure(name, shown(wanted), shown(seen))


def contains(expected: Fields, pod: JsonObject) -> Iterator[Failure]:
    """Fields that do not hold what they should."""
    for name, wanted in said(expected).items():
        seen = field_of(pod, name)
        if not holds(seen, wanted):
            yield Failure(name, f"contains {shown(wanted)}", shown(seen))


def lacks(expected: Lacking, pod: JsonObject) -> Iterator[Failure]:
    """Fields that hold what they should not."""
    for name, unwanted in said(expected).items():
        seen = field_of(pod, name)
        for each in unwanted:
            there = each in (seen or {}) if isinstance(each, str) else holds(seen or [], [each])
            if there:
                yield Failure(name, f"without {shown(each)}", shown(seen))


def holds(seen: Json, wanted: Json) -> bool:
    """Whether `seen` has all that `wanted` says: members of maps, and for each item of a list one
    that has what the item says."""
    if isinstance(wanted, dict):
        return isinstance(seen, dict) and all(
            key in seen and holds(seen[key], value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(seen, list) and all(
            any(holds(there, item) for there in seen) for item in wanted
        )
    return type(seen) is type(wanted) and bool(seen == wanted)


def shown(value: Json) -> str:
    """A value in one line; `unset` where there is nothing."""
    if says_nothing(value):
        return "unset"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
