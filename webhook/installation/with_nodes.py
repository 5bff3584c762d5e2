"""The manifests as they are where the webhook watches nodes: manifests/components/nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.installation.arguments import with_argument
from webhook.installation.from_files import WEBHOOK
from webhook.installation.kinds import in_order
from webhook.installation.overlays import rights_to_nodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.installation.kinds import Key

    Json = dict[str, Any]

NODES: Final = "--nodes"


def with_nodes(objects: Mapping[Key, Json]) -> dict[Key, Json]:
    """The objects for a webhook that watches nodes: its argument, and the right to do so."""
    told = {WEBHOOK: with_argument(objects[WEBHOOK], NODES)}
    return in_order([*{**objects, **told}.values(), *rights_to_nodes()])
