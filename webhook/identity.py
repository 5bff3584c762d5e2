"""From a pod's labels to the run that it belongs to, and what it is there.

The table is `webhook.sources`. Each fact comes from the first row that marks the pod and tells
it; Fairlead's own kind, framework, role and replica-index come before all rows, also where
another system's label marks the pod, so that an author can say what that system does not.

A value that is none of our words (fairlead.dev/kind: expriment) counts as not said: a slip in a
label that refines must neither keep a pod out of its run, where no policy would reach it, nor
stop its creation. `misread` tells the author of it.
"""

from __future__ import annotations

from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from webhook import names
from webhook.run.rendezvous.table import WORKER_ZERO_LEADS
from webhook.sources import SOURCES
from webhook.sources.marks import completion_index, parse_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.sources.marks import Clause, Condition, Source

__all__ = ["READ_ANNOTATIONS", "READ_LABELS", "SOURCES", "Identity", "identify", "misread"]


class Identity(NamedTuple):
    """A pod's place in its run. A tuple, for it is made at every admission."""

    run: str
    """The run's name; empty where only the namespace marks the pod, or the mark has no value."""
    kind: str
    """One of names.KINDS."""
    framework: str | None
    """A name of FRAMEWORKS in webhook.run.rendezvous.table."""
    role: str | None
    """One of names.ROLES."""
    replica_index: int | None
    """From 0 (a Spark executor's from 1); never negative."""
    source: str
    """The name of the first row of SOURCES that marks the pod."""
    coordinator: bool
    """Whether it leads: by its role, or as the worker 0 that leads where nobody else does."""

    @property
    def marked_itself(self) -> bool:
        """Whether the pod's own labels mark it, and not its namespace alone."""
        return self.source != _NAMESPACE


_OURS = SOURCES[0]
_ONLY_OURS = (_OURS,)
_NAMESPACE = SOURCES[-1].name
_KINDS = frozenset(names.KINDS)

# Mark's label -> the rows that it marks, each with the value that it must have (None: any).
_BY_MARK: dict[str, list[tuple[int, str | None]]] = {}
for _row, _source in enumerate(SOURCES):
    for _mark in _source.marks:
        if not _mark.namespace:
            _BY_MARK.setdefault(_mark.key, []).append((_row, _mark.value))
_MARKS = frozenset(_BY_MARK)

# What may stand on a pod under our prefix, be it of its author, of the controller or ours.
_LABELS = frozenset(
    (names.RUN, names.KIND, names.FRAMEWORK, names.ROLE, names.REPLICA_INDEX, names.RUN_UID)
)
_ANNOTATIONS = frozenset((names.CAPACITY, names.PLACEMENT, names.ATTEMPT))
_MOST_MISREAD = 10
_LONGEST_KEY = 60

READ_LABELS: frozenset[str] = frozenset(
    key.name for source in SOURCES for key in source.reads() if not key.annotation
)
"""Every pod label key that `identify` reads. A policy may write none of them."""

READ_ANNOTATIONS: frozenset[str] = frozenset(
    key.name for source in SOURCES for key in source.reads() if key.annotation
)
"""Every pod annotation key that `identify` reads. A policy may write none of them."""


def identify(
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    namespace_labels: Mapping[str, str],
) -> Identity | None:
    """Which run a pod belongs to, by its own metadata and its namespace's labels; None: to none.

    Whatever the strings are, it raises nothing, and it looks up no key of the pod outside of
    READ_LABELS and READ_ANNOTATIONS. A namespace's kind counts only with `fairlead.dev/place:
    all`, and only for a pod whose rows tell no kind: a notebook in a namespace of jobs stays one.
    """
    rows = _rows(labels)
    kind_unsaid = names.DEFAULT_KIND
    if namespace_labels.get(names.PLACE) == names.PLACE_ALL:
        said = namespace_labels.get(names.KIND, "").lower()
        if said in _KINDS:
            kind_unsaid = said
    elif not rows:
        return None
    name = rows[0].name if rows else _NAMESPACE
    if not rows or rows[0] is not _OURS:
        rows = (_OURS, *rows)

    run = kind = framework = role = index = None
    for row in rows:
        run = run or _name(row, labels, annotations)
        kind = kind or _tell(row.kind, labels, annotations) or row.kind_always
        framework = framework or _tell(row.framework, labels, annotations) or row.framework_always
        role = role or _tell(row.role, labels, annotations)
        if index is None:
            index = _index(row, labels, annotations)
    if index is None:
        # An author who marks an Indexed Job's template cannot write each pod's index there.
        index = completion_index(labels, annotations)
    return Identity(
        run or "",
        kind or kind_unsaid,
        framework,
        role,
        index,
        name,
        role in names.COORDINATOR_ROLES
        or _leads(rows, labels, annotations, role, framework, index),
    )


