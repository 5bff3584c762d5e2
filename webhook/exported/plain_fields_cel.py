"""Express the merge of maps, scalars, affinity lists and topology spread in CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook import names
from webhook.exported import cel
from webhook.exported.cel import Check, Piece, add, data, every, flat, list_if, text, var
from webhook.exported.positioned_settings import of_type, standing
from webhook.placement.fields import PLAIN_MAPS
from webhook.placement.fold import contradiction
from webhook.placement.merge_verdict import UNCHECKED
from webhook.placement.pod import AFFINITY_LISTS, PREFERRED_NODES
from webhook.placement.settings import (
    ListSetting,
    MemberSetting,
    ScalarSetting,
    SpreadSetting,
    TolerationSetting,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webhook.exported.capacity_cel import ConditionalCapacity
    from webhook.exported.positioned_settings import PositionedSetting, PositionedSettings
    from webhook.placement.fields import Field
    from webhook.placement.placement_setting import PlacementSetting

KINDS: Final = (MemberSetting, ScalarSetting, ListSetting, SpreadSetting)


def message(setting: PlacementSetting, reason: str) -> str:
    """Return the message for a pod that a setting rejects, with the webhook's wording."""
    return f"fairlead: policy {setting.policy}: {setting.part}.{setting.written}: {reason}"


def maps(settings: PositionedSettings, stamp: str) -> Piece:
    """Labels, annotations (with the stamp among them) and securityContext."""
    variables: dict[str, str] = {}
    operations: list[str] = []
    checks: list[Check] = []
    for field in PLAIN_MAPS:
        name = field.name
        mine = [w for w in of_type(settings, MemberSetting) if w.setting.map == name]
        entries = [cel.entry(names.PLACEMENT, stamp)] if name == "annotations" else []
        for positioned, stands in standing(mine):
            setting = positioned.setting
            when = every([stands, *_changes(setting)])
            entries.append(list_if(when, cel.entry(setting.key, setting.value)))
        if not entries:
            continue
        variables[f"set_{name}"] = flat(entries)
        wants = f"size({var(f'set_{name}')}) > 0"
        operations.append(cel.parent(f"has(object.{field.holder}.{name})", wants, field.path, "{}"))
        operations.append(cel.members(field.path, var(f"set_{name}")))
        checks += [_required(w.at, w.setting) for w in mine if w.setting.part == "requirements"]
    return Piece(variables, operations, checks)


def _of_system(setting: MemberSetting) -> list[str]:
    system = setting.row.system_of(setting.key)
    return [f"{var('os')} in {cel.texts(['', system])}"] if system else []


def _changes(setting: MemberSetting) -> list[str]:
    pod_map, key = var(f"own_{setting.map}"), text(setting.key)
    missing = f"!({key} in {pod_map})"
    if setting.part == "overrides" and setting.row.overrides == "set":
        missing = f"({missing} || {pod_map}[{key}] != {cel.data(setting.value)})"
    conditions = [*_of_system(setting), missing]
    return [*conditions, f"size({pod_map}) == 0"] if setting.if_null else conditions


def _required(at: int, setting: MemberSetting) -> Check:
    pod_map, key = var(f"own_{setting.map}"), text(setting.key)
    asked = every([cel.policy(at), *_of_system(setting)])
    holds = f"{key} in {pod_map} && {pod_map}[{key}] == {cel.data(setting.value)}"
    return Check(
        f"!({asked}) || ({holds})", message(setting, f"must be {cel.text(str(setting.value))}")
    )


