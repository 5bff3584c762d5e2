"""Compute which marks of a source the webhook configuration selects (condition Intercepted)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from webhook import names, suspension
from webhook.crd.conditions import ConditionUpdate
from webhook.placement.label_values import holds
from webhook.sources.marks import Mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Json = Mapping[str, Any]

INTERCEPTED: Final = "Intercepted"
# The value that stands for any value of a mark.
_ANY: Final = "any"


def unsent_marks(marks: Iterable[Mark], entries: Sequence[Json]) -> list[Mark]:
    """Return the marks of which no entry that takes pods selects a pod with that label alone.

    `entries` are those of a MutatingWebhookConfiguration. Namespace selectors and conditions in CEL
    are not evaluated.
    """
    taking = [each for each in entries if each.get("rules")]
    return [
        mark
        for mark in marks
        if not mark.namespace and not any(_selects(entry, mark) for entry in taking)
    ]


def _selects(entry: Json, mark: Mark) -> bool:
    labels = {mark.key: mark.value or _ANY}
    selector = entry.get("objectSelector") or {}
    exact = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in (selector.get("matchLabels") or {}).items()
    ]
    wanted = [*exact, *(selector.get("matchExpressions") or ())]
    # An entry without a condition on a label is about namespaces.
    about = any(each["key"] == mark.key for each in wanted)
    return about and all(holds(each, labels.get(each["key"])) for each in wanted)


def cure_of(source: str) -> str:
    """Return how to have the pods of a source intercepted."""
    return f"fairlead install --source {source}, with the other sources as now"


def interception(text: bytes, configuration: Json | None) -> Iterator[ConditionUpdate]:
    """Yield the condition of a source, given as JSON.

    `configuration` is the webhook configuration, {} if there is none, None if it is not known.
    """
    found = orjson.loads(text)
    given = ((found.get("spec") or {}).get("identity") or {}).get("marks") or ()
    marks = [Mark(each["label"], each.get("value")) for each in given if "label" in each]
    if not marks:
        yield ConditionUpdate(INTERCEPTED, "Unknown", "NoMarks", "the source marks no pods")
    elif configuration is None:
        what = "the webhook configuration could not be read"
        yield ConditionUpdate(INTERCEPTED, "Unknown", "NotRead", what)
    else:
        yield _by_marks(marks, configuration, found["metadata"]["name"])


def _by_marks(marks: Sequence[Mark], configuration: Json, source: str) -> ConditionUpdate:
    where = f"the webhook configuration {names.WEBHOOK_CONFIGURATION}"
    unsent = unsent_marks(marks, configuration.get("webhooks") or ())
    if not unsent:
        return ConditionUpdate(INTERCEPTED, "True", "Selected", f"{where} selects its pods")
    if configuration and suspension.parse_suspension(configuration):
        what = "the webhook is disabled: fairlead enable"
        return ConditionUpdate(INTERCEPTED, "False", "Disabled", what)
    named = ", ".join(map(str, unsent))
    what = (
        f"{where} selects no pods with {named}: they are not placed, and a source cannot change "
        f"that itself; {cure_of(source)}"
    )
    return ConditionUpdate(INTERCEPTED, "False", "NotSelected", what)
