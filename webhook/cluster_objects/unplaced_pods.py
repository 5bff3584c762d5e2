"""Live pods that have to have a stamp, and have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.api_paths import CollectionPath
from webhook.placement.label_values import expressions, selects
from webhook.placement.stamp_text import read_stamp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.kube.client import Client

    Json = Mapping[str, Any]

# The phases of pods that have finished.
_UNFINISHED: Final = ",".join(f"status.phase!={phase}" for phase in names.TERMINAL_PHASES)
# The operators of a label selector in a query.
_WRITTEN: Final = {
    "In": "{key} in ({values})",
    "NotIn": "{key} notin ({values})",
    "Exists": "{key}",
    "DoesNotExist": "!{key}",
}


class Unplaced(NamedTuple):
    """A pod of a run without a stamp."""

    namespace: str
    name: str
    created: str


async def find_unplaced(
    client: Client,
    entries: Sequence[Json],
    namespaces: Mapping[str, Mapping[str, str]],
    *,
    everywhere: bool,
) -> list[Unplaced]:
    """Return the unfinished pods that the entries select, and that have no valid stamp.

    The entries are those that should be in force, whether or not they are. `namespaces` are labels
    by name; `everywhere`: these are all namespaces. Raises ClusterError.
    """
    unplaced_pods: set[Unplaced] = set()
    for entry in entries:
        reached = {
            name
            for name, labels in namespaces.items()
            # The API server sets this label on every namespace.
            if selects(entry, "namespaceSelector", {names.NAMESPACE_NAME: name, **labels})
        }
        selector = entry.get("objectSelector") or {}
        query = {"labelSelector": selector_query(selector), "fieldSelector": _UNFINISHED}
        paths = [CollectionPath("v1", "pods", name) for name in sorted(reached)]
        # Few pods have a mark. Without a mark in the selector, nearly all would be listed.
        if everywhere and any(
            expression["operator"] in ("In", "Exists") for expression in expressions(selector)
        ):
            paths = [CollectionPath("v1", "pods")]
        for path in paths:
            pods = await client.list(path, read_pod, query=query)
            unplaced_pods.update(pod for pod in pods.items if pod and pod.namespace in reached)
    return sorted(unplaced_pods)


def selector_query(selector: Json) -> str:
    """Return a label selector in the form of a query."""
    return ",".join(
        _WRITTEN[expression["operator"]].format(
            key=expression["key"], values=",".join(expression.get("values") or ())
        )
        for expression in expressions(selector)
    )


def read_pod(pod: Json) -> Unplaced | None:
    """Return the pod if it was not placed, and has not finished."""
    metadata = pod["metadata"]
    over = (pod.get("status") or {}).get("phase") in names.TERMINAL_PHASES
    mirror = names.MIRROR_POD in (metadata.get("annotations") or {})
    if over or mirror or read_stamp(metadata) is not None:
        return None
    return Unplaced(metadata["namespace"], metadata["name"], metadata.get("creationTimestamp", ""))
