"""What nodes may be, as shapes by label: made ready once, to be narrowed by many conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from webhook.placement import label_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webhook.placement.shapes import Requirement, Term

# By label what must hold of it, which some value does; a field has a slash before its name.
Shape: TypeAlias = "Mapping[str, Sequence[Requirement]]"


def shapes(terms: Iterable[Term]) -> list[Shape]:
    """The terms as shapes, without those that no node can meet."""
    ready = (_shape(term) for term in terms)
    # A term without any requirement matches no node.
    return [each for each in ready if each and all(map(label_values.satisfiable, each.values()))]


def _shape(term: Term) -> Shape:
    found: dict[str, list[Requirement]] = {}
    for requirement in term.get("matchExpressions") or ():
        found.setdefault(requirement.get("key", ""), []).append(requirement)
    for requirement in term.get("matchFields") or ():
        key = requirement.get("key", "")
        # A node always has its fields.
        present: Requirement = {"key": key, "operator": "Exists"}
        found.setdefault(f"/{key}", [present]).append(requirement)
    return found


def narrowed(some: Sequence[Shape], condition: Sequence[Shape]) -> list[Shape]:
    """What a node may be that is of one of both; empty if there can be none."""
    found: list[Shape] = []
    for one in some:
        narrow = [_both(one, other) for other in condition]
        if one in narrow:
            found.append(one)  # the condition says nothing new of it
        else:
            found += [each for each in narrow if each is not None]
    return found


def _both(one: Shape, other: Shape) -> Shape | None:
    """The shape of nodes that are of both; None if there are none."""
    found = dict(one)
    for key, group in other.items():
        mine = one.get(key, ())
        more = [each for each in group if each not in mine]
        if more and mine and not label_values.satisfiable([*mine, *more]):
            return None
        if more:
            found[key] = [*mine, *more]
    return found
