"""Express the merge of tolerations in CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.exported import cel
from webhook.exported.cel import Check, add, data, every, flat, list_if, text, var
from webhook.exported.plain_fields_cel import message
from webhook.exported.positioned_settings import of_type, standing
from webhook.placement.plugin_tolerations import daemon_set_tolerations
from webhook.placement.settings import AllowedSetting, TolerationSetting
from webhook.placement.tolerations import NO_EXECUTE, covers, normal, pattern_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.exported.capacity_cel import ConditionalCapacity
    from webhook.exported.positioned_settings import PositionedSettings
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.placement_setting import PlacementSetting
    from webhook.placement.shapes import Taint, Toleration
    from webhook.placement.tolerations import Pattern

KINDS: Final = (TolerationSetting, AllowedSetting)
_PATH: Final = "/spec/tolerations"
_ITEM: Final = text(f"{_PATH}/")
_LAST: Final = text(f"{_PATH}/-")
_OPERATOR: Final = "{0}.?operator.orValue('Equal')"
_CONTAINERS: Final = "(object.spec.containers + object.spec.?initContainers.orValue([]))"
# Whether `t` has the operator of what plugins add, or one by which what they add covers it.
_SAME: Final = f"{_OPERATOR.format('t')} == 'Exists'"
_WITHIN: Final = f"{_OPERATOR.format('t')} in ['Exists', 'Equal']"
# Whether ExtendedResourceToleration adds it, or what covers it: for a resource that is requested,
# or that may be requested by zero.
_EXTENDED: Final = (
    "(%s && t.?effect.orValue('') == 'NoSchedule' && t.?key.orValue('').contains('/') && "
    f"!t.key.contains('kubernetes.io/') && {_CONTAINERS}.exists(c, %s))"
)
_REQUESTED: Final = _EXTENDED % (
    _WITHIN,
    "string(c.?resources.?requests.orValue({})[?t.key].orValue('0')) != '0'",
)
_NAMED: Final = _EXTENDED % (_SAME, "t.key in c.?resources.?requests.orValue({})")
_ASKED: Final = cel.some(
    f"string(%s.?resources.?{kind}.orValue({{}})[?'{name}'].orValue('0')) != '0'"
    for kind in ("requests", "limits")
    for name in ("cpu", "memory")
)
# The same of PodTolerationRestriction, which adds one to every pod that is not BestEffort.
_PRESSURE: Final = (
    "(%s && t.?effect.orValue('') == 'NoSchedule' && "
    "t.?key.orValue('') == 'node.kubernetes.io/memory-pressure' && "
    f"(has(object.spec.resources) ? {_ASKED.replace('%s', 'object.spec')} : "
    f"{_CONTAINERS}.exists(c, {_ASKED.replace('%s', 'c')})))"
)


class Steps(NamedTuple):
    """What goes first, then each step of the order for eviction, then the rest."""

    variables: Mapping[str, str]
    removal: str
    order: Sequence[str]
    rest: Sequence[str]


def is_specific(setting: PlacementSetting) -> bool:
    """Return whether it goes before what covers its taint: a NoExecute one that is not a
    default."""
    return (
        isinstance(setting, TolerationSetting)
        and not setting.is_default
        and normal(setting.toleration).effect == NO_EXECUTE
    )


def replaced_default(setting: TolerationSetting, seconds: Mapping[str, int]) -> str:
    """Return the key of the API server's own toleration that a default takes the place of, or
    nothing.
    """
    key = setting.toleration.get("key", "")
    if not setting.is_default or key not in seconds:
        return ""
    filled: Toleration = {"key": key, "operator": "Exists", "effect": NO_EXECUTE}
    return key if covers(setting.toleration, filled) else ""


def steps(
    settings: PositionedSettings,
    chosen: Sequence[ConditionalCapacity],
    classes: Sequence[CapacityClass],
    seconds: Mapping[str, int],
) -> Steps:
    """Return the operations, in the order in which they are applied, and their variables."""
    mine = of_type(settings, TolerationSetting)
    stands = [(positioned.setting, when) for positioned, when in standing(mine)]
    variables = {"own_tolerations": "object.spec.?tolerations.orValue([])"}
    added = cel.some([_filled_in(seconds), _NAMED, _PRESSURE % _SAME])
    variables["untouched"] = f"{var('own_tolerations')}.all(t, {added})"
    wanted = []
    for number, (setting, when) in enumerate(stands):
        variables[f"tolerate{number}"] = when
        wanted.append((setting, var(f"tolerate{number}")))
    variables["prevented"] = _prevented(wanted, chosen, classes)
    removal = f"{var('prevented')}.map(i, {cel.remove(f'{_ITEM} + string(i)')})"
    order = list(_order([(w.toleration, when) for w, when in wanted if is_specific(w)]))
    if not (stands or any(map(_tolerates, chosen))):
        return Steps(variables, removal, order, [])
    rest = [
        cel.parent(f"size({var('own_tolerations')}) > 0", _any(wanted, chosen), _PATH, "[]"),
        *_missing(wanted, chosen, seconds),
    ]
    return Steps(variables, removal, order, rest)


def _any(
    wanted: Sequence[tuple[TolerationSetting, str]], chosen: Sequence[ConditionalCapacity]
) -> str:
    tolerant = [c.when for c in chosen if _tolerates(c)]
    return every([f"!{var('bound')}", cel.some([*(when for _, when in wanted), *tolerant])])


def _tolerates(chosen: ConditionalCapacity) -> bool:
    return chosen.setting.mode.tolerates and bool(chosen.setting.capacity.taints)


def _covers(narrow: Toleration) -> str:
    """Return CEL for placement.tolerations.covers: the pod's toleration `t` covers this one."""
    n = normal(narrow)
    operator = _OPERATOR.format("t")
    same = (
        f"t.?key.orValue('') == {text(n.key)} && {operator} == {text(n.operator)} && "
        f"t.?effect.orValue('') == {text(n.effect)}"
    )
    if n.operator != "Exists":
        same += f" && t.?value.orValue('') == {text(n.value)}"
    key = f"t.?key.orValue('') in {cel.texts(dict.fromkeys(['', n.key]))}"
    effect = f"t.?effect.orValue('') in {cel.texts(dict.fromkeys(['', n.effect]))}"
    broader = f"{operator} == 'Exists'"
    if n.operator == "Equal":
        value = f"t.?value.orValue('') == {text(n.value)}"
        named = f"{operator} == 'Equal' && t.?key.orValue('') != '' && {value}"
        broader = f"({broader} || ({named}))"
    return f"(({same}) || ({key} && {effect} && {broader}))"


