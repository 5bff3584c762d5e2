"""Which mode of each capacity class applies to the pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webhook.exported import cel
from webhook.exported.cel import Piece, every, policy, var
from webhook.exported.nodes_cel import satisfiable
from webhook.placement.wishes import CapacityWish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.exported.wanted import Wanted


class Chosen(NamedTuple):
    """A capacity wish, and the CEL for when it applies."""

    wish: CapacityWish
    when: str


def choose(wishes: Sequence[Wanted]) -> tuple[Piece, Piece, list[Chosen]]:
    """What overrides take from the pod's selector, then which wish of each class applies.

    The second piece reads `free`, the selector that is left, and `named`, the keys that the pod's
    required affinity names.
    """
    mine = [(w.at, w.wish) for w in wishes if isinstance(w.wish, CapacityWish)]
    classes = list(dict.fromkeys(wish.capacity.name for _, wish in mine))
    taken: dict[str, str] = {}
    applies: dict[str, str] = {}
    found: dict[int, str] = {}
    drops: list[str] = []
    for number, name in enumerate(classes):
        of_class = [(at, wish) for at, wish in mine if wish.capacity.name == name]
        hard = [(at, wish) for at, wish in of_class if not wish.is_default]
        # The first that matches decides, and an override before any default; -1: nobody does.
        taken[f"hard{number}"] = _first([(policy(at), str(at)) for at, _ in hard])
        if any(wish.condition is not None for _, wish in hard):
            drops.append(var(_drops(taken, number, hard)))
        soft = [
            (policy(at), f"({_unspoken(wish)} ? {at} : -1)") for at, wish in of_class[len(hard) :]
        ]
        chosen = var(f"hard{number}")
        applies[f"class{number}"] = f"({chosen} >= 0 ? {chosen} : {_first(soft)})"
        for at, wish in of_class:
            in_its_part = f"{chosen} {'<' if wish.is_default else '>='} 0"
            found[id(wish)] = every([f"{var(f'class{number}')} == {at}", in_its_part])
    taken["dropped"] = cel.flat(drops)
    return Piece(taken), Piece(applies), [Chosen(wish, found[id(wish)]) for _, wish in mine]


def _first(choices: Sequence[tuple[str, str]]) -> str:
    result = "-1"
    for condition, value in reversed(choices):
        result = f"({condition} ? {value} : {result})"
    return result


def _unspoken(wish: CapacityWish) -> str:
    """The pod says nothing of the class's label keys."""
    keys = cel.texts(sorted(wish.capacity.keys))
    return f"!({keys}.exists(k, k in {var('free')} || k in {var('named')}))"


def _drops(variables: dict[str, str], number: int, hard: Sequence[tuple[int, CapacityWish]]) -> str:
    """Adds variables for the selector keys that an override cannot be met beside; the last one.

    Keys go one by one, in their order: each is held against those before it that stay.
    """
    condition = "[]"
    for at, wish in reversed(hard):
        terms = "[]" if wish.condition is None else cel.data(wish.condition)
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
