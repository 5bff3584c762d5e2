"""Watched collections: the classes that policies name, and nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from webhook.api_paths import NODES, CollectionPath
from webhook.cluster_objects.sharing import Sharing
from webhook.errors import NotSynced
from webhook.kube.cache import Cache, Change
from webhook.placement import nodes
from webhook.placement.pod_requests import DEVICE_CLASS
from webhook.placement.shapes import as_object
from webhook.policy.refused_pods import PATHS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webhook.kube.watches import Watch, Watches
    from webhook.placement.nodes import Node
    from webhook.placement.shapes import JsonObject

_RUNTIME: Final = "RuntimeClass"
# What the API server merges into pods.
_MERGED: Final = ("overhead", "scheduling")
_DEVICE_RESOURCE: Final = "extendedResourceName"
_FLAVOR: Final = "ResourceFlavor"
FLAVORS: Final = CollectionPath("kueue.x-k8s.io/v1beta2", "resourceflavors")
# The classes that pods and policies may name, by kind. A cluster without DRA has no DeviceClass.
CLASS_PATHS: Final = {
    **PATHS,
    DEVICE_CLASS: CollectionPath("resource.k8s.io/v1", "deviceclasses"),
}


def _keep(raw: Mapping[str, Any]) -> JsonObject:
    return {key: raw[key] for key in _MERGED if key in raw}


def _keep_device_class(raw: Mapping[str, Any]) -> JsonObject:
    return {"spec": {_DEVICE_RESOURCE: as_object(raw.get("spec")).get(_DEVICE_RESOURCE)}}


# By kind, what is kept of each; of others nothing.
_KEPT_BY_KIND: Final[Mapping[str, Callable[[Mapping[str, Any]], JsonObject]]] = {
    _RUNTIME: _keep,
    DEVICE_CLASS: _keep_device_class,
}


class ClusterClasses:
    """A cluster's classes (CLASS_PATHS), each kind watched."""

    def __init__(self, watches: Watches) -> None:
        self._watches: Mapping[str, Watch[JsonObject]] = {
            kind: watches.add(
                path,
                Cache(_KEPT_BY_KIND.get(kind, _keep)),
                required=False,
                empty_if_undefined=True,
                metadata_only=kind not in _KEPT_BY_KIND,
            )
            for kind, path in CLASS_PATHS.items()
        }

    def by_kind(self) -> Mapping[str, Mapping[str, JsonObject]]:
        """Return by kind and name what is kept of each: of a RuntimeClass its overhead and
        scheduling, of a DeviceClass its resource, of a PriorityClass nothing.

        A kind that cannot be watched now is left out; one that the cluster does not define has no
        objects.
        """
        return {
            kind: watch.cache.items()
            for kind, watch in self._watches.items()
            if watch.cache.synced and (watch.undefined or not watch.last_error)
        }

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change."""
        for watch in self._watches.values():
            watch.cache.subscribe(lambda _change: listener())


class WebhookClasses(ClusterClasses):
    """The same, and Kueue's ResourceFlavors, whose tolerations are not those of a pod's author."""

    def __init__(self, watches: Watches) -> None:
        super().__init__(watches)
        flavors = watches.add(FLAVORS, Cache(_keep_flavor), required=False)
        self._watches = {**self._watches, _FLAVOR: flavors}


def _keep_flavor(raw: Mapping[str, Any]) -> JsonObject:
    spec = as_object(raw.get("spec"))
    return {"spec": {key: spec[key] for key in ("nodeLabels", "tolerations") if key in spec}}


def value_of_default(priority_class: Mapping[str, Any]) -> int | None:
    """Return a PriorityClass's value if it is a global default; else None, so not cached."""
    if not priority_class.get("globalDefault"):
        return None
    value: int = priority_class.get("value", 0)
    return value


class PriorityClasses:
    """The default PriorityClass, from a watch."""

    def __init__(self, watches: Watches) -> None:
        self._default: str | None = None
        self.cache = Cache(value_of_default)
        self.cache.subscribe(self._choose)
        self.watch = watches.add(PATHS["PriorityClass"], self.cache)

    @property
    def default(self) -> str | None:
        """The name of the cluster's default PriorityClass; None if it has none.

        A race can create several defaults; the Priority plugin uses the one with the lowest value.
        Raises NotSynced before the first list.
        """
        if not self.cache.synced:
            raise NotSynced("the cluster's default PriorityClass is not known yet")
        return self._default

    def _choose(self, _: Change[int]) -> None:
        priorities = self.cache.items()
        self._default = min(priorities, key=lambda name: (priorities[name], name), default=None)


# The size of a list page. A node has about 20 KB of JSON, most of it its list of images. A page of
# 500 would take more memory than the cache of 5,000 nodes.
_PAGE: Final = 50


class NodeView:
    """The nodes' labels, taints, cordons and allocatable resources, from a watch.

    `version` rises with each change of a cached field; heartbeats do not count. Callers must not
    keep a node for long, because outdated nodes do not share memory.
    """

    def __init__(self, watches: Watches) -> None:
        self._sharing = Sharing()
        self.version = 0
        self._tuple: tuple[Node, ...] | None = None
        self.cache = Cache(self._keep)
        self.cache.subscribe(self._changed)
        self.watch = watches.add(NODES, self.cache, required=False, page_size=_PAGE)

    def nodes(self) -> Sequence[Node] | None:
        """Return all nodes, by name; None before the first list. The same object until a change.

        Nodes that cannot be parsed are left out.
        """
        if not self.cache.synced:
            return None
        if self._tuple is None:
            node_by_name = self.cache.items()
            self._tuple = tuple(node_by_name[name] for name in sorted(node_by_name))
        return self._tuple

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change of a node, also for each node of the first list."""
        self.cache.subscribe(lambda _change: listener())

    def trouble(self) -> str:
        """Return why the view may differ from the cluster; "" if it does not."""
        return self.watch.trouble()

    def _keep(self, raw: dict[str, Any]) -> Node:
        return self._sharing.shared(nodes.parse_node(raw))

    def _changed(self, _: Change[Node]) -> None:
        self.version += 1
        self._tuple = None
