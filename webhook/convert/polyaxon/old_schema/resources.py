"""Resources of the old schema, `{requests, limits}` under each resource, as a container has them.

Read in polyaxon 0.x (`scheduler/spawners/templates/resources.py`) and polyaxon-schemas
(`ops/environments/resources.py`): cpu in cores, memory in MiB, gpu as nvidia.com/gpu; zero and null
count as left out. Its documentation also writes `request` and `limit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from webhook.convert.polyaxon.section import Section
from webhook.convert.polyaxon.values import want_number, want_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.convert.polyaxon.draft import Draft
    from webhook.convert.polyaxon.item import Item
    from webhook.convert.polyaxon.notes import Notes

_TPU: Final = (
    "becomes google.com/tpu, as GKE calls it today; the program and the node pool have to be for it"
)
_GPU_LIMIT: Final = "Kubernetes wants a limit for devices; it is set to the request"
_GPU_DIFFERENT: Final = "of a device, request and limit have to be equal; keep one of the two"


class Kind(NamedTuple):
    """What a resource is called in Kubernetes, and how its amount is written there."""

    name: str
    device: bool
    unit: str = ""


KINDS: Final[Mapping[str, Kind]] = {
    "cpu": Kind("cpu", device=False),
    "memory": Kind("memory", device=False, unit="Mi"),
    "gpu": Kind("nvidia.com/gpu", device=True),
    "tpu": Kind("google.com/tpu", device=True),
}


def resources(item: Item | None, notes: Notes) -> dict[str, Draft]:
    """What a container asks for: requests and limits, as far as there are any."""
    if item is None:
        return {}
    section = Section(item, notes)
    sides: dict[str, dict[str, Draft]] = {"requests": {}, "limits": {}}
    for field, kind in KINDS.items():
        if (given := section.given(field)) is None:
            continue
        if field == "tpu":
            notes.warning(given, _TPU)
        for side, amount in _amounts(given, kind, notes).items():
            sides[side][kind.name] = amount
    section.close()
    return {side: amounts for side, amounts in sides.items() if amounts}


def _amounts(item: Item, kind: Kind, notes: Notes) -> dict[str, Item]:
    section = Section(item, notes)
    found: dict[str, Item] = {}
    want: Callable[[Item, Notes], float | None] = want_whole if kind.device else want_number
    for side, shorter in (("requests", "request"), ("limits", "limit")):
        given, other = section.given(side), section.given(shorter)
        if given is not None and other is not None:
            notes.error(other, f"is {side} once more; keep one of the two", key=True)
        given = given or other
        amount = None if given is None else want(given, notes)
        if given is not None and amount:
            found[side] = given.saying(_quantity(amount, kind.unit))
    section.close()
    if kind.device and found:
        _device(found, item, notes)
    return found


def _device(found: dict[str, Item], item: Item, notes: Notes) -> None:
    """Devices cannot be overcommitted: a request needs a limit, and the same one."""
    if "limits" not in found:
        found["limits"] = found["requests"]
        notes.warning(item, _GPU_LIMIT)
    elif "requests" in found and found["requests"].value != found["limits"].value:
        notes.error(found["requests"], _GPU_DIFFERENT)


def _quantity(amount: float, unit: str) -> str:
    text = f"{amount:.6f}".rstrip("0").rstrip(".")
    return f"{text}{unit}"
