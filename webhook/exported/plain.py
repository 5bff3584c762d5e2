"""Fields that stand for themselves: maps, scalars, affinity lists, topology spread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webhook import names
from webhook.exported import cel
from webhook.exported.cel import Check, Piece, add, data, every, flat, given, text, var
from webhook.exported.wanted import standing
from webhook.placement.fields import PLAIN_MAPS
from webhook.placement.fold import contradiction
from webhook.placement.merge_verdict import UNCHECKED, is_about_nodes
from webhook.placement.pod import AFFINITY_LISTS, PREFERRED_NODES
from webhook.placement.wishes import ListWish, MemberWish, ScalarWish, SpreadWish

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.exported.capacity import Chosen
    from webhook.exported.wanted import Wanted
    from webhook.placement.fields import Field
    from webhook.placement.wishes import Wish


def message(wish: Wish, reason: str) -> str:
    """What is said of a pod that a wish rejects, as the webhook words it."""
    return f"fairlead: policy {wish.policy}: {wish.part}.{wish.field}: {reason}"


def _same_field(one: Wish, other: Wish) -> bool:
    return one.field == other.field


def maps(wishes: Sequence[Wanted], stamp: str) -> Piece:
    """Labels, annotations (with the stamp among them) and securityContext."""
    variables: dict[str, str] = {}
    operations: list[str] = []
    checks: list[Check] = []
    for field in PLAIN_MAPS:
        name = field.name
        mine = [w for w in wishes if isinstance(w.wish, MemberWish) and w.wish.map == name]
        entries = [cel.entry(names.PLACEMENT, stamp)] if name == "annotations" else []
        for one, stands in standing(mine, _same_field):
            if isinstance(one.wish, MemberWish):
                entries.append(given(every([stands, *_changes(one.wish)]), _entry(one.wish)))
        if not entries:
            continue
        variables[f"set_{name}"] = flat(entries)
        wants = f"size({var(f'set_{name}')}) > 0"
        operations.append(cel.parent(f"has(object.{field.holder}.{name})", wants, field.path, "{}"))
        operations.append(cel.members(field.path, var(f"set_{name}")))
        checks += [
            _required(w.at, w.wish)
            for w in mine
            if isinstance(w.wish, MemberWish) and w.wish.part == "requirements"
        ]
    return Piece(variables, operations, checks)


def _entry(wish: MemberWish) -> str:
    return cel.entry(wish.key, wish.value)


def _of_system(wish: MemberWish) -> list[str]:
    system = wish.row.system_of(wish.key)
    return [f"{var('os')} in {cel.texts(['', system])}"] if system else []


def _changes(wish: MemberWish) -> list[str]:
    own, key = var(f"own_{wish.map}"), text(wish.key)
    missing = f"!({key} in {own})"
    if wish.part == "overrides" and wish.row.overrides == "set":
        missing = f"({missing} || {own}[{key}] != {cel.data(wish.value)})"
    found = [*_of_system(wish), missing]
    return [*found, f"size({own}) == 0"] if wish.if_null else found


def _required(at: int, wish: MemberWish) -> Check:
    own, key = var(f"own_{wish.map}"), text(wish.key)
    asked = every([cel.policy(at), *_of_system(wish)])
    holds = f"{key} in {own} && {own}[{key}] == {cel.data(wish.value)}"
    return Check(f"!({asked}) || ({holds})", message(wish, f"must be {cel.text(str(wish.value))}"))


def scalars(wishes: Sequence[Wanted], default_priority_class: str) -> Piece:
    """The fields that are one text or number."""
    variables: dict[str, str] = {}
    operations: list[str] = []
    checks: list[Check] = []
    mine = [w for w in wishes if isinstance(w.wish, ScalarWish)]
    exact = [w for w in mine if w.wish.row.requirement == "equal"]
    for one, stands in (*standing(exact, _same_field), *_within_maxima(mine, variables)):
        wish = one.wish
        if not isinstance(wish, ScalarWish):
            continue
        row, value = wish.row, data(wish.value)
        fixed = wish.part == "overrides" and row.overrides == "reject"
        change = [stands, f"{_own(row)} {'>' if wish.is_maximum else '!='} {value}"]
        if wish.part != "overrides" or fixed:
            unwritten = map(data, row.unwritten(default_priority_class))
            change.append(f"{_own(row)} in [{', '.join(unwritten)}]")
        when = every(change)
        operations.append(given(when, f"[{add(text(row.path), value)}]"))
        operations += [
            given(f"{when} && has(object.spec.{old})", f"[{cel.remove(text(f'/spec/{old}'))}]")
            for old in row.derived
        ]
        if fixed:
            checks.append(_is(wish, stands))
    checks += [
        _is(one.wish, cel.policy(one.at))
        for one in mine
        if isinstance(one.wish, ScalarWish) and one.wish.part == "requirements"
    ]
    return Piece(variables, operations, checks)


def _within_maxima(
    wishes: Sequence[Wanted], variables: dict[str, str]
) -> Iterator[tuple[Wanted, str]]:
    """The wishes of fields of which a requirement is a maximum, with the CEL for when each stands.

    Maxima come first, for all of them stand; the lowest is the last of them, and so decides.
    Whether any other wish stands depends on whether its rivals do: each of these is a variable.
    """
    mine = [
        (one, one.wish)
        for one in wishes
        if isinstance(one.wish, ScalarWish) and one.wish.row.requirement == "maximum"
    ]
    maxima = [(one, wish) for one, wish in mine if wish.is_maximum]
    for one, _ in sorted(maxima, key=lambda each: -int(each[1].value)):
        yield one, cel.policy(one.at)
    earlier: dict[str, list[str]] = {}
    for one, wish in mine:
        if wish.is_maximum:
            continue
        rivals = earlier.setdefault(wish.name, [])
        limits = [_beside(limit.at, most, wish) for limit, most in maxima if most.name == wish.name]
        name = f"{wish.name}{len(rivals)}"
        variables[name] = every([cel.policy(one.at), *(f"!{each}" for each in rivals), *limits])
        rivals.append(var(name))
        yield one, var(name)


def _beside(at: int, maximum: ScalarWish, wish: ScalarWish) -> str:
    """A maximum lets the wish stand. A pod that it rejects stays as it is, for the check to see."""
    if not maximum.leaves_room(wish):
        return f"!{cel.policy(at)}"
    own = _own(maximum.row)
    admitted = f"{own} <= {data(maximum.value)} || {own} == {data(maximum.row.silent)}"
    return f"(!{cel.policy(at)} || {admitted})"


def _own(field: Field) -> str:
    """What a pod has in a scalar."""
    unset = "''" if field.unset == "" else data(field.unset)
    return f"object.{field.holder}.?{field.name}.orValue({unset})"


def _is(wish: ScalarWish, asked: str) -> Check:
    value = data(wish.value)
    if wish.is_maximum:
        reason = message(wish, f"must be {wish.wanted}")
        return Check(f"!({asked}) || {_own(wish.row)} <= {value}", reason)
    return Check(f"!({asked}) || {_own(wish.row)} == {value}", message(wish, f"must be {value}"))


def lists(wishes: Sequence[Wanted], chosen: Sequence[Chosen]) -> Piece:
    """Preferred node affinity, pod affinity and anti-affinity; capacity's preferences too."""
    variables: dict[str, str] = {}
    operations: list[str] = []
    kinds: dict[str, list[str]] = {}
    for number, (name, (kind, key)) in enumerate(AFFINITY_LISTS.items()):
        own = f"object.spec.?affinity.?{kind}.?{key}.orValue([])"
        mine = [w for w in wishes if isinstance(w.wish, ListWish) and w.wish.name == name]
        entries = [_list(one.wish, stands, own) for one, stands in standing(mine, _both_defaults)]
        if name == PREFERRED_NODES:
            entries += [
                given(each.when, cel.data(each.wish.capacity.preferences(each.wish.weight)))
                for each in chosen
                if each.wish.mode.prefers
            ]
        if not entries:
            continue
        new = f"list{number}"
        variables[new] = (
            f"({var('bound')} ? [] : {flat(entries)}.filter(e, !(e in {own})).distinct())"
        )
        wants = f"size({var(new)}) > 0"
        kinds.setdefault(kind, []).append(wants)
        path = f"/spec/affinity/{kind}/{key}"
        operations += [
            cel.parent(f"size({own}) > 0", wants, path, "[]"),
            f"{var(new)}.map(e, {add(text(f'{path}/-'), 'e')})",
        ]
    # Required node affinity may want the parent of its kind, too: that one is made elsewhere.
    kinds.pop("nodeAffinity", None)
    parents = [
        cel.parent(
            f"object.spec.?affinity.?{kind}.hasValue()",
            cel.some(wants_of),
            f"/spec/affinity/{kind}",
            "{}",
        )
        for kind, wants_of in kinds.items()
    ]
    return Piece(variables, [*parents, *operations], _unchecked(wishes))


