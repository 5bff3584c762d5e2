"""What the pod's author asks of capacity classes, settled against what the policies say of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webhook import names
from webhook.placement import node_affinity
from webhook.placement.trace import Entry

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.placement.bundle import Bundle, Demand
    from webhook.placement.capacity import CapacityClass, Mode
    from webhook.placement.capacity_request import Request
    from webhook.placement.ledger import Ledger
    from webhook.placement.settings import CapacitySetting
    from webhook.placement.shapes import Term

FIELD = f"annotations[{names.CAPACITY}]"


@dataclass(frozen=True, slots=True)
class Settled:
    """One mode that applies to the pod, whoever asked for it."""

    capacity: CapacityClass
    mode: Mode
    weight: int

    @property
    def condition(self) -> tuple[Term, ...] | None:
        """What it demands of a node's labels, or None."""
        return self.mode.condition(self.capacity)


def settled_capacity(setting: CapacitySetting) -> Settled:
    """A policy's setting, once it applies."""
    return Settled(setting.capacity, setting.mode, setting.weight)


def settle(
    bundle: Bundle,
    requests: Sequence[Request],
    classes: Mapping[str, CapacityClass],
    ledger: Ledger,
) -> list[Settled]:
    """Of the author's requests those that stand: an override on the same class decides instead."""
    result = []
    for request in requests:
        asked = Settled(classes[request.class_name], request.mode, request.weight)
        said = f"{request.class_name}={request.mode}"
        of_class = [w for w in bundle.capacity if w.capacity is asked.capacity]
        required = _opposed(asked, of_class)
        override = next((w for w in of_class if w.part == "overrides"), None)
        if required is not None:
            ledger.reject(required, f"must be {required.mode}; the annotation says {said}")
        elif override is not None:
            if (override.mode, override.weight) != (asked.mode, asked.weight):
                what = f"policy {override.policy} decides {request.class_name}={override.mode}"
                ledger.warn_pod(FIELD, "lost", what)
        elif _overruled(asked, bundle):
            ledger.warn_pod(FIELD, "dropped", f"{said} cannot stand beside the policies")
        else:
            ledger.trace.append(Entry(FIELD, "", "pod", "set", said))
            result.append(asked)
    return result


def _opposed(asked: Settled, of_class: Sequence[CapacitySetting]) -> CapacitySetting | None:
    """A requirement on the class that the request says the opposite of."""
    for setting in of_class:
        if setting.part == "requirements" and not setting.mode.compatible(asked.mode):
            return setting
    return None


def _overruled(asked: Settled, bundle: Bundle) -> bool:
    """Whether overrides leave no node to the request. A requirement's contradiction is judged."""
    terms = asked.condition
    return terms is not None and _beside(terms, bundle.demanded) and not _beside(terms, bundle.hard)


def _beside(terms: Sequence[Term], demand: Demand) -> bool:
    together = terms if demand.terms is None else node_affinity.narrowed(terms, demand.terms)
    return node_affinity.satisfiable(together, demand.selector)
