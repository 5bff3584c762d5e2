"""Express the merge of nodeSelector, required node affinity and capacity in CEL.

Terms follow the rules of placement.node_affinity and placement.label_values. They are lists of
objects; variables of comprehensions have different names, so that expressions can be nested. Longer
than 300 lines: the whole is made of the expressions for single terms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.exported import cel
from webhook.exported.cel import Check, Piece, every, flat, list_if, text, var
from webhook.exported.plain_fields_cel import message
from webhook.exported.positioned_settings import of_type, standing
from webhook.placement import node_affinity
from webhook.placement.label_values import MAX_INT64
from webhook.placement.merge_verdict import UNCHECKED
from webhook.placement.pod import REQUIRED
from webhook.placement.settings import MemberSetting, RequiredSetting

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.exported.capacity_cel import ConditionalCapacity
    from webhook.exported.positioned_settings import PositionedSetting, PositionedSettings
    from webhook.placement.placement_setting import PlacementSetting
    from webhook.placement.shapes import Term

_EXPRESSIONS: Final = "{0}.?matchExpressions.orValue([])"
_FIELDS: Final = "{0}.?matchFields.orValue([])"
# The variable with `int64_pattern()`, which is long and used often.
NUMBER: Final = "int64"
_NUMBER: Final = f"variables.{NUMBER}"


def int64_pattern() -> str:
    """Return a regular expression, without quotes in it, of what the scheduler reads as an int64.

    A match that int() cannot convert would be an error, and a number without a match would let a
    pod's author bypass policies. Only -2^63 has no match; no label can have that value.
    """
    return f"^[+-]?0*([0-9]{{1,18}}|{_at_most(str(MAX_INT64))})$"


def _at_most(digits: str) -> str:
    """Return a pattern of numbers with as many digits that are not greater.

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
    """Return CEL for whether the term has no requirement at all, and so matches no node."""
    return f"(size({_EXPRESSIONS.format(term)}) == 0 && size({_FIELDS.format(term)}) == 0)"


def stays_unchanged(term: str, condition: str) -> str:
    """Return CEL for whether the condition does not change the term: it is empty, or implies the
    condition."""
    expressions = _EXPRESSIONS.format(term)
    implied = f"{condition}.exists(h, h.matchExpressions.all(e, e in {expressions}))"
    return f"{empty(term)} || {implied}"


def narrowed(terms: str, condition: str) -> str:
    """`terms` AND `condition`, by the cross product; terms that imply the condition stay."""
    expressions = _EXPRESSIONS.format("t")
    both = f"{expressions} + h.matchExpressions.filter(e, !(e in {expressions}))"
    product = (
        '(has(t.matchFields) ? dyn({"matchExpressions": dyn(' + both + '), "matchFields": '
        'dyn(t.matchFields)}) : dyn({"matchExpressions": dyn(' + both + ")}))"
    )
    return (
        f"{terms}.map(t, {stays_unchanged('t', condition)} ? [dyn(t)] : "
        f"{condition}.map(h, {product})).flatten().distinct()"
    )


def satisfiable(terms: str, selector: str) -> str:
    """Return CEL for whether a node could meet one of the terms and the nodeSelector (a map)."""
    return f"{terms}.exists(t, {possible('t', selector)})"


def possible(term: str, selector: str) -> str:
    """Return CEL for whether a node could meet the term and the nodeSelector."""
    expressions, fields = _EXPRESSIONS.format(term), _FIELDS.format(term)
    same_key = f"{expressions}.filter(g, g.key == e.key)"
    labels = f"{expressions}.all(e, {_group(same_key, selector)})"
    return f"(!{empty(term)} && {labels} && {_names(fields)})"


def _group(group: str, selector: str) -> str:
    """Return CEL for whether one label can meet all expressions on it; `e` is one of them."""
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
    """Return the same if no expression lists values: only absence and the range of numbers
    count."""
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
    """Return CEL for whether a node's name, the only field, can meet the expressions on it."""
    listed = f"{fields}.filter(g, g.operator == 'In')"
    allowed = "(g.operator == 'In' ? n in g.values : !(n in g.values))"
    return f"(size({listed}) == 0 || {listed}[0].values.exists(n, {fields}.all(g, {allowed})))"


_OWN: Final = {
    NUMBER: text(int64_pattern()),
    "own_selector": "object.spec.?nodeSelector.orValue({})",
    "own_required": f"object.spec.?affinity.?nodeAffinity.?{REQUIRED}.hasValue()",
    "own_terms": f"object.spec.?affinity.?nodeAffinity.?{REQUIRED}.?nodeSelectorTerms.orValue([])",
    "named": "variables.own_terms.map(t, t.?matchExpressions.orValue([]).map(e, e.key)).flatten()",
}
_PATH: Final = f"/spec/affinity/nodeAffinity/{REQUIRED}"
# Maximum number of products of the pod's required terms and the policies', which limits the work
# that a pod can cause in the API server. The webhook allows 1,024.
_MAX_TERM_PRODUCTS: Final = 64
_MANY: Final = (
    f"fairlead: required node affinity would come to over {_MAX_TERM_PRODUCTS} terms with what "
    "policies demand, more than exported policies work out; give it fewer terms"
)
_LEFT: Final = (
    "fairlead: the policies' overrides and requirements leave no node that meets the "
    "pod's own nodeSelector and required affinity"
)