def _overlaps(setting: Toleration) -> str:
    """Return CEL for placement.tolerations.overlaps: a taint is admitted by `t` and by this one."""
    n = normal(setting)
    operator = _OPERATOR.format("t")
    conditions = [f"{operator} in ['Exists', 'Equal']"]
    if n.effect:
        conditions.append(f"t.?effect.orValue('') in {cel.texts(['', n.effect])}")
    if n.key:
        conditions.append(f"t.?key.orValue('') in {cel.texts(['', n.key])}")
    if n.operator == "Equal":
        conditions.append(f"({operator} == 'Exists' || t.?value.orValue('') == {text(n.value)})")
    return f"({every(conditions)})"


def _names(taints: Sequence[Taint]) -> str:
    """Return CEL for whether `t` names key and effect of one of the taints, and admits it."""
    return cel.some(
        f"(t.?key.orValue('') == {text(taint['key'])} && "
        f"t.?effect.orValue('') == {text(taint.get('effect', ''))} && "
        f"({_OPERATOR.format('t')} == 'Exists' || ({_OPERATOR.format('t')} == 'Equal' && "
        f"t.?value.orValue('') == {text(taint.get('value') or '')})))"
        for taint in taints
        if taint.get("effect")
    )


def _prevented(
    wanted: Sequence[tuple[TolerationSetting, str]],
    chosen: Sequence[ConditionalCapacity],
    classes: Sequence[CapacityClass],
) -> str:
    """Return the places, last first, of the pod's tolerations that mode Prevent of a class
    removes."""
    goes = []
    for choice in chosen:
        capacity = choice.setting.capacity
        if choice.setting.mode.excludes and capacity.taints:
            others = [t for c in classes if c.name != capacity.name for t in c.taints]
            goes.append(f"({choice.when} && {_names(capacity.taints)} && !{_names(others)})")
    if not goes:
        return "[]"
    kept = cel.some(f"({when} && t == {data(setting.toleration)})" for setting, when in wanted)
    gone = f"{cel.some(goes)} && !{kept}"
    places = f"{var('own_tolerations')}.transformList(i, t, {gone}, i).reverse()"
    return f"({var('bound')} ? [] : {places})"


def _order(specific: Sequence[tuple[Toleration, str]]) -> Iterator[str]:
    """For each specific toleration, from the last to the first, what puts it where it counts.

    Each is a mutation of its own, which sees what those before it have done.
    """
    pod_tolerations = var("own_tolerations")
    for number in range(len(specific) - 1, -1, -1):
        setting, when = specific[number]
        value = data(setting)
        senior = flat(list_if(w, f"[dyn({data(t)})]") for t, w in specific[:number])
        rival = f"t != {value} && !(t in {senior}) && {_overlaps(setting)}"
        first = f"{pod_tolerations}.map(t, {rival}).indexOf(true)"
        at = f"{pod_tolerations}.map(t, t == {value}).indexOf(true)"
        place = f"({first} < 0 ? size({pod_tolerations}) : {first})"
        path = f"{_ITEM} + string({place})"
        old = cel.remove(f"{_ITEM} + string({at})")
        new = add(path, value)
        yield (
            f"(!({when}) || {var('bound')} ? [] : "
            f"{at} < 0 ? (size({pod_tolerations}) > 0 ? [] : [{add(text(_PATH), '[]')}]) + "
            f"[{new}] : "
            f"{at} < {place} ? [] : [{old}, {new}])"
        )


