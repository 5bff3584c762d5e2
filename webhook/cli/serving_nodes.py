"""The view of the cluster's nodes that `fairlead serve --nodes` warns by."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook.admission.prospects import Prospects
from webhook.cli.cluster_facts import age
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from webhook.admission.decision import Decision
    from webhook.kube.cache import Change
    from webhook.kube.client import Client
    from webhook.kube.node_view import NodeView
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject
    from webhook.policy.policy_set import PolicySet
    from webhook.server.metrics import Metrics
    from webhook.server.readiness import Conditions

# Seconds without a word of the API server after which nothing is said of pods: a node may have come
# meanwhile. Between two bookmarks it is silent for a minute.
STALE: Final = 300.0
_CURE: Final = "fairlead install --nodes, or the component nodes, grants that"


@dataclass(frozen=True, slots=True)
class ServedNodes:
    """What is said of pods, what there is to tell of it, and what keeps it current.

    `known` gives the nodes themselves, and `node` what gives one by its name; None while they are
    not known, or not any more.
    """

    unplaceable: Callable[[JsonObject, Decision, PolicySet], str] = lambda *_: ""
    known: Callable[[], Sequence[Node] | None] = lambda: None
    node: Callable[[], Callable[[str], Node | None] | None] = lambda: None
    conditions: Conditions = field(default_factory=dict)
    background: tuple[Callable[[], Coroutine[Any, Any, object]], ...] = ()


def nodes_of(client: Client, metrics: Metrics) -> ServedNodes:
    """The nodes of a cluster, watched. That they are not known yet is no reason not to serve."""
    # The Kubernetes client takes its time to be imported, and without a cluster nobody needs it.
    from webhook.kube.node_view import NodeView

    view, prospects = NodeView(client), Prospects()

    def changed(change: Change[Node]) -> None:
        prospects.groups.put(change.key, change.after)

    def unplaceable(pod: JsonObject, decision: Decision, policies: PolicySet) -> str:
        if not view.cache.synced or age(view.cache) > STALE:
            return ""
        return prospects.unplaceable(pod, decision, policies)

    def known() -> Sequence[Node] | None:
        return view.nodes() if age(view.cache) <= STALE else None

    def node() -> Callable[[str], Node | None] | None:
        return view.cache.get if view.cache.synced and age(view.cache) <= STALE else None

    view.cache.subscribe(changed)
    metrics.watch_cache("nodes", lambda: age(view.cache))
    return ServedNodes(unplaceable, known, node, {"nodes": lambda: condition(view)}, (view.run,))


def condition(view: NodeView) -> Condition:
    """What is known of the nodes; always ready, for no decision waits for it."""
    trouble = f"; {view.trouble()}" if view.trouble() else ""
    error = view.reflector.last_error
    if error and error.status == HTTPStatus.FORBIDDEN:
        trouble += f"; {_CURE}"
    if not view.cache.synced:
        return Condition(ready=True, reason=f"not listed yet, so nothing is said of them{trouble}")
    since = age(view.cache)
    silent = ", so nothing is said of them" if since > STALE else ""
    known = len(view.cache.items())
    reason = f"{known} known, last heard of {since:.0f} s ago{silent}{trouble}"
    return Condition(ready=True, reason=reason)