def _unchecked(wishes: Sequence[Wanted]) -> list[Check]:
    """Requirements about other pods, which only a scheduler could hold."""
    return [
        Check(f"!({cel.policy(at)} && {var('bound')})", message(wish, UNCHECKED))
        for at, wish in wishes
        if wish.part == "requirements"
        and isinstance(wish, ListWish | SpreadWish)
        and is_about_nodes(wish)
    ]


def _both_defaults(one: Wish, other: Wish) -> bool:
    return one.is_default and other.is_default


def _list(wish: Wish, stands: str, own: str) -> str:
    entries = wish.entries if isinstance(wish, ListWish) else ()
    when = f"{stands} && size({own}) == 0" if wish.is_default else stands
    return given(when, cel.data(entries))


def spread(wishes: Sequence[Wanted]) -> Piece:
    """Topology spread constraints, of which each pair stands once."""
    mine = [w for w in wishes if isinstance(w.wish, SpreadWish)]
    if not mine:
        return Piece()
    own, path = var("own_spread"), "/spec/topologySpreadConstraints"
    variables = {"own_spread": "object.spec.?topologySpreadConstraints.orValue([])"}
    changes: list[str] = []
    operations: list[str] = []
    for one, stands in standing(mine, _same_field):
        if not isinstance(one.wish, SpreadWish):
            continue
        constraint = cel.data(one.wish.constraint)
        when = [f"!{var('bound')}", stands, f"!({constraint} in {own})"]
        if one.wish.is_default:
            when.append(f"size({own}) == 0")
        name = f"spread{len(changes)}"
        variables[name] = every(when)
        changes.append(var(name))
        pairs = f'{own}.map(c, c.topologyKey + " " + c.whenUnsatisfiable)'
        at = f"{pairs}.indexOf({text(' '.join(one.wish.pair))})"
        there = cel.replace(f"{text(f'{path}/')} + string({at})", constraint)
        operations.append(
            f"(!{var(name)} ? [] : {at} < 0 ? [{add(text(f'{path}/-'), constraint)}] : [{there}])"
        )
    first = cel.parent(f"size({own}) > 0", cel.some(changes), path, "[]")
    return Piece(variables, [first, *operations])


def contradictions(wishes: Sequence[Wanted], rivals: Any) -> list[Check]:
    """Requirements of two policies of which no pod can meet both, where both match."""
    mine = [w for w in wishes if w.wish.part == "requirements"]
    return [
        Check(
            f"!({cel.policy(one.at)} && {cel.policy(other.at)})",
            f"fairlead: {contradiction([one.wish, other.wish])}",
        )
        for number, other in enumerate(mine)
        for one in mine[:number]
        if rivals(one.wish, other.wish)
    ]
