"""Required node affinity in CEL: AND into every term, and whether some node could meet it.

The rules are those of placement.node_affinity and placement.label_values. Terms are lists of
objects; variables of comprehensions have names of their own, so that these can be nested.
"""

from __future__ import annotations

from typing import Final

from webhook.placement.label_values import MAX_INT64

_EXPRESSIONS: Final = "{0}.?matchExpressions.orValue([])"
_FIELDS: Final = "{0}.?matchFields.orValue([])"
# The variable that holds `int64_pattern()`: it is long, and read in many places.
NUMBER: Final = "int64"
_NUMBER: Final = f"variables.{NUMBER}"


def int64_pattern() -> str:
    """A regular expression, without quotes in it, of what the scheduler reads as an int64.

    A number that an expression could not turn into one would be an error, and one that it took for
    none would be a word by which a pod's author gets past policies. Of -2^63 alone, which no label
    can be, it says that it is none.
    """
    return f"^[+-]?0*([0-9]{{1,18}}|{_at_most(str(MAX_INT64))})$"


def _at_most(digits: str) -> str:
    """Numbers of as many digits that are not greater.

    >>> _at_most("42")
    '([0-3][0-9]{1}|4[0-2])'
    """
    first, rest = digits[0], digits[1:]
    if not rest:
        return f"[0-{first}]"
    if first == "0":
        return f"0{_at_most(rest)}"
    return f"([0-{int(first) - 1}][0-9]{{{len(rest)}}}|{first}{_at_most(rest)})"


def empty(term: str) -> str:
    """Whether the term has no requirement at all, and so matches no node."""
    return f"(size({_EXPRESSIONS.format(term)}) == 0 && size({_FIELDS.format(term)}) == 0)"


def kept(term: str, condition: str) -> str:
    """Whether the term stays as it is beside the condition: it is empty, or implies it."""
    own = _EXPRESSIONS.format(term)
    implied = f"{condition}.exists(h, h.matchExpressions.all(e, e in {own}))"
    return f"{empty(term)} || {implied}"


def narrowed(terms: str, condition: str) -> str:
    """`terms` AND `condition`, by the cross product; what implies the condition stays as it is."""
    own = _EXPRESSIONS.format("t")
    both = f"{own} + h.matchExpressions.filter(e, !(e in {own}))"
    product = (
        '(has(t.matchFields) ? dyn({"matchExpressions": dyn(' + both + '), "matchFields": '
        'dyn(t.matchFields)}) : dyn({"matchExpressions": dyn(' + both + ")}))"
    )
    return (
        f"{terms}.map(t, {kept('t', condition)} ? [dyn(t)] : "
        f"{condition}.map(h, {product})).flatten().distinct()"
    )


def satisfiable(terms: str, selector: str) -> str:
    """Whether some node could meet one of the terms beside the nodeSelector (a map)."""
    return f"{terms}.exists(t, {possible('t', selector)})"


def possible(term: str, selector: str) -> str:
    """Whether some node could meet the term beside the nodeSelector."""
    expressions, fields = _EXPRESSIONS.format(term), _FIELDS.format(term)
    same_key = f"{expressions}.filter(g, g.key == e.key)"
    labels = f"{expressions}.all(e, {_group(same_key, selector)})"
    return f"(!{empty(term)} && {labels} && {_names(fields)})"


def _group(group: str, selector: str) -> str:
    """Whether one label can meet all expressions on it; `e` is one of them."""
    listed = f"{group}.filter(g, g.operator == 'In')"
    return (
        f"(e.key in {selector} ? {_all_hold(group, f'{selector}[e.key]')} : "
        f"size({listed}) > 0 ? {listed}[0].values.exists(v, {_all_hold(group, 'v')}) : "
        f"{_open(group)})"
    )


def _all_hold(group: str, value: str) -> str:
    number = f"{value}.matches({_NUMBER}) && g.values[0].matches({_NUMBER})"
    return (
        f"{group}.all(g, g.operator == 'In' ? {value} in g.values : "
        f"g.operator == 'NotIn' ? !({value} in g.values) : "
        "g.operator == 'DoesNotExist' ? false : "
        f"g.operator == 'Gt' ? {number} && int({value}) > int(g.values[0]) : "
        f"g.operator == 'Lt' ? {number} && int({value}) < int(g.values[0]) : true)"
    )


def _open(group: str) -> str:
    """The same where no expression lists values: only absence and the range of numbers count."""
    compares = f"{group}.filter(g, g.operator in ['Gt', 'Lt'])"
    bounds = "int(g.values[0])"
    low = f"({group}.filter(g, g.operator == 'Gt').map(g, {bounds}) + [-1]).max()"
    high = f"({group}.filter(g, g.operator == 'Lt').map(g, {bounds} - 1) + [{MAX_INT64}]).min()"
    return (
        f"((!{group}.exists(g, g.operator == 'DoesNotExist') || "
        f"!{group}.exists(g, g.operator in ['Exists', 'Gt', 'Lt'])) && "
        f"(size({compares}) == 0 || ({compares}.all(g, g.values[0].matches({_NUMBER})) && "
        f"{high} > {low})))"
    )


def _names(fields: str) -> str:
    """Whether a node's name can meet the expressions on it; it is the one field that there is."""
    listed = f"{fields}.filter(g, g.operator == 'In')"
    allowed = "(g.operator == 'In' ? n in g.values : !(n in g.values))"
    return f"(size({listed}) == 0 || {listed}[0].values.exists(n, {fields}.all(g, {allowed})))"
