"""The fields of a placement, named as stamps and traces do, and where two placements part."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.placement.fields import MAPS, SCALARS, STORED_NORMAL
from webhook.placement.settings import spread_pair
from webhook.placement.tolerations import normal
from webhook.workloads import stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.placement.pod import PodPlacement
    from webhook.placement.shapes import Requirement

# Tolerations, by what they tolerate, are made normal in a way of their own.
_STORED_NORMAL: Final = tuple(
    start
    for field in STORED_NORMAL
    if field.name != "tolerations"
    for start in (f"{field.name}.", f"{field.name}[")
)
REQUIRED: Final = "affinity.nodeAffinity.required"


class Gap(NamedTuple):
    """One field: what stands there in either placement, as JSON; None for nothing."""

    field: str
    has: Any
    would: Any


def fields(placement: PodPlacement) -> dict[str, Any]:
    """What stands in each field that says anything, as JSON; the stamp aside.

    Tolerations are told by key: `tolerations[gpu]` has all of that key.
    """
    found: dict[str, Any] = {}
    for field in MAPS.values():
        for key, value in getattr(placement, field.attribute).items():
            if key != names.PLACEMENT:
                found[f"{field.name}[{key}]"] = value
    for field in SCALARS.values():
        value = getattr(placement, field.attribute)
        if value not in (field.unset, field.silent):
            found[field.name] = value
    for each in placement.tolerations:
        found.setdefault(f"tolerations[{each.get('key') or '*'}]", []).append(each)
    if placement.required is not None:
        found[REQUIRED] = placement.required
    found |= placement.lists
    for constraint in placement.topology_spread:
        found[f"topologySpreadConstraints[{','.join(spread_pair(constraint))}]"] = constraint
    return found


def gaps(has: PodPlacement, would: PodPlacement) -> list[Gap]:
    """Every field in which the placements differ; the order of what a list holds is none."""
    one, other = fields(has), fields(would)
    return [
        Gap(field, one.get(field), other.get(field))
        for field in dict.fromkeys((*one, *other))
        if _canonical(field, one.get(field)) != _canonical(field, other.get(field))
    ]


def same_placement(one: PodPlacement, other: PodPlacement) -> bool:
    """Whether nothing differs but the order of what lists hold."""
    # Tolerations of one taint for different times are put in one order, whoever brings them.
    return one == other or not gaps(one, other)


def _canonical(field: str, value: Any) -> Any:
    if value is None:
        return None
    if field.startswith(_STORED_NORMAL):
        value = stored.normal(value)
    if field.startswith("tolerations["):
        return {normal(each) for each in value}
    if field == REQUIRED:
        return {
            (_sorted(term.get("matchExpressions")), _sorted(term.get("matchFields")))
            for term in value
        }
    return _sorted(value) if isinstance(value, list) else value


def _sorted(items: Sequence[Requirement] | Sequence[Any] | None) -> tuple[str, ...]:
    return tuple(sorted(json.dumps(each, sort_keys=True) for each in items or ()))
