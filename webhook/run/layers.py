"""How one environment patches the one before it, by its patchStrategy.

A field here is one of PlacementModel's: Replace and IsNull take it whole, affinity and
securityContext too. PostMerge and PreMerge look into it: maps and the security context go by key,
affinity by its lists, spread constraints by their pair of topologyKey and whenUnsatisfiable,
capacity by class; tolerations join.

It works on JSON as Kubernetes writes it, since the bottom layer is a pod template, of which fields
that are not known here have to stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from webhook.placement.fields import MAPS, says_nothing
from webhook.placement.schema.placement import PlacementModel
from webhook.placement.tolerations import normal, overlaps

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from webhook.placement.shapes import JsonObject, Toleration

Placement: TypeAlias = "Mapping[str, Any]"


class Join(Protocol):
    """Joins what two layers say of one field; `later_wins` where both speak of one thing."""

    def __call__(self, earlier: Any, later: Any, *, later_wins: bool) -> Any:
        """A new value; neither of the two is changed."""


def fold(layers: Sequence[PlacementModel | None]) -> PlacementModel:
    """The environment that the layers make together, from the bottom up; it has no strategy."""
    result: Placement = {}
    for layer in layers:
        if layer is not None:
            result = patched(result, layer)
    return PlacementModel.model_validate(dict(result))


def patched(earlier: Placement, layer: PlacementModel) -> Placement:
    """`earlier` with the layer upon it.

    Both are JSON by the outer names of PlacementModel's fields. What a layer says nothing of stays;
    an empty list or map is a word under Replace alone, where it clears the field.
    """
    strategy = layer.patch_strategy or "PostMerge"
    said = layer.model_dump(by_alias=True, exclude_none=True, exclude={"patch_strategy"})
    result = dict(earlier)
    for field, value in said.items():
        if strategy == "Replace" or says_nothing(result.get(field)):
            result[field] = value
        elif strategy != "IsNull":
            join = _JOINS.get(field, _one_of)
            result[field] = join(result[field], value, later_wins=strategy == "PostMerge")
    return result


def _one_of(earlier: Any, later: Any, *, later_wins: bool) -> Any:
    return later if later_wins else earlier


def _by_key(earlier: JsonObject, later: JsonObject, *, later_wins: bool) -> JsonObject:
    new = {key: value for key, value in later.items() if later_wins or earlier.get(key) is None}
    return {**earlier, **new}


def _affinity(earlier: JsonObject, later: JsonObject, *, later_wins: bool) -> JsonObject:
    """By kind (nodeAffinity, ...), and in it by list; a list is never mixed with another."""
    both = {
        kind: _by_key(earlier[kind], lists, later_wins=later_wins)
        for kind, lists in later.items()
        if earlier.get(kind)
    }
    return {**earlier, **later, **both}


def _items_by(key: Callable[[JsonObject], Hashable]) -> Join:
    def join(
        earlier: Sequence[JsonObject], later: Sequence[JsonObject], *, later_wins: bool
    ) -> list[JsonObject]:
        own = {key(item): item for item in later}
        known = {key(item) for item in earlier}
        kept = [own.get(key(item), item) if later_wins else item for item in earlier]
        return [*kept, *(item for item in later if key(item) not in known)]

    return join


def _tolerations(
    earlier: Sequence[Toleration], later: Sequence[Toleration], *, later_wins: bool
) -> list[Toleration]:
    """All of both, none twice.

    Eviction takes the first toleration that matches a taint, and its seconds: where the two differ
    in the seconds of some taint, those that win stand first.
    """
    if not later_wins or not any(_other_seconds(one, two) for one in earlier for two in later):
        return _appended(earlier, later)
    return _appended(later, earlier)


def _appended(first: Sequence[Toleration], then: Sequence[Toleration]) -> list[Toleration]:
    known = {normal(toleration).reach for toleration in first}
    return [*first, *(each for each in then if normal(each).reach not in known)]


def _other_seconds(one: Toleration, other: Toleration) -> bool:
    """Whether some taint is tolerated by both, not for the same time."""
    return one.get("tolerationSeconds") != other.get("tolerationSeconds") and overlaps(one, other)


_JOINS: Final[Mapping[str, Join]] = {
    **dict.fromkeys(MAPS, _by_key),
    "affinity": _affinity,
    "tolerations": _tolerations,
    "topologySpreadConstraints": _items_by(
        lambda each: (each.get("topologyKey"), each.get("whenUnsatisfiable"))
    ),
    "capacity": _items_by(lambda each: each["class"]),
}
