"""Compute which marks of a source the webhook configuration selects (condition Intercepted)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names, suspension
from webhook.applied_by import INSTALL, KUBECTL, applied_by
from webhook.crd.conditions import ConditionUpdate
from webhook.placement.label_values import expressions, selects
from webhook.sources.marks import Mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from webhook.applied_by import Applier

    Json = Mapping[str, Any]

INTERCEPTED: Final = "Intercepted"
# The value that stands for any value of a mark.
_ANY: Final = "any"


def unsent_marks(marks: Iterable[Mark], entries: Sequence[Json]) -> list[Mark]:
    """Return the marks of which no entry that takes pods selects a pod with that label alone.

    `entries` are those of a MutatingWebhookConfiguration. Namespace selectors and conditions in CEL
    are not evaluated.
    """
    taking = [entry for entry in entries if entry.get("rules")]
    return [
        mark
        for mark in marks
        if not mark.namespace and not any(_selects(entry, mark) for entry in taking)
    ]


def _selects(entry: Json, mark: Mark) -> bool:
    # An entry without a condition on a label is about namespaces.
    about = any(
        expression["key"] == mark.key
        for expression in expressions(entry.get("objectSelector") or {})
    )
    return about and selects(entry, "objectSelector", {mark.key: mark.value or _ANY})


def cure_of(source: str, applier: Applier) -> str:
    """Return how to have the pods of an added source intercepted."""
    if applier.tool in (INSTALL, KUBECTL):
        return f"{INSTALL} --source {source}"
    return (
        f"add an entry for it to the configuration in the source of {applier}, whose chart and "
        "manifests have only the systems that ship"
    )


def interception(spec: Json, source: str, configuration: Json | None) -> Iterator[ConditionUpdate]:
    """Yield the condition of a source of this name, given by its spec.

    `configuration` is the webhook configuration, {} if there is none, None if it is not known.
    """
    given = (spec.get("identity") or {}).get("marks") or ()
    marks = [Mark(mark["label"], mark.get("value")) for mark in given if "label" in mark]
    if not marks:
        yield ConditionUpdate(INTERCEPTED, "Unknown", "NoMarks", "the source marks no pods")
    elif configuration is None:
        what = "the webhook configuration could not be read"
        yield ConditionUpdate(INTERCEPTED, "Unknown", "NotRead", what)
    else:
        yield _by_marks(marks, configuration, source)


def _by_marks(marks: Sequence[Mark], configuration: Json, source: str) -> ConditionUpdate:
    where = f"the webhook configuration {names.WEBHOOK_CONFIGURATION}"
    unsent = unsent_marks(marks, configuration.get("webhooks") or ())
    if not unsent:
        return ConditionUpdate(INTERCEPTED, "True", "Selected", f"{where} selects its pods")
    if configuration and suspension.parse_suspension(configuration):
        what = "the webhook is disabled: fairlead webhook enable"
        return ConditionUpdate(INTERCEPTED, "False", "Disabled", what)
    named = ", ".join(map(str, unsent))
    what = (
        f"{where} selects no pods with {named}: they are not placed, and a source cannot change "
        f"that itself; {cure_of(source, applied_by([configuration]))}"
    )
    return ConditionUpdate(INTERCEPTED, "False", "NotSelected", what)
