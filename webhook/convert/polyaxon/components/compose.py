"""Combine an operation and its component into one document.

Read in polyaxon 2.18 (`_polyaxonfile/specs/polyaxonfile.py`: compose_polyaxonfile).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.components import shortcuts
from webhook.convert.polyaxon.components.runtime_patch import DEFAULT, STRATEGIES, patched
from webhook.convert.polyaxon.components.shortcuts import spread
from webhook.convert.polyaxon.item import camel, want_mapping, want_one_of

if TYPE_CHECKING:
    from webhook.convert.polyaxon.draft import Notes
    from webhook.convert.polyaxon.item import Item

# Fields of an operation that refer to its component.
_REFERENCES: Final = ("hubRef", "pathRef", "urlRef", "dagRef")
# Fields that are not patched, or are patched separately.
_APART: Final = frozenset(
    {
        "version",
        "kind",
        "component",
        "patchStrategy",
        "isPreset",
        "run",
        "runPatch",
        "template",
        *_REFERENCES,
        *shortcuts.FIELDS,
    }
)
_ELSEWHERE: Final = "only Polyaxon can resolve it; also give the component's file: --component FILE"
_NO_COMPONENT: Final = (
    "is required: what the operation runs; give the component's file too: --component FILE"
)
_NO_RUN: Final = "is required: the runtime"


def composed(operation: Item | None, component: Item | None, notes: Notes) -> Item | None:
    """Return the composed document, which has a `run`; None after an error.

    `component` is from another file; the operation's own takes precedence.
    """
    if operation is None:
        return None if component is None else _layer(None, component, notes)
    operation = camel(operation)
    own = operation.find("component")
    if own.value is not None:
        want_mapping(own, notes)
        component = own
    if component is not None:
        base = _layer(None, component, notes)
        return None if base is None else _layer(base, operation, notes)
    for reference in map(operation.find, _REFERENCES):
        if reference.value is not None:
            notes.error(reference, _ELSEWHERE, key=True)
            return None
    notes.error(operation, _NO_COMPONENT, below=("component",))
    return None


def _layer(base: Item | None, document: Item, notes: Notes) -> Item | None:
    """Apply a document to the one that it refers to."""
    document = camel(document)
    named = document.find("patchStrategy")
    known = None if named.value is None else want_one_of(named, notes, STRATEGIES)
    strategy = DEFAULT if known is None else known.as_text
    fields = {name: item for name, item in document.entries.items() if name not in _APART}
    whole, run = document.with_value(fields), None
    if base is not None:
        whole, run = patched(base, whole, strategy), base.entries.get("run")
    own = document.find("run")
    if own.value is not None:
        want_mapping(own, notes)
        run = camel(own) if run is None else _over(run, camel(own), strategy)
    run = shortcuts.applied(run, document, strategy, notes)
    if run is None:
        notes.error(base or document, _NO_RUN, below=("run",))
        return None
    patch = document.find("runPatch")
    if want_mapping(patch, notes):
        run = patched(run, spread(run, camel(patch)), strategy)
    return whole.with_value({**whole.entries, "run": run})


def _over(run: Item, own: Item, strategy: str) -> Item:
    """Apply a runtime to another; one of a different kind replaces it, or is ignored."""
    first, second = run.entries.get("kind"), own.entries.get("kind")
    if first is not None and second is not None and first.as_text != second.as_text:
        return own if strategy in ("post_merge", "replace") else run
    return patched(run, spread(run, own), strategy)
