"""Tolerations: removal by Prevent, the order for eviction, then what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.exported import cel
from webhook.exported.cel import add, data, every, flat, given, text, var
from webhook.exported.wanted import standing
from webhook.placement.tolerations import NO_EXECUTE, covers, normal
from webhook.placement.wishes import TolerationWish

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.exported.capacity import Chosen
    from webhook.exported.wanted import Wanted
    from webhook.placement.capacity import CapacityClass
    from webhook.placement.shapes import Taint, Toleration
    from webhook.placement.wishes import Wish

_PATH: Final = "/spec/tolerations"
_ITEM: Final = text(f"{_PATH}/")
_LAST: Final = text(f"{_PATH}/-")
_OPERATOR: Final = "{0}.?operator.orValue('Equal')"


class Steps(NamedTuple):
    """What goes first, then each step of the order for eviction, then the rest."""

    variables: Mapping[str, str]
    removal: str
    order: Sequence[str]
    rest: Sequence[str]


def covering(wish: Wish, other: Wish) -> bool:
    """Whether the first, where it stands, leaves nothing for the second to add."""
    return (
        isinstance(wish, TolerationWish)
        and isinstance(other, TolerationWish)
        and covers(wish.toleration, other.toleration)
    )


def is_specific(wish: Wish) -> bool:
    """Whether it goes before what covers its taint: a NoExecute one that is no default."""
    return (
        isinstance(wish, TolerationWish)
        and not wish.is_default
        and normal(wish.toleration).effect == NO_EXECUTE
    )


def replaced_default(wish: TolerationWish, seconds: Mapping[str, int]) -> str:
    """The key of the API server's own toleration that a default takes the place of, or nothing."""
    key = wish.toleration.get("key", "")
    if not wish.is_default or key not in seconds:
        return ""
    filled: Toleration = {"key": key, "operator": "Exists", "effect": NO_EXECUTE}
    return key if covers(wish.toleration, filled) else ""


def steps(
    wishes: Sequence[Wanted],
    chosen: Sequence[Chosen],
    classes: Sequence[CapacityClass],
    seconds: Mapping[str, int],
) -> Steps:
    """The operations, in the order in which they are applied, and their variables."""
    stands: list[tuple[TolerationWish, str]] = [
        (one.wish, when)
        for one, when in standing(
            [w for w in wishes if isinstance(w.wish, TolerationWish)], covering
        )
        if isinstance(one.wish, TolerationWish)
    ]
    variables = {"own_tolerations": "object.spec.?tolerations.orValue([])"}
    variables["untouched"] = f"{var('own_tolerations')}.all(t, {_filled_in(seconds)})"
    wished = []
    for number, (wish, when) in enumerate(stands):
        variables[f"tolerate{number}"] = when
        wished.append((wish, var(f"tolerate{number}")))
    variables["prevented"] = _prevented(wished, chosen, classes)
    removal = f"{var('prevented')}.map(i, {cel.remove(f'{_ITEM} + string(i)')})"
    order = list(_order([(w.toleration, when) for w, when in wished if is_specific(w)]))
    if not (stands or any(map(_tolerates, chosen))):
        return Steps(variables, removal, order, [])
    rest = [
        cel.parent(f"size({var('own_tolerations')}) > 0", _any(wished, chosen), _PATH, "[]"),
        *_missing(wished, chosen, seconds),
    ]
    return Steps(variables, removal, order, rest)


def _any(wished: Sequence[tuple[TolerationWish, str]], chosen: Sequence[Chosen]) -> str:
    tolerant = [c.when for c in chosen if _tolerates(c)]
    return every([f"!{var('bound')}", cel.some([*(when for _, when in wished), *tolerant])])


def _tolerates(chosen: Chosen) -> bool:
    return chosen.wish.mode.tolerates and bool(chosen.wish.capacity.taints)


def _covers(narrow: Toleration) -> str:
    """Whether the pod's toleration `t` covers this one, as placement.tolerations.covers."""
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


def _overlaps(wish: Toleration) -> str:
    """Whether some taint is admitted by `t` and by this one, as placement.tolerations.overlaps."""
    n = normal(wish)
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
    """Whether `t` names key and effect of one of the taints, and admits it."""
    return cel.some(
        f"(t.?key.orValue('') == {text(taint['key'])} && "
        f"t.?effect.orValue('') == {text(taint.get('effect', ''))} && "
        f"({_OPERATOR.format('t')} == 'Exists' || ({_OPERATOR.format('t')} == 'Equal' && "
        f"t.?value.orValue('') == {text(taint.get('value') or '')})))"
        for taint in taints
        if taint.get("effect")
    )


