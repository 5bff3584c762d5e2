"""What becomes of a document: the parts of a Run that are told apart only later."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webhook.convert.polyaxon.draft import Draft
    from webhook.convert.polyaxon.item import Item


@dataclass
class Made:
    """spec: of the Run. name, namespace, description: as the document has them, if it does.

    replicas: the section that describes the replicas, for what is wrong with them as a whole.
    """

    spec: dict[str, Draft] = field(default_factory=dict)
    name: Item | None = None
    namespace: Item | None = None
    description: Item | None = None
    replicas: Item | None = None