def pieces(
    settings: PositionedSettings,
    taken: Piece,
    applies: Piece,
    chosen: Sequence[ConditionalCapacity],
) -> Piece:
    """Return the whole. If the pod or the policies leave no node, the pod keeps its values.

    Then the checks, which see the pod afterwards, find it as it came, and judge that.
    """
    members = [w for w in of_type(settings, MemberSetting) if w.setting.map == "nodeSelector"]
    required = of_type(settings, RequiredSetting)
    if not (members or required or chosen):
        return Piece()
    variables = {**_OWN, **taken.variables}
    variables["free"] = f"{var('own_selector')}.transformMap(k, v, !(k in {var('dropped')}), v)"
    variables |= applies.variables
    variables |= _hard(settings, members, required, chosen)
    demands: list[PositionedSetting[PlacementSetting]] = [
        demand for demand in (*members, *required) if demand.setting.part == "requirements"
    ]
    variables |= _judgements(demands)
    variables["judged"] = every(
        f"(!{cel.policy(demand.at)} || {var(f'judged{number}')})"
        for number, demand in enumerate(demands)
    )
    variables["apply"] = every(
        [
            f"!{var('bound')}",
            var("own_possible"),
            var("few"),
            var("judged"),
            var("hard_possible"),
        ]
    )
    variables |= _soft(members, required, chosen)
    return Piece(variables, list(_operations()), list(_checks(demands)))


def _entries(members: Sequence[PositionedSetting[MemberSetting]], *, defaults: bool) -> str:
    entries = []
    for positioned, stands in standing(members):
        setting = positioned.setting
        if setting.is_default != defaults:
            continue
        key, free = text(setting.key), var("free")
        when = [stands]
        if setting.part == "overrides":
            when.append(f"({key} in {free} ? {free}[{key}] != {text(str(setting.value))} : true)")
        else:
            when.append(f"!({key} in {free})")
        if setting.is_default:
            when.append(f"!({key} in {var('named')})")
        if setting.if_null:
            when.append(f"size({free}) == 0")
        entries.append(list_if(every(when), cel.entry(setting.key, setting.value)))
    return flat(entries)


def _set_members(selector: str, entries: str) -> str:
    """Return a map with members set."""
    kept = f"{selector}.transformList(k, v, !({entries}.exists(m, m.key == k)), "
    kept += 'dyn({"key": dyn(k), "value": dyn(v)}))'
    return f"({kept} + {entries}).transformMapEntry(i, m, {{m.key: m.value}})"


def _hard(
    settings: PositionedSettings,
    members: Sequence[PositionedSetting[MemberSetting]],
    required: Sequence[PositionedSetting[RequiredSetting]],
    chosen: Sequence[ConditionalCapacity],
) -> dict[str, str]:
    """Return what requirements and overrides ask for together, and whether a node is left."""
    variables = {"hard_set": _entries(members, defaults=False)}
    variables["hard_selector"] = _set_members(var("free"), var("hard_set"))
    groups: list[tuple[str, PlacementSetting, Sequence[Term]]] = [
        (stands, positioned_setting.setting, positioned_setting.setting.terms)
        for positioned_setting, stands in standing(
            [w for w in required if not w.setting.is_default],
            lambda setting, other: setting.terms == other.terms,
        )
    ]
    groups += [
        (choice.when, choice.setting, choice.setting.condition)
        for choice in chosen
        if not choice.setting.is_default and choice.setting.condition is not None
    ]
    # In the order in which the engine folds them.
    order = {id(w.setting): number for number, w in enumerate(settings)}
    groups.sort(key=lambda group: order[id(group[1])])
    last = "[]"
    for number, (when, _, terms) in enumerate(groups):
        group, name = f"group{number}", f"hard_terms{number}"
        variables[group] = list_if(when, cel.data(node_affinity.conjunction([terms]) or []))
        variables[name] = _product(last, var(group))
        last = var(name)
    variables["hard_terms"] = last
    both = f"{var('own_required')} && size({var('hard_terms')}) > 0"
    multiplied = f"{var('own_terms')}.filter(t, !({stays_unchanged('t', var('hard_terms'))}))"
    variables["few"] = f"size({multiplied}) * size({var('hard_terms')}) <= {_MAX_TERM_PRODUCTS}"
    variables["base_terms"] = (
        f"({both} && {var('few')} ? {narrowed(var('own_terms'), var('hard_terms'))} : "
        f"{var('own_required')} ? {var('own_terms')} : {var('hard_terms')})"
    )
    variables["own_possible"] = _possible(
        var("own_required"), var("own_terms"), var("own_selector")
    )
    asked = f"({var('own_required')} || size({var('hard_terms')}) > 0)"
    variables["hard_possible"] = _possible(asked, var("base_terms"), var("hard_selector"))
    return variables


