"""Environments laid over a pod template, of which the placement is the bottom layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.placement.capacity import Mode
from webhook.placement.capacity_request import Request, formatted, parse
from webhook.placement.fields import OF_PODS, says_nothing
from webhook.placement.schema.placement import PlacementModel
from webhook.run.layers import patched

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.placement.shapes import JsonObject
    from webhook.run.layers import Placement

_OF_SPEC: Final = frozenset(field.name for field in OF_PODS if field.holder == "spec")
# The fields of a pod's spec that are placement, in the order of the model.
SPEC: Final = tuple(name for name in PlacementModel.outer_names() if name in _OF_SPEC)


class Placed(NamedTuple):
    """A pod template's metadata and the placement of its spec, with environments upon them."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    spec: Mapping[str, Any]


def bottom(template: JsonObject) -> Placement:
    """The placement of a pod template, whose shape was checked.

    Raises capacity_request.InvalidRequest if its annotation of capacity cannot be read.
    """
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations = dict(metadata.get("annotations") or {})
    capacity = annotations.pop(names.CAPACITY, "")
    found = {
        "labels": metadata.get("labels"),
        "annotations": annotations,
        "capacity": [_setting(request) for request in requests(capacity)],
        **{field: spec.get(field) for field in SPEC},
    }
    return {field: value for field, value in found.items() if not says_nothing(value)}


def upon(below: Placement, layers: Iterable[PlacementModel | None]) -> Placement:
    """The placement with each layer upon the one before it."""
    for layer in layers:
        if layer is not None:
            below = patched(below, layer)
    return below


def placed(placement: Placement) -> Placed:
    """Where each field of the placement belongs in a pod; capacity is an annotation there."""
    annotations = dict(placement.get("annotations", {}))
    if capacity := placement.get("capacity"):
        annotations[names.CAPACITY] = formatted(_request(setting) for setting in capacity)
    spec = {field: placement[field] for field in SPEC if not says_nothing(placement.get(field))}
    return Placed(placement.get("labels", {}), annotations, spec)


def requests(text: str) -> tuple[Request, ...]:
    """What the annotation asks of capacity, of whatever class.

    Which classes there are the webhook knows. Raises capacity_request.InvalidRequest.
    """
    return parse(text, {entry.partition("=")[0].strip() for entry in text.split(",")})


def _setting(request: Request) -> JsonObject:
    weight = {"weight": request.weight} if request.mode.prefers else {}
    return {"class": request.class_name, "mode": request.mode.value, **weight}


def _request(setting: JsonObject) -> Request:
    given = (setting["weight"],) if "weight" in setting else ()
    return Request(setting["class"], Mode(setting["mode"]), *given)
