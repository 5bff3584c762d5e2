"""Environments: patch one with another by patchStrategy, and apply them to a pod template.

A field is one of PlacementModel's. Replace and IsNull treat it as a whole, including affinity and
securityContext. PostMerge and PreMerge merge within it: maps and the security context by key,
affinity by list, spread constraints by topologyKey and whenUnsatisfiable, capacity by class.
Tolerations are combined.

The functions work on JSON in Kubernetes' form, because the bottom layer is a pod template whose
unknown fields must be kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from webhook import names
from webhook.placement.capacity import Mode
from webhook.placement.capacity_request import Request, formatted, parse
from webhook.placement.fields import MAPS, OF_PODS, is_empty
from webhook.placement.schema.placement import PlacementModel
from webhook.placement.tolerations import meeting_points, normal

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from webhook.placement.shapes import JsonObject, Toleration

_OF_SPEC: Final = frozenset(field.name for field in OF_PODS if field.holder == "spec")
# The fields of a pod's spec that belong to the placement, in the order of the model.
SPEC: Final = tuple(name for name in PlacementModel.outer_names() if name in _OF_SPEC)
Placement: TypeAlias = "Mapping[str, Any]"


class Join(Protocol):
    """Merges one field of two layers; with `later_wins` the later layer wins a conflict."""

    def __call__(self, earlier: Any, later: Any, *, later_wins: bool) -> Any:
        """Return a new value; neither argument is changed."""


def patched(earlier: Placement, layer: PlacementModel) -> Placement:
    """Return `earlier` with the layer applied.

    Both are JSON with the outer names of PlacementModel's fields. Fields that the layer leaves out
    stay. An empty list or map has an effect only under Replace, where it clears the field.
    """
    strategy = layer.patch_strategy or "PostMerge"
    given = layer.model_dump(by_alias=True, exclude_none=True, exclude={"patch_strategy"})
    result = dict(earlier)
    for field, value in given.items():
        if strategy == "Replace" or is_empty(result.get(field)):
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
    """Merge by kind (nodeAffinity, ...) and then by list; lists are not merged."""
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
        later_by_key = {key(item): item for item in later}
        earlier_keys = {key(item) for item in earlier}
        kept = [later_by_key.get(key(item), item) if later_wins else item for item in earlier]
        return [*kept, *(item for item in later if key(item) not in earlier_keys)]

    return join


def _tolerations(
    earlier: Sequence[Toleration], later: Sequence[Toleration], *, later_wins: bool
) -> list[Toleration]:
    """Return all tolerations of both, without duplicates.

    Eviction uses tolerationSeconds of the first toleration that matches a taint. If the two
    differ in the seconds for some taint, those that win come first.
    """
    if not later_wins or not _differ_in_seconds(earlier, later):
        return _appended(earlier, later)
    return _appended(later, earlier)


def _appended(first: Sequence[Toleration], then: Sequence[Toleration]) -> list[Toleration]:
    reaches = {normal(toleration).reach for toleration in first}
    return [*first, *(toleration for toleration in then if normal(toleration).reach not in reaches)]


def _differ_in_seconds(earlier: Sequence[Toleration], later: Sequence[Toleration]) -> bool:
    """Return True if both tolerate some taint, for different times.

    Compares shared points (`meeting_points`) rather than pairs, because a template may have
    thousands of tolerations.
    """
    seconds: dict[Hashable, set[int | None]] = {}
    for toleration in later:
        for point in meeting_points(toleration)[0]:
            seconds.setdefault(point, set()).add(toleration.get("tolerationSeconds"))
    for toleration in earlier:
        earlier_seconds = toleration.get("tolerationSeconds")
        for point in meeting_points(toleration)[1]:
            later_seconds = seconds.get(point)
            if later_seconds is not None and (
                len(later_seconds) > 1 or earlier_seconds not in later_seconds
            ):
                return True
    return False


_JOINS: Final[Mapping[str, Join]] = {
    **dict.fromkeys(MAPS, _by_key),
    "affinity": _affinity,
    "tolerations": _tolerations,
    "topologySpreadConstraints": _items_by(
        lambda constraint: (constraint.get("topologyKey"), constraint.get("whenUnsatisfiable"))
    ),
    "capacity": _items_by(lambda request: request["class"]),
}


class Placed(NamedTuple):
    """A pod template's metadata and placement, with the environments applied."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]


def bottom(template: JsonObject) -> Placement:
    """Return the placement of a pod template whose shape is validated.

    Raises capacity_request.InvalidRequest if its capacity annotation is invalid.
    """
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations = dict(metadata.get("annotations") or {})
    capacity = annotations.pop(names.CAPACITY, "")
    settings = {
        "labels": metadata.get("labels"),
        "annotations": annotations,
        "capacity": [_setting(request) for request in requests(capacity)],
        **{field: spec.get(field) for field in SPEC},
    }
    return {field: value for field, value in settings.items() if not is_empty(value)}


def upon(below: Placement, layers: Iterable[PlacementModel | None]) -> Placement:
    """Return the placement with the layers applied in order."""
    for layer in layers:
        if layer is not None:
            below = patched(below, layer)
    return below


def placed(placement: Placement) -> Placed:
    """Return the placement as fields of a pod; there, capacity is an annotation."""
    annotations = dict(placement.get("annotations", {}))
    if capacity := placement.get("capacity"):
        annotations[names.CAPACITY] = formatted(_request(setting) for setting in capacity)
    spec = {field: placement[field] for field in SPEC if not is_empty(placement.get(field))}
    return Placed(placement.get("labels", {}), annotations, spec)


def requests(text: str) -> tuple[Request, ...]:
    """Parse the capacity annotation, with any class names.

    Only the webhook knows which classes exist. Raises capacity_request.InvalidRequest.
    """
    return parse(text, {entry.partition("=")[0].strip() for entry in text.split(",")})


def _setting(request: Request) -> JsonObject:
    weight = {"weight": request.weight} if request.mode.prefers else {}
    return {"class": request.class_name, "mode": request.mode.value, **weight}


def _request(setting: JsonObject) -> Request:
    given = (setting["weight"],) if "weight" in setting else ()
    return Request(setting["class"], Mode(setting["mode"]), *given)
