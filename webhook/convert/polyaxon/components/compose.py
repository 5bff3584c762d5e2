"""Combine an operation and its component into one document.

Read in polyaxon 2.18 (`_polyaxonfile/specs/polyaxonfile.py`: compose_polyaxonfile).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.convert.polyaxon.components import shortcuts
from webhook.convert.polyaxon.components.runtime_patch import DEFAULT, STRATEGIES, patched
from webhook.convert.polyaxon.components.shortcuts import spread
from webhook.convert.polyaxon.values import camel, want_mapping, want_one_of

if TYPE_CHECKING:
    from webhook.convert.polyaxon.draft import Notes
    from webhook.convert.polyaxon.item import Item

# Fields of an operation that name its component.
_REFERENCES: Final = ("hubRef", "pathRef", "urlRef", "dagRef")
# Fields that are not patched, or are patched by rules of their own.
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
    """The document that results; its `run` is there. None, and an error, if nothing is to be run.

    `component` is the one of another file; an operation's own wins.
    """
    if operation is None:
        return None if component is None else _layer(None, component, notes)
    operation = camel(operation)
    own = operation.entries.get("component")
    if own is not None and own.value is not None:
        want_mapping(own, notes)
        component = own
    if component is None:
        _missing(operation, notes)
        return None
    base = _layer(None, component, notes)
    return None if base is None else _layer(base, operation, notes)


def _missing(operation: Item, notes: Notes) -> None:
    for name in _REFERENCES:
        reference = operation.entries.get(name)
        if reference is not None and reference.value is not None:
            notes.error(reference, _ELSEWHERE, key=True)
            return
    notes.error(operation, _NO_COMPONENT, below=("component",))


def _layer(base: Item | None, document: Item, notes: Notes) -> Item | None:
    """A document upon the one that it refers to."""
    document = camel(document)
    strategy = _strategy(document, notes)
    fields = {name: item for name, item in document.entries.items() if name not in _APART}
    upon = document if base is None else base
    whole = document.holding(fields)
    whole = whole if base is None else patched(base, whole, strategy)
    run = None if base is None else base.entries.get("run")
    own = document.entries.get("run")
    if own is not None and own.value is not None:
        want_mapping(own, notes)
        run = camel(own) if run is None else _over(run, camel(own), strategy)
    run = shortcuts.applied(run, document, strategy, notes)
    if run is None:
        notes.error(upon, _NO_RUN, below=("run",))
        return None
    patch = document.entries.get("runPatch")
    if patch is not None and want_mapping(patch, notes):
        run = patched(run, spread(run, camel(patch)), strategy)
    return whole.holding({**whole.entries, "run": run})


def _over(run: Item, own: Item, strategy: str) -> Item:
    """A runtime over another; one of a different kind takes its place, or leaves it."""
    kinds = [each.entries.get("kind") for each in (run, own)]
    known = [kind.as_text for kind in kinds if kind is not None]
    if len(known) == 2 and known[0] != known[1]:
        return own if strategy in ("post_merge", "replace") else run
    return patched(run, spread(run, own), strategy)


def _strategy(document: Item, notes: Notes) -> str:
    item = document.entries.get("patchStrategy")
    if item is None or item.value is None:
        return DEFAULT
    return want_one_of(item, notes, STRATEGIES) or DEFAULT
