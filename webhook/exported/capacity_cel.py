"""Express in CEL the mode of each capacity class for the pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook.exported import cel
from webhook.exported.cel import Piece, every, policy, var
from webhook.exported.node_conditions import satisfiable
from webhook.exported.positioned_settings import of_type
from webhook.placement.capacity_setting import CapacitySetting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.exported.positioned_settings import PositionedSettings


class ConditionalCapacity(NamedTuple):
    """A capacity setting, and the CEL for when it applies."""

    setting: CapacitySetting
    when: str


def choose(settings: PositionedSettings) -> tuple[Piece, Piece, list[ConditionalCapacity]]:
    """Return the selector keys that overrides remove, then the setting of each class that applies.

    The second piece reads `free`, the remaining selector, and `named`, the keys in the pod's
    required affinity.
    """
    mine = of_type(settings, CapacitySetting)
    classes = list(dict.fromkeys(setting.capacity.name for _, setting in mine))
    taken: dict[str, str] = {}
    applies: dict[str, str] = {}
    condition_by_setting: dict[int, str] = {}
    drops: list[str] = []
    for number, name in enumerate(classes):
        of_class = [(at, setting) for at, setting in mine if setting.capacity.name == name]
        hard = [(at, setting) for at, setting in of_class if not setting.is_default]
        # The first match decides, overrides before defaults; -1: no match.
        taken[f"hard{number}"] = _first([(policy(at), str(at)) for at, _ in hard])
        if any(setting.condition is not None for _, setting in hard):
            drops.append(var(_drops(taken, number, hard)))
        # A default applies to a pod that has none of the class's label keys.
        keys = cel.texts(sorted(of_class[0][1].capacity.keys))
        taken_up = f"{keys}.exists(k, k in {var('free')} || k in {var('named')})"
        soft = [(policy(at), f"(!({taken_up}) ? {at} : -1)") for at, _ in of_class[len(hard) :]]
        chosen = var(f"hard{number}")
        applies[f"class{number}"] = f"({chosen} >= 0 ? {chosen} : {_first(soft)})"
        for at, setting in of_class:
            in_its_part = f"{chosen} {'<' if setting.is_default else '>='} 0"
            condition_by_setting[id(setting)] = every(
                [f"{var(f'class{number}')} == {at}", in_its_part]
            )
    taken["dropped"] = cel.flat(drops)
    return (
        Piece(taken),
        Piece(applies),
        [ConditionalCapacity(setting, condition_by_setting[id(setting)]) for _, setting in mine],
    )


def _first(choices: Sequence[tuple[str, str]]) -> str:
    result = "-1"
    for condition, value in reversed(choices):
        result = f"({condition} ? {value} : {result})"
    return result


def _drops(
    variables: dict[str, str], number: int, hard: Sequence[tuple[int, CapacitySetting]]
) -> str:
    """Add variables for the selector keys that conflict with an override; return the last one.

    Keys are tested one by one, in order, each together with the kept ones before it.
    """
    condition = "[]"
    for at, setting in reversed(hard):
        terms = "[]" if setting.condition is None else cel.data(setting.condition)
        condition = f"({var(f'hard{number}')} == {at} ? {terms} : {condition})"
    variables[f"shape{number}"] = condition
    keys = sorted(hard[0][1].capacity.keys)
    before = "[]"
    for nth, key in enumerate(keys):
        name = f"drop{number}_{nth}"
        quoted = cel.text(key)
        earlier = cel.texts(keys[:nth])
        variables[f"trial{number}_{nth}"] = (
            f"{var('own_selector')}.transformMap(k, v, k == {quoted} || "
            f"(k in {earlier} && !(k in {before})), v)"
        )
        left = satisfiable(var(f"shape{number}"), var(f"trial{number}_{nth}"))
        gone = f"{quoted} in {var('own_selector')} && size({var(f'shape{number}')}) > 0 && !{left}"
        variables[name] = f"{before} + ({gone} ? [{quoted}] : [])"
        before = var(name)
    return f"drop{number}_{len(keys) - 1}"
