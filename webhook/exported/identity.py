"""What a pod is in its run, read in CEL by the table of marks as `webhook.identity` reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.exported import cel
from webhook.exported.cel import Piece, text, var
from webhook.run.rendezvous.table import WORKER_ZERO_LEADS
from webhook.sources import SOURCES
from webhook.sources.marks import COMPLETION_INDEX, COMPLETION_KEYS, NONE, Key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from webhook.sources.marks import Clause, Condition, Leader, Source

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
        if row.index
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
    return cel.flat(
        cel.given(cel.every(map(_holds, when)), told) if when else told
        for key, when in row.index
        for told in _indexes([key])
    )


def _coordinator() -> str:
    """As identity._leads: a role that leads, else the first row that tells, else worker 0."""
    told = [
        cel.given(var(f"row{number}"), cel.flat(map(_leads, row.leaders)))
        for number, row in enumerate(SOURCES)
        if row.leaders
    ]
    frameworks = cel.texts(sorted(WORKER_ZERO_LEADS))
    zero = f"{var('role')} == 'worker' && {var('index')} == 0 && {var('framework')} in {frameworks}"
    roles = cel.texts(sorted(names.COORDINATOR_ROLES))
    return f"({var('role')} in {roles} || ({cel.flat(told)} + [{zero}])[0])"


def _leads(rule: Leader) -> str:
    """Whether the pod leads, as a list of one, or of none where the rule does not tell."""
    leads = cel.every(map(_holds, rule.only_if))
    return cel.given(cel.every(map(_holds, rule.when)), f"[{leads}]")


def _holds(condition: Condition) -> str:
    """As Condition.holds."""
    if condition.fact == COMPLETION_INDEX:
        return f"{var('completion')} in [{', '.join(map(str, condition.among or ()))}]"
    if condition.fact != "label":
        words = ("" if word == NONE else str(word) for word in condition.among or ())
        return f"{var(condition.fact)} in {cel.texts(words)}"
    label = _value(Key(condition.label))
    value = f"{label}.orValue('')"
    holds = []
    if condition.host:
        holds += [_is_there(name) for name in condition.host]
        holds.append(f"{value}.split('.')[0] == {_joined(condition.host)}")
    if condition.among is not None:
        holds.append(f"{value} in {cel.texts(map(str, condition.among))}")
    if condition.but:
        holds.append(f"!({value} in {cel.texts(condition.but)})")
    if condition.absent:
        return f"(!{label}.hasValue() || {cel.every(holds)})"
    return cel.every([f"{label}.hasValue()", *holds])


def _is_there(name: str) -> str:
    return (
        f"{var('completion')} >= 0"
        if name == COMPLETION_INDEX
        else f"{_value(Key(name))}.hasValue()"
    )


def _joined(host: Iterable[str]) -> str:
    return " + '-' + ".join(
        f"string({var('completion')})"
        if name == COMPLETION_INDEX
        else f"{_value(Key(name))}.orValue('')"
        for name in host
    )
