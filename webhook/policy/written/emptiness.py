"""Classes of which there is no node at this moment, told to who writes them or sends pods there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webhook.policy.model import CapacityClass as CapacityClassDocument
from webhook.policy.model import PlacementPolicy
from webhook.policy.node_wishes import of_class

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from webhook.placement.capacity import CapacityClass
    from webhook.placement.nodes import Node
    from webhook.policy.findings import Finding, Path
    from webhook.policy.source import Document


def without_nodes(
    place: str,
    before: Sequence[Document],
    after: Sequence[Document],
    classes: Mapping[str, CapacityClass],
    nodes: Sequence[Node] | None,
) -> Iterator[Finding]:
    """Warnings for the object that is written at a place; none if no node is known.

    A class whose nodes are made on demand gets none, and a policy only for classes that it did not
    constrain pods to before.
    """
    written = next((each for each in after if each.file == place), None)
    if written is None or not nodes:
        return
    old = next((each for each in before if each.file == place), None)
    known = _constrained(old)
    wanted = {name: path for name, path in _constrained(written).items() if name not in known}
    if isinstance(written.model, CapacityClassDocument):
        wanted = {written.model.name: ("spec",)}
    for name, path in wanted.items():
        capacity = classes.get(name)
        if capacity and not capacity.autoscaled and not of_class(capacity, nodes):
            what = f"none of the {len(nodes)} nodes is of class {name!r} at this moment"
            yield written.finding(path, what, "warning")


def _constrained(document: Document | None) -> dict[str, Path]:
    """The classes that a policy constrains pods to, each with where it says so."""
    model = document.model if document else None
    if not isinstance(model, PlacementPolicy):
        return {}
    found: dict[str, Path] = {}
    for path, wish in model.capacity_wishes():
        if wish.mode == "Constrain":
            found.setdefault(wish.class_name, path)
    return found