def scalars(settings: PositionedSettings, default_priority_class: str) -> Piece:
    """Return the fields that are one text or number."""
    variables: dict[str, str] = {}
    operations: list[str] = []
    checks: list[Check] = []
    mine = of_type(settings, ScalarSetting)
    exact = [w for w in mine if w.setting.row.requirement == "equal"]
    for positioned, stands in (*standing(exact), *_within_maxima(mine, variables)):
        setting = positioned.setting
        row, value = setting.row, data(setting.value)
        fixed = setting.part == "overrides" and row.overrides == "reject"
        change = [stands, f"{_own(row)} {'>' if setting.is_maximum else '!='} {value}"]
        if setting.part != "overrides" or fixed:
            unwritten = map(data, row.unwritten(default_priority_class))
            change.append(f"{_own(row)} in [{', '.join(unwritten)}]")
        when = every(change)
        operations.append(list_if(when, f"[{add(text(row.path), value)}]"))
        operations += [
            list_if(f"{when} && has(object.spec.{old})", f"[{cel.remove(text(f'/spec/{old}'))}]")
            for old in row.derived
        ]
        if fixed:
            checks.append(_has_value(setting, stands))
    checks += [
        _has_value(positioned_setting.setting, cel.policy(positioned_setting.at))
        for positioned_setting in mine
        if positioned_setting.setting.part == "requirements"
    ]
    return Piece(variables, operations, checks)


def _within_maxima(
    settings: Sequence[PositionedSetting[ScalarSetting]], variables: dict[str, str]
) -> Iterator[tuple[PositionedSetting[ScalarSetting], str]]:
    """Yield settings of fields whose requirement is a maximum, each with the CEL for when it
    applies.

    Maxima come first, because all of them apply; the lowest is the last and decides. Whether any
    other setting applies depends on whether its rivals do: each of these is a variable.
    """
    mine = [
        positioned_setting
        for positioned_setting in settings
        if positioned_setting.setting.row.requirement == "maximum"
    ]
    maxima = [
        positioned_setting for positioned_setting in mine if positioned_setting.setting.is_maximum
    ]
    for positioned_setting in sorted(maxima, key=lambda maximum: -int(maximum.setting.value)):
        yield positioned_setting, cel.policy(positioned_setting.at)
    earlier: dict[str, list[str]] = {}
    for positioned_setting in mine:
        setting = positioned_setting.setting
        if setting.is_maximum:
            continue
        rivals = earlier.setdefault(setting.name, [])
        limits = [_beside(at, most, setting) for at, most in maxima if most.name == setting.name]
        name = f"{setting.name}{len(rivals)}"
        variables[name] = every(
            [cel.policy(positioned_setting.at), *(f"!{rival}" for rival in rivals), *limits]
        )
        rivals.append(var(name))
        yield positioned_setting, var(name)


def _beside(at: int, maximum: ScalarSetting, setting: ScalarSetting) -> str:
    """CEL for: the maximum allows the setting. A pod that it rejects is not changed."""
    if not maximum.leaves_room(setting):
        return f"!{cel.policy(at)}"
    pod_value = _own(maximum.row)
    admitted = f"{pod_value} <= {data(maximum.value)} || {pod_value} == {data(maximum.row.silent)}"
    return f"(!{cel.policy(at)} || {admitted})"


def _own(field: Field) -> str:
    """Return what a pod has in a scalar."""
    unset = "''" if field.unset == "" else data(field.unset)
    return f"object.{field.holder}.?{field.name}.orValue({unset})"


def _has_value(setting: ScalarSetting, asked: str) -> Check:
    value = data(setting.value)
    if setting.is_maximum:
        reason = message(setting, f"must be {setting.describe_value}")
        return Check(f"!({asked}) || {_own(setting.row)} <= {value}", reason)
    return Check(
        f"!({asked}) || {_own(setting.row)} == {value}", message(setting, f"must be {value}")
    )


