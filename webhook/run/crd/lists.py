"""Which lists of a Run are mappings by a key, and how long its lists and mappings may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from webhook.crd.lists import by, placement_lists
from webhook.placement.schema.limits import MAX_LISTED
from webhook.run.model.replica import MAX_OVERRIDES
from webhook.run.model.spec import MAX_EXIT_CODES, MAX_PORTS
from webhook.run.rendezvous.table import ROLES

if TYPE_CHECKING:
    from webhook.crd.lists import Lists

LISTS: Final[Lists] = {
    **placement_lists("Environment"),
    ("RunSpec", "replicas"): {"maxProperties": max(len(roles.known) for roles in ROLES.values())},
    ("RunSpec", "ports"): by(MAX_PORTS, "port"),
    ("RunSpec", "disruptionExitCodes"): {
        "maxItems": MAX_EXIT_CODES,
        "x-kubernetes-list-type": "set",
    },
    ("ReplicaSpec", "byIndex"): by(MAX_OVERRIDES, "index"),
    ("Resources", "claims"): by(MAX_LISTED, "name"),
    ("RunStatus", "conditions"): by(0, "type"),
}