def _filled_in(seconds: Mapping[str, int], operator: str = _SAME) -> str:
    """Return CEL for whether `t` is what DefaultTolerationSeconds puts into every pod, with an
    operator that CEL tests."""
    return cel.some(
        f"(t.?key.orValue('') == {text(key)} && {operator} && "
        f"t.?effect.orValue('') == {text(NO_EXECUTE)} && "
        f"t.?tolerationSeconds.orValue(-1) == {many})"
        for key, many in sorted(seconds.items())
    )


def _missing(
    wanted: Sequence[tuple[TolerationSetting, str]],
    chosen: Sequence[ConditionalCapacity],
    seconds: Mapping[str, int],
) -> Iterator[str]:
    pod_tolerations, filled = var("own_tolerations"), _filled_in(seconds)
    for setting, when in wanted:
        value = data(setting.toleration)
        conditions = [f"!{var('bound')}", when]
        if setting.if_null:
            conditions.append(var("untouched"))
        append = list_if(
            f"!{pod_tolerations}.exists(t, {_covers(setting.toleration)})", f"[{add(_LAST, value)}]"
        )
        key = replaced_default(setting, seconds)
        if key:
            at = (
                f"{pod_tolerations}.map(t, t.?key.orValue('') == {text(key)} && "
                f"{filled}).indexOf(true)"
            )
            replacement = cel.replace(f"{_ITEM} + string({at})", value)
            # The API server runs this twice; the second time the toleration is there.
            append = f"({value} in {pod_tolerations} ? [] : {at} >= 0 ? [{replacement}] : {append})"
        yield list_if(every(conditions), append)
    before: list[tuple[Toleration, str]] = [(w.toleration, _added(w, when)) for w, when in wanted]
    for choice in chosen:
        if not _tolerates(choice):
            continue
        for toleration in choice.setting.capacity.tolerations:
            rivals = [when for other, when in before if covers(other, toleration)]
            conditions = [f"!{var('bound')}", choice.when]
            conditions += [f"!({when})" for when in dict.fromkeys(rivals)]
            conditions.append(f"!{pod_tolerations}.exists(t, {_covers(toleration)})")
            yield list_if(every(conditions), f"[{add(_LAST, data(toleration))}]")
            before.append((toleration, choice.when))


def _added(setting: TolerationSetting, when: str) -> str:
    """Return CEL for whether the setting is in the result; one under IsNull may have stood back."""
    if not setting.if_null:
        return when
    return f"{when} && {var('untouched')}"


def allowed(
    settings: PositionedSettings,
    chosen: Sequence[ConditionalCapacity],
    seconds: Mapping[str, int],
) -> Iterator[Check]:
    """Yield the checks of the tolerations that pods may have of their own."""
    mine = of_type(settings, AllowedSetting)
    given = [
        f"({cel.policy(at)} && {_allows(pattern_of(setting.toleration))})"
        for at, setting in (of_type(settings, TolerationSetting) if mine else ())
    ]
    given += [
        f"({choice.when} && {_allows(pattern_of(toleration))})"
        for choice in chosen
        if _tolerates(choice)
        for toleration in choice.setting.capacity.tolerations
    ]
    always, host = daemon_set_tolerations({}), daemon_set_tolerations({"hostNetwork": True})
    daemon = cel.some(map(_allows, map(pattern_of, always)))
    of_host = cel.some(map(_allows, map(pattern_of, host[len(always) :])))
    daemon = f"({daemon} || (object.spec.?hostNetwork.orValue(false) && {of_host}))"
    for at, setting in mine:
        patterns = map(_allows, setting.patterns)
        may = cel.some(
            [
                *patterns,
                *given,
                _filled_in(seconds, _WITHIN),
                f"({var('daemon_set')} && {daemon})",
                _REQUESTED,
                _PRESSURE % _WITHIN,
            ]
        )
        expression = f"!{cel.policy(at)} || object.spec.?tolerations.orValue([]).all(t, {may})"
        reason = f"the pod has other tolerations; {setting.describe_allowed}"
        yield Check(expression, message(setting, reason))


def _allows(pattern: Pattern) -> str:
    """Return CEL for placement.tolerations.Pattern.allows of the pod's toleration `t`."""
    key, value, effect = pattern
    conditions = []
    if key.endswith("*") and key != "*":
        conditions.append(f"t.?key.orValue('').startsWith({text(key[:-1])})")
    elif key != "*":
        conditions.append(f"t.?key.orValue('') == {text(key)}")
    if effect:
        conditions.append(f"t.?effect.orValue('') == {text(effect)}")
    operator = _OPERATOR.format("t")
    if value is None:
        conditions.append(f"{operator} in ['Exists', 'Equal']")
    else:
        conditions.append(f"{operator} == 'Equal'")
        conditions.append(f"t.?value.orValue('') == {text(value)}")
    return f"({every(conditions)})"