def lists(settings: PositionedSettings, chosen: Sequence[ConditionalCapacity]) -> Piece:
    """Preferred node affinity, pod affinity and anti-affinity; capacity's preferences too."""
    variables: dict[str, str] = {}
    operations: list[str] = []
    kinds: dict[str, list[str]] = {}
    for number, (name, (kind, key)) in enumerate(AFFINITY_LISTS.items()):
        pod_entries = f"object.spec.?affinity.?{kind}.?{key}.orValue([])"
        mine = [w for w in of_type(settings, ListSetting) if w.setting.name == name]
        entries = []
        for positioned, stands in standing(mine):
            when = (
                f"{stands} && size({pod_entries}) == 0" if positioned.setting.is_default else stands
            )
            entries.append(list_if(when, cel.data(positioned.setting.entries)))
        if name == PREFERRED_NODES:
            entries += [
                list_if(
                    choice.when,
                    cel.data(choice.setting.capacity.preferences(choice.setting.weight)),
                )
                for choice in chosen
                if choice.setting.mode.prefers
            ]
        if not entries:
            continue
        new = f"list{number}"
        variables[new] = (
            f"({var('bound')} ? [] : {flat(entries)}.filter(e, !(e in {pod_entries})).distinct())"
        )
        wants = f"size({var(new)}) > 0"
        kinds.setdefault(kind, []).append(wants)
        path = f"/spec/affinity/{kind}/{key}"
        operations += [
            cel.parent(f"size({pod_entries}) > 0", wants, path, "[]"),
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
    return Piece(variables, [*parents, *operations], _unchecked(settings))


def _unchecked(settings: PositionedSettings) -> list[Check]:
    """Return requirements about other pods, which only a scheduler could hold."""
    return [
        Check(f"!({cel.policy(at)} && {var('bound')})", message(setting, UNCHECKED))
        for at, setting in settings
        if setting.part == "requirements"
        and isinstance(setting, ListSetting | SpreadSetting)
        and setting.scheduler_holds
    ]


def spread(settings: PositionedSettings) -> Piece:
    """Topology spread constraints, each pair once."""
    mine = of_type(settings, SpreadSetting)
    if not mine:
        return Piece()
    pod_spread, path = var("own_spread"), "/spec/topologySpreadConstraints"
    variables = {"own_spread": "object.spec.?topologySpreadConstraints.orValue([])"}
    changes: list[str] = []
    operations: list[str] = []
    for positioned, stands in standing(mine):
        constraint = cel.data(positioned.setting.constraint)
        when = [f"!{var('bound')}", stands, f"!({constraint} in {pod_spread})"]
        if positioned.setting.is_default:
            when.append(f"size({pod_spread}) == 0")
        name = f"spread{len(changes)}"
        variables[name] = every(when)
        changes.append(var(name))
        pairs = f'{pod_spread}.map(c, c.topologyKey + " " + c.whenUnsatisfiable)'
        at = f"{pairs}.indexOf({text(' '.join(positioned.setting.pair))})"
        replacement = cel.replace(f"{text(f'{path}/')} + string({at})", constraint)
        operations.append(
            f"(!{var(name)} ? [] : {at} < 0 ? [{add(text(f'{path}/-'), constraint)}] : "
            f"[{replacement}])"
        )
    first = cel.parent(f"size({pod_spread}) > 0", cel.some(changes), path, "[]")
    return Piece(variables, [first, *operations])


def contradictions(settings: PositionedSettings) -> list[Check]:
    """Return requirements of two policies of which no pod can meet both, where both match."""
    mine = [w for w in settings if w.setting.part == "requirements"]
    return [
        Check(
            f"!({cel.policy(positioned_setting.at)} && {cel.policy(other.at)})",
            f"fairlead: {contradiction([positioned_setting.setting, other.setting])}",
        )
        for number, other in enumerate(mine)
        for positioned_setting in mine[:number]
        if _opposed(positioned_setting.setting, other.setting)
    ]


def _opposed(setting: PlacementSetting, other: PlacementSetting) -> bool:
    """Return whether two requirements contradict each other in a field where that cannot be seen
    later."""
    match setting, other:
        case TolerationSetting(), TolerationSetting():
            return not setting.agrees(other)
        case SpreadSetting(), SpreadSetting():
            return setting.pair == other.pair and not setting.agrees(other)
    return False
