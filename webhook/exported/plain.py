"""Fields that stand for themselves: maps, scalars, affinity lists, topology spread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.exported import cel
from webhook.exported.cel import Check, Piece, add, every, flat, given, text, var
from webhook.exported.wanted import standing
from webhook.placement.fold import contradiction
from webhook.placement.merge_verdict import UNCHECKED, is_about_nodes
from webhook.placement.pod import AFFINITY_LISTS, PREFERRED_NODES
from webhook.placement.wishes import ListWish, MemberWish, ScalarWish, SpreadWish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.exported.capacity import Chosen
    from webhook.exported.wanted import Wanted
    from webhook.placement.wishes import Wish

_MAPS: Final = {"labels": "metadata", "annotations": "metadata", "securityContext": "spec"}
# As placement.merge_plain has it: what the API server takes for either operating system.
_ANY_SYSTEM: Final = frozenset({"runAsNonRoot"})


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
    for name, holder in _MAPS.items():
        mine = [w for w in wishes if isinstance(w.wish, MemberWish) and w.wish.map == name]
        entries = [cel.entry(names.PLACEMENT, stamp)] if name == "annotations" else []
        for one, stands in standing(mine, _same_field):
            if isinstance(one.wish, MemberWish):
                entries.append(given(every([stands, *_changes(one.wish)]), _entry(one.wish)))
        if not entries:
            continue
        variables[f"set_{name}"] = flat(entries)
        wants = f"size({var(f'set_{name}')}) > 0"
        operations.append(
            cel.parent(f"has(object.{holder}.{name})", wants, f"/{holder}/{name}", "{}")
        )
        operations.append(cel.members(f"/{holder}/{name}", var(f"set_{name}")))
        checks += [
            _required(w.at, w.wish)
            for w in mine
            if isinstance(w.wish, MemberWish) and w.wish.part == "requirements"
        ]
    return Piece(variables, operations, checks)


def _entry(wish: MemberWish) -> str:
    return cel.entry(wish.key, wish.value)


def _of_system(wish: MemberWish) -> list[str]:
    if wish.map != "securityContext" or wish.key in _ANY_SYSTEM:
        return []
    meant = "windows" if wish.key == "windowsOptions" else "linux"
    return [f"{var('os')} in {cel.texts(['', meant])}"]


def _changes(wish: MemberWish) -> list[str]:
    own, key = var(f"own_{wish.map}"), text(wish.key)
    missing = f"!({key} in {own})"
    if wish.part == "overrides" and wish.map != "labels":
        missing = f"({missing} || {own}[{key}] != {cel.data(wish.value)})"
    found = [*_of_system(wish), missing]
    return [*found, f"size({own}) == 0"] if wish.if_null else found


def _required(at: int, wish: MemberWish) -> Check:
    own, key = var(f"own_{wish.map}"), text(wish.key)
    asked = every([cel.policy(at), *_of_system(wish)])
    holds = f"{key} in {own} && {own}[{key}] == {cel.data(wish.value)}"
    return Check(f"!({asked}) || ({holds})", message(wish, f"must be {cel.text(str(wish.value))}"))


def scalars(wishes: Sequence[Wanted], default_priority_class: str) -> Piece:
    """priorityClassName, schedulerName and runtimeClassName."""
    filled_in = {
        "priorityClassName": default_priority_class,
        "schedulerName": names.DEFAULT_SCHEDULER,
    }
    operations: list[str] = []
    checks: list[Check] = []
    mine = [w for w in wishes if isinstance(w.wish, ScalarWish)]
    for one, stands in standing(mine, _same_field):
        wish = one.wish
        if not isinstance(wish, ScalarWish):
            continue
        own = f"object.spec.?{wish.name}.orValue('')"
        change = [stands, f"{own} != {text(wish.value)}"]
        if wish.part != "overrides" or wish.name == "runtimeClassName":
            change.append(f"{own} in {cel.texts(['', filled_in.get(wish.name, '')])}")
        when = every(change)
        operations.append(given(when, f"[{add(text(f'/spec/{wish.name}'), text(wish.value))}]"))
        if wish.name == "priorityClassName":
            operations += [
                given(f"{when} && has(object.spec.{old})", f"[{cel.remove(text(f'/spec/{old}'))}]")
                for old in ("priority", "preemptionPolicy")
            ]
        if wish.part == "overrides" and wish.name == "runtimeClassName":
            checks.append(_is(wish, own, stands))
    for one in mine:
        if isinstance(one.wish, ScalarWish) and one.wish.part == "requirements":
            own = f"object.spec.?{one.wish.name}.orValue('')"
            checks.append(_is(one.wish, own, cel.policy(one.at)))
    return Piece({}, operations, checks)


def _is(wish: ScalarWish, own: str, asked: str) -> Check:
    reason = message(wish, f"must be {text(wish.value)}")
    return Check(f"!({asked}) || {own} == {text(wish.value)}", reason)


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
                if each.wish.mode == "Prefer"
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