def _product(terms: str, other: str) -> str:
    """Two conditions on different labels, both of which hold; an empty list means no condition."""
    if terms == "[]":
        return other
    product = (
        f"{terms}.map(a, {other}.map(b, "
        'dyn({"matchExpressions": dyn(a.matchExpressions + b.matchExpressions)}))).flatten()'
    )
    return f"(size({terms}) == 0 ? {other} : size({other}) == 0 ? {terms} : {product})"


def _possible(asked: str, terms: str, selector: str) -> str:
    return f"(!{asked} || {satisfiable(terms, selector)})"


def _judgements(demands: PositionedSettings) -> dict[str, str]:
    """Return a variable for each requirement: whether the pod's own word leaves it a node."""
    selector, terms = var("own_selector"), var("own_terms")
    variables: dict[str, str] = {}
    for number, demand in enumerate(demands):
        setting = demand.setting
        if isinstance(setting, MemberSetting):
            key, value = text(setting.key), text(str(setting.value))
            variables[f"asked{number}"] = _set_members(
                selector, cel.entry(setting.key, setting.value)
            )
            left = _possible(var("own_required"), terms, var(f"asked{number}"))
            lost = f"!{var('own_possible')}"
            variables[f"judged{number}"] = (
                f"({key} in {selector} ? {selector}[{key}] == {value} : {lost} || {left})"
            )
        elif isinstance(setting, RequiredSetting):
            condition = cel.data(setting.terms)
            both = satisfiable(narrowed(terms, condition), selector)
            alone = satisfiable(condition, selector)
            variables[f"judged{number}"] = (
                f"(!{var('few')} || !{var('own_possible')} || "
                f"({var('own_required')} ? {both} : {alone}))"
            )
    return variables


def _checks(demands: PositionedSettings) -> Iterator[Check]:
    for number, demand in enumerate(demands):
        setting = demand.setting
        reason = "leaves no node that meets the pod's own settings"
        if isinstance(setting, MemberSetting):
            reason = f"must be {text(str(setting.value))}; the pod has another value"
        yield Check(
            f"!{cel.policy(demand.at)} || {var(f'judged{number}')}", message(setting, reason)
        )
        yield Check(f"!({cel.policy(demand.at)} && {var('bound')})", message(setting, UNCHECKED))
    yield Check(f"{var('bound')} || {var('few')}", _MANY)
    yield Check(
        f"{var('bound')} || !{var('own_possible')} || !{var('few')} || {var('hard_possible')}",
        _LEFT,
    )


def _soft(
    members: Sequence[PositionedSetting[MemberSetting]],
    required: Sequence[PositionedSetting[RequiredSetting]],
    chosen: Sequence[ConditionalCapacity],
) -> dict[str, str]:
    """Return what defaults fill in, and the result."""
    variables = {"soft_set": _entries(members, defaults=True)}
    variables["selector"] = _set_members(var("hard_selector"), var("soft_set"))
    terms = var("base_terms")
    number = 0
    defaults = [w for w in required if w.setting.is_default]
    groups = []
    for positioned, stands in standing(defaults):
        together = _beside(terms, cel.data(positioned.setting.terms))
        left = satisfiable(together, var("hard_selector"))
        groups.append((f"{stands} && !{var('own_required')} && {left}", positioned.setting.terms))
    groups += [
        (choice.when, choice.setting.condition)
        for choice in chosen
        if choice.setting.is_default and choice.setting.condition is not None
    ]
    for when, condition in groups:
        name = f"terms{number}"
        variables[name] = f"({when} ? {_beside(terms, cel.data(condition))} : {terms})"
        terms, number = var(name), number + 1
    variables["terms"] = terms
    changed = f"({var('selector')} != {var('own_selector')} || {terms} != {var('own_terms')})"
    pruned = f"{terms}.filter(t, {empty('t')} || {possible('t', var('selector'))})"
    variables["result"] = f"({changed} ? {pruned} : {terms})"
    return variables


def _beside(terms: str, condition: str) -> str:
    return f"(size({terms}) == 0 ? {condition} : {narrowed(terms, condition)})"


def _operations() -> Iterator[str]:
    apply, path = var("apply"), "/spec/nodeSelector"
    sets = f"({var('hard_set')} + {var('soft_set')})"
    yield cel.parent("has(object.spec.nodeSelector)", f"{apply} && size({sets}) > 0", path, "{}")
    yield list_if(apply, cel.members(path, sets))
    gone = cel.remove(f"{text(f'{path}/')} + jsonpatch.escapeKey(k)")
    kept = f"!({sets}.exists(m, m.key == k))"
    yield list_if(apply, f"{var('dropped')}.filter(k, {kept}).map(k, {gone})")
    changed = f"{apply} && {var('result')} != {var('own_terms')}"
    value = f'{{"nodeSelectorTerms": dyn({var("result")})}}'
    yield list_if(changed, f"[{cel.add(text(_PATH), value)}]")
