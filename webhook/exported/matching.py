"""Express in CEL which pods a policy matches.

Identities are as `webhook.identity` reads them, match blocks as `webhook.policy.conditions`
evaluates them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.exported import cel
from webhook.exported.cel import Piece, every, text, var
from webhook.frameworks.table import WORKER_ZERO_LEADS
from webhook.policy.conditions import given_fields, is_glob
from webhook.policy.selectors import compile_selector
from webhook.sources import SHIPPED
from webhook.sources.marks import COMPLETION_INDEX, COMPLETION_KEYS, NONE, Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from webhook.exported.positioned_settings import Enforced
    from webhook.placement.schema.selectors import LabelSelector
    from webhook.policy.conditions import MatchField
    from webhook.policy.match_model import Match
    from webhook.sources.marks import Clause, Condition, Leader, Source
    from webhook.sources.table import SourceTable

# A digit except 0 before any exponent or unit, as in policy.subject.
_SOME: Final = r"'^[+]?[0.]*[1-9]'"
_LABELS: Final = "variables.own_labels"
_OF_STATEFUL_SET: Final = (
    "object.metadata.?ownerReferences.orValue([]).exists(o, o.kind == 'StatefulSet' && "
    "o.apiVersion.startsWith('apps/') && o.?controller.orValue(false))"
)
_NUMBER: Final = "'^[0-9]{1,10}$'"


def identity_pieces(sources: SourceTable = SHIPPED) -> Piece:
    """Variables marked (by the pod's own labels), kind, framework and role ("" if unknown), index
    (-1 if unknown) and coordinator."""
    variables = {
        f"row{number}": cel.some(
            f"{text(mark.key)} in {_LABELS}"
            if mark.value is None
            else f"{_LABELS}[?{text(mark.key)}].orValue('') == {text(mark.value)}"
            for mark in row.marks
            if not mark.namespace
        )
        for number, row in enumerate(sources.rows)
    }
    marked = cel.some(variables.values())
    # Fairlead's own kind, framework, role and index also refine pods of other rows.
    variables["row0"] = "true"
    variables["marked"] = marked
    variables["kind"] = _kind(sources)
    variables["framework"] = _first(
        (number, _words(row.framework, row.framework_always))
        for number, row in enumerate(sources.rows)
    )
    variables["role"] = _first(
        (number, _words(row.role)) for number, row in enumerate(sources.rows)
    )
    completion = _indexes(COMPLETION_KEYS)
    variables["completion"] = f"({cel.flat(completion)} + [-1])[0]"
    choices = [
        f"({var(f'row{number}')} ? {_index(row)} : [])"
        for number, row in enumerate(sources.rows)
        if row.index
    ]
    # The template of an Indexed Job cannot have the index of each pod.
    last = f"[{var('completion')}]"
    variables["index"] = f"({cel.flat(choices)} + {last})[0]"
    variables["coordinator"] = _coordinator(sources)
    (ordinal,) = _indexes([Key(names.POD_INDEX)])
    ordinals = cel.list_if(f"{marked} && {_OF_STATEFUL_SET}", ordinal)
    variables["position"] = f"({var('index')} >= 0 ? {var('index')} : ({ordinals} + [-1])[0])"
    return Piece(variables)


def _value(key: Key) -> str:
    holder = "variables.own_annotations" if key.annotation else _LABELS
    return f"{holder}[?{text(key.name)}]"


def _words(clauses: Iterable[Clause], always: str | None = None) -> list[str]:
    """For each clause its word, as a list of one or none; then the one that always holds."""
    choices = []
    for clause in clauses:
        value = _value(clause.key)
        if isinstance(clause.words, str):
            choices.append(f"({value}.hasValue() ? [{text(clause.words)}] : [])")
        else:
            words = cel.texts(clause.words)
            table = f"{{{', '.join(f'{text(k)}: {text(v)}' for k, v in clause.words.items())}}}"
            word = f"{value}.orValue('').lowerAscii()"
            choices.append(f"({word} in {words} ? [{table}[{word}]] : [])")
    return [*choices, f"[{text(always)}]"] if always else choices


def _first(rows: Iterable[tuple[int, Sequence[str]]], last: str = "''") -> str:
    """Return the first word of the rows that mark the pod."""
    choices = [
        f"({var(f'row{number}')} ? {cel.flat(lists)} : [])" for number, lists in rows if lists
    ]
    return f"({cel.flat(choices)} + [{last}])[0]"


def _kind(sources: SourceTable) -> str:
    labels = var("namespace_labels")
    word = f"{labels}[?{text(names.KIND)}].orValue('').lowerAscii()"
    whole = f"{labels}[?{text(names.PLACE)}].orValue('') == {text(names.PLACE_ALL)}"
    unsaid = (
        f"({whole} && {word} in {cel.texts(names.KINDS)} ? {word} : {text(names.DEFAULT_KIND)})"
    )
    rows = ((number, _words(row.kind, row.kind_always)) for number, row in enumerate(sources.rows))
    return _first(rows, unsaid)


def _indexes(keys: Iterable[Key]) -> list[str]:
    """For each key its number, as a list of one or none."""
    return [
        f"({_value(key)}.orValue('').matches({_NUMBER}) && "
        f"int({_value(key)}.orValue('')) < 2147483648 ? [int({_value(key)}.orValue(''))] : [])"
        for key in keys
    ]


def _index(row: Source) -> str:
    return cel.flat(
        cel.list_if(cel.every(map(_holds, when)), lists) if when else lists
        for key, when in row.index
        for lists in _indexes([key])
    )


def _coordinator(sources: SourceTable) -> str:
    """As identity._leads: a role that leads, else the first row with an answer, else worker 0."""
    lists = [
        cel.list_if(var(f"row{number}"), cel.flat(map(_leads, row.leaders)))
        for number, row in enumerate(sources.rows)
        if row.leaders
    ]
    frameworks = cel.texts(sorted(WORKER_ZERO_LEADS))
    zero = f"{var('role')} == 'worker' && {var('index')} == 0 && {var('framework')} in {frameworks}"
    roles = cel.texts(sorted(names.COORDINATOR_ROLES))
    return f"({var('role')} in {roles} || ({cel.flat(lists)} + [{zero}])[0])"


def _leads(rule: Leader) -> str:
    """Return CEL for whether the pod leads, as a list of one; empty if the rule has no answer."""
    leads = cel.every(map(_holds, rule.only_if))
    return cel.list_if(cel.every(map(_holds, rule.when)), f"[{leads}]")


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
        holds += [_part(name, "{} >= 0", "{}.hasValue()") for name in condition.host]
        parts = [_part(name, "string({})", "{}.orValue('')") for name in condition.host]
        joined = " + '-' + ".join(parts)
        holds.append(f"{value}.split('.')[0] == {joined}")
    if condition.among is not None:
        holds.append(f"{value} in {cel.texts(map(str, condition.among))}")
    if condition.but:
        holds.append(f"!({value} in {cel.texts(condition.but)})")
    if condition.absent:
        return f"(!{label}.hasValue() || {cel.every(holds)})"
    return cel.every([f"{label}.hasValue()", *holds])


def _part(name: str, of_index: str, of_label: str) -> str:
    """Fill in the completion index, or the label of this name."""
    if name == COMPLETION_INDEX:
        return of_index.format(var("completion"))
    return of_label.format(_value(Key(name)))


def policy_pieces(policies: Sequence[Enforced]) -> Piece:
    """Return a variable for each policy: whether it is for the pod.

    For a DaemonSet's pods, only requirements apply, and none if only the namespace marks them and
    spares them.
    """
    variables = {}
    for at, policy in enumerate(policies):
        split = policy.by_position
        holds = block(policy.match, by_position=split is not None)
        written = len(policy.exclude) - (split or 0)
        for number, excluded in enumerate(policy.exclude):
            holds += f" && !({block(excluded, by_position=number >= written)})"
        spared = var("daemon_set")
        if policy.requires:
            kept = f"[?{text(names.DAEMON_SETS)}].orValue('') == {text(names.DAEMON_SETS_KEEP)}"
            spared += f" && !{var('marked')} && {var('namespace_labels')}{kept}"
        variables[f"p{at}"] = f"!({spared}) && {holds}"
    return Piece(variables)


def block(match: Match, *, by_position: bool = False) -> str:
    """Return CEL for whether every condition of the block holds.

    `by_position`: indexes are positions, which the pods of StatefulSets have too.
    """
    return every(
        f"{var('position')} in {cel.texts(value)}"
        if by_position and field.name == "replica_indexes"
        else _condition(field, value)
        for field, value in given_fields(match)
    )


def _condition(field: MatchField, value: Any) -> str:
    match field.form:
        case "name":
            return f"{field.cel}.matches({text(_pattern(value))})"
        case "labels":
            return selected(value, field.cel)
        case "value":
            return f"{field.cel} in {cel.texts(value)}"
        case "flag":
            return field.cel if value else f"!{field.cel}"
        case "values":
            return _VALUES[field.name](value)
        case "amounts":
            raise AssertionError(f"{field.document_name} is rejected before")


def _glob(pattern: str) -> str:
    """Return a glob as an RE2 expression. Its other characters are literal."""
    return "".join({"*": ".*", "?": ".", ".": r"\."}.get(letter, letter) for letter in pattern)


_AMOUNTS: Final = ("requests", "limits")


def _requests(resources: Sequence[str]) -> str:
    asked = _is_among(resources)
    containers = "[object.spec.containers, object.spec.?initContainers.orValue([])].flatten()"
    of_pod = _requests_of("object.spec", asked)
    return f"({containers}.exists(c, {_requests_of('c', asked)}) || {of_pod})"


def _requests_of(holder: str, asked: str) -> str:
    requests, limits = (f"{holder}.?resources.?{part}.orValue({{}})" for part in _AMOUNTS)
    of_limits = f"{asked} && !(k in {requests}) && string({limits}[k]).matches({_SOME})"
    return (
        f"{requests}.exists(k, {asked} && string({requests}[k]).matches({_SOME})) || "
        f"{limits}.exists(k, {of_limits})"
    )


def _is_among(resources: Sequence[str]) -> str:
    """Return CEL for whether k is one of these names, or matches one of these globs."""
    if not any(map(is_glob, resources)):
        return f"k in {cel.texts(resources)}"
    return f"k.matches({text(_pattern(resources))})"


def _pattern(listed: Sequence[str]) -> str:
    return f"^({'|'.join(map(_glob, listed))})$"


_VALUES: Final[Mapping[str, Callable[[Sequence[str]], str]]] = {
    "resources": _requests,
    "volumes": lambda sources: (
        "object.spec.?volumes.orValue([]).exists(v, "
        f"{' || '.join(f'has(v.{source})' for source in sources)})"
    ),
}


def selected(selector: LabelSelector, labels: str) -> str:
    """Return CEL for whether labels meet the selector."""
    conditions = []
    for condition in compile_selector(selector).conditions:
        key = text(condition.key)
        match condition.operator:
            case "In":
                held = f"{key} in {labels} && {labels}[{key}] in {cel.texts(condition.values)}"
            case "NotIn":
                held = f"!({key} in {labels} && {labels}[{key}] in {cel.texts(condition.values)})"
            case "Exists":
                held = f"{key} in {labels}"
            case "DoesNotExist":
                held = f"!({key} in {labels})"
        conditions.append(f"({held})")
    return every(conditions)