def _prevented(
    wished: Sequence[tuple[TolerationWish, str]],
    chosen: Sequence[Chosen],
    classes: Sequence[CapacityClass],
) -> str:
    """The places, last first, of the pod's tolerations that a class's Prevent takes away."""
    goes = []
    for each in chosen:
        capacity = each.wish.capacity
        if each.wish.mode.excludes and capacity.taints:
            others = [t for c in classes if c.name != capacity.name for t in c.taints]
            goes.append(f"({each.when} && {_names(capacity.taints)} && !{_names(others)})")
    if not goes:
        return "[]"
    kept = cel.some(f"({when} && t == {data(wish.toleration)})" for wish, when in wished)
    gone = f"{cel.some(goes)} && !{kept}"
    places = f"{var('own_tolerations')}.transformList(i, t, {gone}, i).reverse()"
    return f"({var('bound')} ? [] : {places})"


def _order(specific: Sequence[tuple[Toleration, str]]) -> Iterator[str]:
    """For each specific toleration, from the last to the first, what puts it where it counts.

    Each is a mutation of its own, which sees what those before it have done.
    """
    own = var("own_tolerations")
    for number in range(len(specific) - 1, -1, -1):
        wish, when = specific[number]
        value = data(wish)
        senior = flat(given(w, f"[dyn({data(t)})]") for t, w in specific[:number])
        rival = f"t != {value} && !(t in {senior}) && {_overlaps(wish)}"
        first = f"{own}.map(t, {rival}).indexOf(true)"
        at = f"{own}.map(t, t == {value}).indexOf(true)"
        place = f"({first} < 0 ? size({own}) : {first})"
        path = f"{_ITEM} + string({place})"
        old = cel.remove(f"{_ITEM} + string({at})")
        new = add(path, value)
        yield (
            f"(!({when}) || {var('bound')} ? [] : "
            f"{at} < 0 ? (size({own}) > 0 ? [] : [{add(text(_PATH), '[]')}]) + [{new}] : "
            f"{at} < {place} ? [] : [{old}, {new}])"
        )


def _filled_in(seconds: Mapping[str, int]) -> str:
    """Whether `t` is what the DefaultTolerationSeconds admission plugin puts into every pod."""
    return cel.some(
        f"(t.?key.orValue('') == {text(key)} && t.?operator.orValue('') == 'Exists' && "
        f"t.?effect.orValue('') == {text(NO_EXECUTE)} && "
        f"t.?tolerationSeconds.orValue(-1) == {many})"
        for key, many in sorted(seconds.items())
    )


def _missing(
    wished: Sequence[tuple[TolerationWish, str]],
    chosen: Sequence[Chosen],
    seconds: Mapping[str, int],
) -> Iterator[str]:
    own, filled = var("own_tolerations"), _filled_in(seconds)
    for wish, when in wished:
        value = data(wish.toleration)
        conditions = [f"!{var('bound')}", when]
        if wish.if_null:
            conditions.append(var("untouched"))
        append = given(f"!{own}.exists(t, {_covers(wish.toleration)})", f"[{add(_LAST, value)}]")
        key = replaced_default(wish, seconds)
        if key:
            at = f"{own}.map(t, t.?key.orValue('') == {text(key)} && {filled}).indexOf(true)"
            there = cel.replace(f"{_ITEM} + string({at})", value)
            # The API server runs this twice; the second time the toleration is there.
            append = f"({value} in {own} ? [] : {at} >= 0 ? [{there}] : {append})"
        yield given(every(conditions), append)
    before: list[tuple[Toleration, str]] = [(w.toleration, _added(w, when)) for w, when in wished]
    for each in chosen:
        if not _tolerates(each):
            continue
        for toleration in each.wish.capacity.tolerations:
            rivals = [when for other, when in before if covers(other, toleration)]
            conditions = [f"!{var('bound')}", each.when]
            conditions += [f"!({when})" for when in dict.fromkeys(rivals)]
            conditions.append(f"!{own}.exists(t, {_covers(toleration)})")
            yield given(every(conditions), f"[{add(_LAST, data(toleration))}]")
            before.append((toleration, each.when))


def _added(wish: TolerationWish, when: str) -> str:
    """When the wish is in the result; one under IsNull may have stood back."""
    if not wish.if_null:
        return when
    return f"{when} && {var('untouched')}"
