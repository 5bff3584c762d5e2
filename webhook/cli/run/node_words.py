"""What a node's labels tell of its pool and its capacity, whoever the provider is."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from webhook.kube.client import Client

# Labels whose value is the name of the pool.
_POOLS: Final = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "karpenter.sh/nodepool",
    "kubernetes.azure.com/agentpool",
    "alpha.eksctl.io/nodegroup-name",
)
# Labels whose value tells whether the node can go away at any time; or those that tell it by `true`
# alone.
_CAPACITY: Final = (
    "karpenter.sh/capacity-type",
    "eks.amazonaws.com/capacityType",
    "kubernetes.azure.com/scalesetpriority",
    "app.iguazio.com/lifecycle",
)
_FLAGS: Final = {
    "cloud.google.com/gke-spot": "spot",
    "cloud.google.com/gke-preemptible": "preemptible",
}
# So many nodes are asked for one by one; for more, one list of all is less work.
_ONE_BY_ONE: Final = 12


class NodeWords(NamedTuple):
    """Empty where no label tells."""

    pool: str
    capacity: str


def words(labels: Mapping[str, str]) -> NodeWords:
    """What the labels tell. What is on demand is seldom labelled, and then not said here either."""
    pool = next((labels[key] for key in _POOLS if key in labels), "")
    flagged = [word for key, word in _FLAGS.items() if labels.get(key) == "true"]
    told = [labels[key].lower().replace("_", "-") for key in _CAPACITY if key in labels]
    return NodeWords(pool, next(iter([*flagged, *told]), ""))


async def fetch_words(client: Client, nodes: Collection[str]) -> dict[str, NodeWords]:
    """Of each of these nodes; without those that are gone, and empty if nodes may not be seen."""
    try:
        if len(nodes) > _ONE_BY_ONE:
            listed = await client.list("/api/v1/nodes", _named)
            return {name: told for name, told in listed.items if name in nodes}
        found: dict[str, NodeWords] = {}
        for name in sorted(nodes):
            try:
                found.update([_named(await client.get(f"/api/v1/nodes/{name}"))])
            except ClusterError as error:
                if error.status != HTTPStatus.NOT_FOUND:
                    raise
    except ClusterError as error:
        if error.status != HTTPStatus.FORBIDDEN:
            raise
        return {}
    return found


def _named(node: Mapping[str, Any]) -> tuple[str, NodeWords]:
    return str(node["metadata"]["name"]), words(node["metadata"].get("labels") or {})
