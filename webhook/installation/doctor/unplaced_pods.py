"""Pods that the webhook should have seen, by its own selectors, and that carry no stamp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.admission import stamp
from webhook.installation.doctor.cluster_state import Unplaced
from webhook.placement.label_values import holds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.kube.client import Client

    Json = Mapping[str, Any]

_OVER: Final = ("Succeeded", "Failed")
_ALL_PODS: Final = "/api/v1/pods"
# As a label selector is written in a query.
_WRITTEN: Final = {
    "In": "{key} in ({values})",
    "NotIn": "{key} notin ({values})",
    "Exists": "{key}",
    "DoesNotExist": "!{key}",
}


class _Pod(NamedTuple):
    namespace: str
    name: str
    created: str
    passed_by: bool


async def find_unplaced(
    client: Client,
    configuration: Json | None,
    namespaces: Mapping[str, Mapping[str, str]],
    *,
    everywhere: bool,
) -> list[Unplaced]:
    """Pods that are not over, and have no stamp that can be read.

    `namespaces` are labels by name; unless these are all there are, only they are looked into.
    Raises ClusterError.
    """
    if configuration is None:
        return []
    since = configuration["metadata"].get("creationTimestamp", "")
    found: set[Unplaced] = set()
    for entry in configuration.get("webhooks") or ():
        reached = {
            name
            for name, labels in namespaces.items()
            if selects(entry, "namespaceSelector", labels)
        }
        query = {"labelSelector": written(entry.get("objectSelector") or {})}
        paths = [f"/api/v1/namespaces/{name}/pods" for name in sorted(reached)]
        # Few pods carry a mark; those that carry none are nearly all.
        if everywhere and _marks(entry):
            paths = [_ALL_PODS]
        for path in paths:
            pods = await client.list(path, read_pod, query=query)
            found.update(
                Unplaced(pod.namespace, pod.name, pod.created < since)
                for pod in pods.items
                if pod.passed_by and pod.namespace in reached
            )
    return sorted(found)


def written(selector: Json) -> str:
    """A label selector as a query has it."""
    return ",".join(
        _WRITTEN[each["operator"]].format(
            key=each["key"], values=",".join(each.get("values") or ())
        )
        for each in expressions(selector)
    )


def selects(entry: Json, selector: str, labels: Mapping[str, str]) -> bool:
    """Whether this selector of the entry matches such labels."""
    return all(
        holds(each, labels.get(each["key"])) for each in expressions(entry.get(selector) or {})
    )


def expressions(selector: Json) -> Sequence[Any]:
    """All that a label selector wants, as expressions."""
    pairs = (selector.get("matchLabels") or {}).items()
    exact = [{"key": key, "operator": "In", "values": [value]} for key, value in pairs]
    return [*exact, *(selector.get("matchExpressions") or ())]


def _marks(entry: Json) -> bool:
    wanted = expressions(entry.get("objectSelector") or {})
    return any(each["operator"] in ("In", "Exists") for each in wanted)


def read_pod(pod: Json) -> _Pod:
    """What of a live pod tells whether the webhook passed it by."""
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    over = (pod.get("status") or {}).get("phase") in _OVER
    mirror = names.MIRROR_POD in annotations
    return _Pod(
        metadata["namespace"],
        metadata["name"],
        metadata.get("creationTimestamp", ""),
        stamp.read(annotations.get(names.PLACEMENT)) is None and not over and not mirror,
    )
