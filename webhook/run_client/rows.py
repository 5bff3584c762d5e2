"""Runs of a cluster as rows of a list."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.api_paths import kubectl_name
from webhook.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from webhook.controller.node_health import Nodes

_MOST_TEXT: Final = 300
NOT_COUNTED: Final = "?"


class Row(NamedTuple):
    """A Run in a list, as its status says.

    ready: NOT_COUNTED for a Run that its controller holds.
    no_room: why the nodes cannot run all of its replicas at one time; empty if they can, or if it
        is not known.
    """

    namespace: str
    name: str
    kind: str
    phase: str
    ready: str
    restarts: int
    disruptions: int
    message: str
    created: str
    no_room: str = ""


def row_of(raw: Mapping[str, Any]) -> Row:
    """Return the row of a raw Run."""
    # The model takes time to be imported; --help does not need it.
    from webhook.run.model import RunStatus
    from webhook.run.room import no_room_of

    metadata, spec, stored = raw["metadata"], raw.get("spec") or {}, raw.get("status")
    status = stored if isinstance(stored, dict) else {}
    held = RunStatus.read(stored).held
    kind = str(spec.get("kind") or names.DEFAULT_KIND)
    framework = spec.get("framework")
    return Row(
        namespace=metadata["namespace"],
        name=metadata["name"],
        kind=f"{kind}, {framework}" if framework else kind,
        phase=str(status.get("phase") or "Pending"),
        ready=NOT_COUNTED if held else str(status.get("replicasReady") or ""),
        restarts=_number(status.get("restarts")),
        disruptions=_number(status.get("disruptions")),
        message=cut(str(status.get("message") or ""), _MOST_TEXT),
        created=str(metadata.get("creationTimestamp") or ""),
        no_room=no_room_of(str(status.get("message") or "")),
    )


def _number(stored: object) -> int:
    return stored if isinstance(stored, int) else 0


def on_classes(observed_nodes: Nodes, nodes: Iterable[str]) -> str:
    """Return how many of these are of which capacity class, as far as they have one: `spot 3`.

    nodes: the node of each pod; empty for one without.
    """
    node_healths = (observed_nodes.get(name) for name in nodes if name)
    counts = Counter(
        health.capacity_class for health in node_healths if health and health.capacity_class
    )
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def reference(raw: Mapping[str, Any]) -> str:
    """Return the Run as kubectl names it: run.fairlead.dev/mnist."""
    return run_reference(raw["metadata"]["name"])


def run_reference(name: str) -> str:
    """Return the Run of this name as kubectl names it."""
    return kubectl_name(names.GROUP, names.RUN_KIND, name)
