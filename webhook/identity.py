"""From a pod's labels to its run, kind, framework, role and index.

The table is `webhook.sources`, with the systems that a policy set adds. Each fact comes from the
first row that marks the pod and has a value for it. Fairlead's own kind, framework, role and
replica-index take precedence over all rows, also if another system's label marks the pod, so that
authors can add what that system omits.

An unknown value (fairlead.dev/kind: expriment) counts as absent. A typo in such a label must
neither remove a pod from its run, and so from all policies, nor block its creation. `misread`
warns the author.
"""

from __future__ import annotations

from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from webhook import names
from webhook.frameworks.table import WORKER_ZERO_LEADS
from webhook.sources import SHIPPED, SOURCES
from webhook.sources.marks import completion_index, parse_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.sources.marks import Clause, Condition, IndexKey, ObjectRef, Source
    from webhook.sources.table import SourceTable


class Identity(NamedTuple):
    """A pod's place in its run. A tuple, because every admission creates one."""

    run: str
    """The run's name; empty if only the namespace marks the pod, or the mark has no value."""
    kind: str
    """One of names.KINDS."""
    framework: str | None
    """A name of FRAMEWORKS in webhook.frameworks.table."""
    role: str | None
    """One of names.ROLES."""
    replica_index: int | None
    """From 0 (for a Spark executor from 1); never negative."""
    source: str
    """The name of the first row of SOURCES that marks the pod."""
    coordinator: bool
    """True if it leads: by its role, or as worker 0 in a framework without a leading role."""
    replicas: int | None = None
    """How many replicas its role has; never negative."""

    @property
    def marked_itself(self) -> bool:
        """True if the pod's own labels mark it, and not only its namespace."""
        return self.source != _NAMESPACE


_OURS = SOURCES[0]
OURS = _OURS.name
_ONLY_OURS = (_OURS,)
_NAMESPACE = SOURCES[-1].name
_KINDS = frozenset(names.KINDS)

# Valid keys with Fairlead's prefix on a pod, set by its author, the controller or the webhook.
_LABELS = frozenset(
    (
        names.RUN,
        names.KIND,
        names.FRAMEWORK,
        names.ROLE,
        names.REPLICA_INDEX,
        names.REPLICAS,
        names.RUN_UID,
    )
)
_ANNOTATIONS = frozenset(
    (names.CAPACITY, names.PLACEMENT, names.ATTEMPT, names.HISTORY, names.AVOID_NODES)
)
# The labels whose values are checked, and how each is parsed; None: as an index.
_REFINING: tuple[tuple[str, Clause | None], ...] = (
    *((clause.key.name, clause) for clause in (*_OURS.kind, *_OURS.framework, *_OURS.role)),
    (names.REPLICA_INDEX, None),
    (names.REPLICAS, None),
)
_MOST_MISREAD = 10
_LONGEST_KEY = 60
# A warning stays under the 120 characters that the API server recommends.
_LONGEST_VALUE = 24


def identify(
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    namespace_labels: Mapping[str, str],
    sources: SourceTable = SHIPPED,
    *,
    led: bool = False,
) -> Identity | None:
    """Return the identity of a pod in its run, from its metadata and namespace; None without one.

    Raises nothing, whatever the strings are, and reads only the pod's keys in `read_labels` and
    `read_annotations` of the table. A namespace's kind counts only with `fairlead.dev/place: all`,
    and only for a pod whose rows have no kind: a notebook in a namespace of jobs stays a notebook.
    `led`: the object that made the pod has a pod that leads by its role.
    """
    rows = _rows(labels, sources)
    default_kind = names.DEFAULT_KIND
    if namespace_labels.get(names.PLACE) == names.PLACE_ALL:
        namespace_kind = namespace_labels.get(names.KIND, "").lower()
        if namespace_kind in _KINDS:
            default_kind = namespace_kind
    elif not rows:
        return None
    name = rows[0].name if rows else _NAMESPACE
    if not rows or rows[0] is not _OURS:
        rows = (_OURS, *rows)

    run = kind = framework = role = index = replicas = None
    for row in rows:
        run = run or _name(row, labels, annotations)
        kind = kind or _find_word(row.kind, labels, annotations) or row.kind_always
        framework = (
            framework or _find_word(row.framework, labels, annotations) or row.framework_always
        )
        role = role or _find_word(row.role, labels, annotations)
        if index is None:
            index = _number(row.index, labels, annotations)
        if replicas is None and row.replicas:
            replicas = _number(row.replicas, labels, annotations)
    if index is None:
        # In an Indexed Job, the template's author cannot set the index of each pod.
        index = completion_index(labels, annotations)
    return Identity(
        run or "",
        kind or default_kind,
        framework,
        role,
        index,
        name,
        role in names.COORDINATOR_ROLES
        or _leads(rows, labels, annotations, role, framework, index, led),
        replicas,
    )