def misread(labels: Mapping[str, str], annotations: Mapping[str, str]) -> tuple[str, ...]:
    """What a pod's author should be warned of: keys and values of ours that say nothing to us.

    Those are our refining labels whose values count as unsaid, and keys with our prefix that nobody
    reads. Each text is under 160 characters, and there are at most ten.
    """
    # Not one more is looked for: an author decides how many keys there are.
    return tuple(islice(_misread(labels, annotations), _MOST_MISREAD))


def _misread(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Iterator[str]:
    refining = (
        *((clause.key.name, clause) for clause in (*_OURS.kind, *_OURS.framework, *_OURS.role)),
        (names.REPLICA_INDEX, None),
    )
    for key, clause in refining:
        value = labels.get(key)
        if value is None:
            continue
        read = parse_index(value) if clause is None else _tell((clause,), labels, {})
        if read is None:
            what = key.removeprefix(names.PREFIX)
            yield f"label {key}: {value[:40]!r} is no {what}; it counts as not said"
    yield from _unread("label", labels, _LABELS, _ANNOTATIONS)
    yield from _unread("annotation", annotations, _ANNOTATIONS, _LABELS)


def _unread(
    what: str, keys: Iterable[str], known: frozenset[str], elsewhere: frozenset[str]
) -> Iterator[str]:
    for key in keys:
        if not key.startswith(names.PREFIX) or key in known:
            continue
        if key in elsewhere:
            other = "an annotation" if what == "label" else "a label"
            yield f"{what} {key} is not read; it is {other}"
            continue
        words = {each.removeprefix(names.PREFIX): each for each in known}
        # A long key is near to none of ours, and to compare it takes quadratic time.
        near = (
            get_close_matches(key.removeprefix(names.PREFIX), words, n=1)
            if len(key) <= _LONGEST_KEY
            else []
        )
        cure = f"did you mean {words[near[0]]}?" if near else "remove it"
        yield f"{what} {key[:_LONGEST_KEY]} is none that Fairlead reads; {cure}"


def _rows(labels: Mapping[str, str]) -> tuple[Source, ...]:
    # Most pods carry no mark: one intersection settles them.
    found = _MARKS.intersection(labels)
    if not found:
        return ()
    if len(found) == 1 and names.RUN in found:
        return _ONLY_OURS
    marked = {
        row
        for key in found
        for row, value in _BY_MARK[key]
        if value is None or labels[key] == value
    }
    return tuple(SOURCES[row] for row in sorted(marked))


def _tell(
    clauses: tuple[Clause, ...], labels: Mapping[str, str], annotations: Mapping[str, str]
) -> str | None:
    for (key, annotation), words in clauses:
        value = annotations.get(key) if annotation else labels.get(key)
        if value is not None:
            word = words if isinstance(words, str) else words.get(value.lower())
            if word is not None:
                return word
    return None


def _name(row: Source, labels: Mapping[str, str], annotations: Mapping[str, str]) -> str | None:
    for key, annotation in row.run:
        value = annotations.get(key) if annotation else labels.get(key)
        if value:
            return value
    return None


def _index(row: Source, labels: Mapping[str, str], annotations: Mapping[str, str]) -> int | None:
    for (key, annotation), when in row.index:
        index = parse_index(annotations.get(key) if annotation else labels.get(key))
        if index is not None and (not when or _hold(when, labels, annotations)):
            return index
    return None


def _hold(
    conditions: tuple[Condition, ...],
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    role: str | None = None,
    framework: str | None = None,
) -> bool:
    return all(each.holds(labels, annotations, role, framework) for each in conditions)


def _leads(
    rows: tuple[Source, ...],
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    role: str | None,
    framework: str | None,
    index: int | None,
) -> bool:
    for row in rows:
        for when, only_if in row.leaders:
            if _hold(when, labels, annotations, role, framework):
                return _hold(only_if, labels, annotations, role, framework)
    return role == "worker" and index == 0 and framework in WORKER_ZERO_LEADS
