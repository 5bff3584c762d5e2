"""What a pod is in its run, read in CEL by the table of marks as `webhook.identity` reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.exported import cel
from webhook.exported.cel import Piece, text, var
from webhook.replicas import (
    COMPLETION_KEYS,
    JOB_INDEX,
    JOBSET_COORDINATOR,
    JOBSET_NAME,
    PADDLE_OPERATOR,
    REPLICATED_JOB,
    REPLICATED_JOB_REPLICAS,
    TRAINING_INDEX,
    TRAINING_OPERATOR,
    TRAINING_ROLE,
    jobset_index,
    jobset_leads,
    training_leads,
)
from webhook.run.rendezvous.table import WORKER_ZERO_LEADS
from webhook.sources import SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.marks import Clause, Key, Source

_LABELS: Final = "variables.own_labels"
_NUMBER: Final = "'^[0-9]{1,10}$'"


def pieces() -> Piece:
    """Variables marked (by the pod's own labels), kind, framework and role ("" if not told), index
    (-1 if not told) and coordinator."""
    variables = {
        f"row{number}": cel.some(
            f"{text(mark.key)} in {_LABELS}"
            if mark.value is None
            else f"{_LABELS}[?{text(mark.key)}].orValue('') == {text(mark.value)}"
            for mark in row.marks
            if not mark.namespace
        )
        for number, row in enumerate(SOURCES)
    }
    marked = cel.some(variables.values())
    # Our own kind, framework, role and index refine the pods of every other row as well.
    variables["row0"] = "true"
    variables["marked"] = marked
    variables["kind"] = _kind()
    variables["framework"] = _first(
        (number, [*_told(row.framework), *_always(row.framework_always)])
        for number, row in enumerate(SOURCES)
    )
    variables["role"] = _first((number, _told(row.role)) for number, row in enumerate(SOURCES))
    completion = _indexes(COMPLETION_KEYS)
    variables["completion"] = f"({cel.flat(completion)} + [-1])[0]"
    found = [
        f"({var(f'row{number}')} ? {_index(row)} : [])"
        for number, row in enumerate(SOURCES)
        if row.index_keys
    ]
    # An author who marks an Indexed Job's template cannot write each pod's index there.
    last = f"[{var('completion')}]"
    variables["index"] = f"({cel.flat(found)} + {last})[0]"
    variables["coordinator"] = _coordinator()
    return Piece(variables)


def _value(key: Key) -> str:
    holder = "variables.own_annotations" if key.annotation else _LABELS
    return f"{holder}[?{text(key.name)}]"


def _told(clauses: Iterable[Clause]) -> list[str]:
    """For each clause the word that it tells, as a list of one or none."""
    found = []
    for clause in clauses:
        value = _value(clause.key)
        if isinstance(clause.words, str):
            found.append(f"({value}.hasValue() ? [{text(clause.words)}] : [])")
        else:
            words = cel.texts(clause.words)
            table = f"{{{', '.join(f'{text(k)}: {text(v)}' for k, v in clause.words.items())}}}"
            said = f"{value}.orValue('').lowerAscii()"
            found.append(f"({said} in {words} ? [{table}[{said}]] : [])")
    return found


def _always(word: str | None) -> list[str]:
    return [f"[{text(word)}]"] if word else []


def _first(rows: Iterable[tuple[int, Sequence[str]]], last: str = "''") -> str:
    """The first word that a row which marks the pod tells."""
    found = [f"({var(f'row{number}')} ? {cel.flat(told)} : [])" for number, told in rows if told]
    return f"({cel.flat(found)} + [{last}])[0]"


def _kind() -> str:
    labels = var("namespace_labels")
    said = f"{labels}[?{text(names.KIND)}].orValue('').lowerAscii()"
    whole = f"{labels}[?{text(names.PLACE)}].orValue('') == {text(names.PLACE_ALL)}"
    unsaid = (
        f"({whole} && {said} in {cel.texts(names.KINDS)} ? {said} : {text(names.DEFAULT_KIND)})"
    )
    rows = (
        (number, [*_told(row.kind), *_always(row.kind_always)])
        for number, row in enumerate(SOURCES)
    )
    return _first(rows, unsaid)


def _indexes(keys: Iterable[Key]) -> list[str]:
    """For each key the number that it tells, as a list of one or none."""
    return [
        f"({_value(key)}.orValue('').matches({_NUMBER}) && "
        f"int({_value(key)}.orValue('')) < 2147483648 ? [int({_value(key)}.orValue(''))] : [])"
        for key in keys
    ]


def _index(row: Source) -> str:
    if row.index is None:
        return cel.flat(_indexes(row.index_keys))
    if row.index is not jobset_index:
        raise ValueError(f"{row.name}: its index is told by a function without a twin in CEL")
    (job,) = _indexes([_key(JOB_INDEX)])
    several = f"{_LABELS}[?{text(REPLICATED_JOB_REPLICAS)}].orValue('1') != '1'"
    own = f"({var('completion')} >= 0 ? [{var('completion')}] : {job})"
    return f"({several} && size({job}) > 0 ? {job} : {own})"


def _key(name: str) -> Key:
    return next(key for row in SOURCES for key in row.reads() if key.name == name)


def _coordinator() -> str:
    """As identity._leads: a role that leads, else the first row that tells, else worker 0."""
    told = [
        f"({var(f'row{number}')} ? {_leads(row)} : [])"
        for number, row in enumerate(SOURCES)
        if row.leads is not None
    ]
    frameworks = cel.texts(sorted(WORKER_ZERO_LEADS))
    zero = f"{var('role')} == 'worker' && {var('index')} == 0 && {var('framework')} in {frameworks}"
    roles = cel.texts(sorted(names.COORDINATOR_ROLES))
    return f"({var('role')} in {roles} || ({cel.flat(told)} + [{zero}])[0])"


def _has(key: str, value: str) -> str:
    return f"{_LABELS}[?{text(key)}].orValue('') == {text(value)}"


def _leads(row: Source) -> str:
    """Whether the pod leads, as a list of one, or of none where the row does not tell."""
    if row.leads is training_leads:
        master = _has(TRAINING_ROLE, "master")
        zero = f"{_has(TRAINING_OPERATOR, PADDLE_OPERATOR)} && {_has(TRAINING_INDEX, '0')}"
        return f"({var('role')} == 'worker' && ({master} || {zero}) ? [true] : [])"
    if row.leads is not jobset_leads:
        raise ValueError(f"{row.name}: who leads is told by a function without a twin in CEL")
    named = f"{_LABELS}[?{text(JOBSET_COORDINATOR)}].orValue('')"
    own = " + '-' + ".join(
        [
            *(
                f"{_LABELS}[?{text(key)}].orValue('None')"
                for key in (JOBSET_NAME, REPLICATED_JOB, JOB_INDEX)
            ),
            f"({var('completion')} < 0 ? 'None' : string({var('completion')}))",
        ]
    )
    by_framework = f"{var('framework')} in ['', 'pytorch', 'jax']"
    zero = f"{var('completion')} == 0 && {_LABELS}[?{text(JOB_INDEX)}].orValue('0') == '0'"
    return (
        f"({named} != '' ? [{named}.split('.')[0] == {own}] : "
        f"{var('role')} == 'worker' && {by_framework} ? [{zero}] : [])"
    )