def leader_ref(
    identity: Identity,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    sources: SourceTable,
) -> ObjectRef | None:
    """Return the object that decides whether a coordinator remains one; None if its labels do."""
    role, framework = identity.role, identity.framework
    if not identity.coordinator or role in names.COORDINATOR_ROLES:
        return None
    rules = (rule for row in _rows(labels, sources) for rule in row.leaders)
    for rule in rules:
        if _hold(rule.when, labels, annotations, role, framework):
            return rule.unless_led
    return None


def misread(labels: Mapping[str, str], annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return warnings for a pod's author about Fairlead's keys and values that are not valid.

    Those are labels whose values count as absent, and unknown keys with Fairlead's prefix. Each
    warning has under 160 characters, and there are at most ten.
    """
    # Stop at the limit, because the author controls the number of keys.
    return tuple(islice(_misread(labels, annotations), _MOST_MISREAD))


def unknown_keys(labels: Mapping[str, str], annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the warnings of `misread` about unknown keys with Fairlead's prefix.

    On a pod without a run, such a key may be the reason that it has none.
    """
    return tuple(islice(_unknown_keys(labels, annotations), _MOST_MISREAD))


def _misread(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Iterator[str]:
    for key, clause in _REFINING:
        value = labels.get(key)
        if value is None:
            continue
        read = parse_index(value) if clause is None else _find_word((clause,), labels, {})
        if read is None:
            what = key.removeprefix(names.PREFIX).removeprefix("replica-")
            unknown = f"unknown {what} {value[:_LONGEST_VALUE]!r}"
            yield f"label {key}: {unknown}; the pod is treated as having no {what}"
    yield from _unknown_keys(labels, annotations)


def _unknown_keys(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Iterator[str]:
    yield from _unread("label", labels, _LABELS, _ANNOTATIONS)
    yield from _unread("annotation", annotations, _ANNOTATIONS, _LABELS)


def _unread(
    what: str, keys: Iterable[str], known_keys: frozenset[str], elsewhere: frozenset[str]
) -> Iterator[str]:
    prefix = names.PREFIX
    # Every admission comes here, and few pods have such a key.
    for key in [key for key in keys if key not in known_keys and key.startswith(prefix)]:
        if key in elsewhere:
            other = "an annotation" if what == "label" else "a label"
            yield f"{what} {key}: Fairlead does not read it; write it as {other}"
            continue
        words = {known_key.removeprefix(names.PREFIX): known_key for known_key in known_keys}
        word = key.removeprefix(prefix).lower()
        near = sorted((candidate for candidate in words if word in candidate.split("-")), key=len)
        # A long key resembles none of ours, and the comparison takes quadratic time.
        if not near and len(key) <= _LONGEST_KEY:
            near = get_close_matches(word, words, n=1)
        cure = f"did you mean {words[near[0]]}?" if near else "remove it"
        # The API server checks the characters of a key after webhooks.
        shown = key if key.isprintable() else ascii(key)[1:-1]
        yield f"{what} {shown[:_LONGEST_KEY]}: Fairlead does not know this key; {cure}"


def _rows(labels: Mapping[str, str], sources: SourceTable) -> tuple[Source, ...]:
    # Most pods have no mark: one intersection is enough for them.
    marks = sources.marks.intersection(labels)
    if not marks:
        return ()
    if len(marks) == 1 and names.RUN in marks:
        return _ONLY_OURS
    marked = {
        row
        for key in marks
        for row, value in sources.by_mark[key]
        if value is None or labels[key] == value
    }
    return tuple(sources.rows[row] for row in sorted(marked))


def _find_word(
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


def _number(
    keys: tuple[IndexKey, ...], labels: Mapping[str, str], annotations: Mapping[str, str]
) -> int | None:
    for (key, annotation), when in keys:
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
    return all(condition.holds(labels, annotations, role, framework) for condition in conditions)


def _leads(
    rows: tuple[Source, ...],
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    role: str | None,
    framework: str | None,
    index: int | None,
    led: bool,
) -> bool:
    for row in rows:
        for when, only_if, unless_led in row.leaders:
            if _hold(when, labels, annotations, role, framework):
                if led and unless_led:
                    return False
                return _hold(only_if, labels, annotations, role, framework)
    return role == "worker" and index == 0 and framework in WORKER_ZERO_LEADS
