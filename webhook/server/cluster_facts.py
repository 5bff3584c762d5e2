"""Facts about the cluster that decisions need.

These are labels of namespaces, the default PriorityClass, and with --nodes the nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.cluster_objects.namespaces import Namespaces
from webhook.cluster_objects.watched_objects import NodeView, PriorityClasses
from webhook.decision.prospects import Prospects
from webhook.server.readiness import Condition, age
from webhook.shortening import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from webhook.decision.arrival import NamespaceLabels
    from webhook.decision.decision import Decision
    from webhook.kube.cache import Change
    from webhook.kube.watches import Watch, Watches
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet
    from webhook.server.readiness import Parts

# Seconds without an event after which there are no warnings about pods, because a node may have
# been added meanwhile. The API server sends a bookmark each minute.
STALE: Final = 300.0
# Characters of the condition of all watches.
_CONDITION_MAX_CHARACTERS: Final = 2000
_CURE: Final = (
    "fairlead install --nodes, the component nodes, or nodes=true of the chart grants that"
)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The facts. `reason` is for people: where they come from, if not from a cluster."""

    namespaces: NamespaceLabels
    default_priority_class: Callable[[], str | None]
    reason: str = ""


def facts_from_cluster(watches: Watches, parts: Parts) -> ClusterFacts:
    """Return the facts from the API server, which is asked again if it does not answer."""
    namespaces, classes = Namespaces(watches), PriorityClasses(watches)
    parts.add("namespaces", lambda: synced(namespaces.watch))
    parts.add("priority-classes", lambda: synced(classes.watch))
    parts.add("watches", lambda: watches_condition(watches))
    return ClusterFacts(namespaces, lambda: classes.default)


def synced(watch: Watch[Any]) -> Condition:
    """Return whether a collection's cache has been filled, how old it is, and what is wrong.

    What is not required is always ready.
    """
    # A cache that was synced once stays ready: old labels are mostly right. Another replica would
    # get no events either, and a restarted one would know nothing.
    trouble = f"; {watch.trouble()}" if watch.trouble() else ""
    if not watch.cache.synced:
        return Condition(ready=not watch.required, reason=f"not listed yet{trouble}")
    seconds = age(watch.cache)
    late = "out of date: " if seconds > names.SILENT else ""
    return Condition(ready=True, reason=f"{late}last update {seconds:.0f} s ago{trouble}")


def watches_condition(watches: Watches) -> Condition:
    """Return how all watches of the process are: always ready, because each that must be listed
    has a condition of its own."""
    troubles = watches.troubles()
    if not troubles:
        return Condition(ready=True, reason=f"{len(watches)} watches, none is failing")
    failing = f"{len(watches)} watches; {'; '.join(troubles)}"
    return Condition(ready=True, reason=cut(failing, _CONDITION_MAX_CHARACTERS))


@dataclass(frozen=True, slots=True)
class ServedNodes:
    """The nodes for decisions and warnings.

    `nodes` returns the nodes, and `node` a function that returns one by name; None while they are
    unknown or outdated.
    """

    unplaceable: Callable[[JsonObject, Decision, PolicySet], str] = lambda *_: ""
    nodes: Callable[[], Sequence[Node] | None] = lambda: None
    node: Callable[[], Callable[[str], Node | None] | None] = lambda: None


def nodes_of(
    watches: Watches, parts: Parts, devices: Callable[[], Container[str] | None] = lambda: None
) -> ServedNodes:
    """Watch the nodes of a cluster. The webhook serves also before they are known.

    `devices` returns the resources that DeviceClasses provide; None while they are not known.
    """
    view, prospects = NodeView(watches), Prospects(devices=devices)

    def changed(change: Change[Node]) -> None:
        prospects.groups.update(change.key, change.after)

    def unplaceable(pod: JsonObject, decision: Decision, policies: PolicySet) -> str:
        if not view.cache.synced or age(view.cache) > STALE:
            return ""
        return prospects.unplaceable(pod, decision, policies)

    def known() -> Sequence[Node] | None:
        return view.nodes() if age(view.cache) <= STALE else None

    def node() -> Callable[[str], Node | None] | None:
        return view.cache.get if view.cache.synced and age(view.cache) <= STALE else None

    view.cache.subscribe(changed)
    parts.add("nodes", lambda: condition(view))
    return ServedNodes(unplaceable, known, node)


def condition(view: NodeView) -> Condition:
    """Return the condition of the nodes; always ready, because no decision waits for them."""
    trouble = f"; {view.trouble()}" if view.trouble() else ""
    error = view.watch.last_error
    if error and error.status == HTTPStatus.FORBIDDEN:
        trouble += f"; {_CURE}"
    if not view.cache.synced:
        return Condition(ready=True, reason=f"not listed yet, so no warnings about nodes{trouble}")
    since = age(view.cache)
    silent = ", so no warnings about nodes" if since > STALE else ""
    count = len(view.cache.items())
    reason = f"{count} known, last update {since:.0f} s ago{silent}{trouble}"
    return Condition(ready=True, reason=reason)
