"""The pods that another engine makes of Runs, found by their chain of owners."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api_paths import CollectionPath
from webhook.controller.informers import A_PAGE
from webhook.kube.cache import Cache
from webhook.run import observation
from webhook.run.controller_reference import controller_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from webhook.kube.cache import Change
    from webhook.kube.watches import Watch, Watches
    from webhook.run.backends.engines import PodSource
    from webhook.run.observed import OwnedPod

# Deleted pods to remember for each object until they are counted.
MOST_GONE: Final = 500


class Link(NamedTuple):
    """An object between an engine's object and its pods. parent: the uid of its controller."""

    uid: str
    parent: str
    deleted: bool


def read_link(raw: Mapping[str, Any]) -> Link | None:
    """Return the link; None for an object without a controller."""
    controller = controller_of(raw)
    if controller is None:
        return None
    metadata = raw["metadata"]
    deleted = bool(metadata.get("deletionTimestamp"))
    return Link(sys.intern(metadata["uid"]), sys.intern(controller["uid"]), deleted)


def find_root(links: Mapping[str, Link], uid: str, levels: int) -> str:
    """Return the uid at the top of the chain of owners, at most so many levels above this one.

    Owner references can be forged, also in a circle.
    """
    for _ in range(levels):
        link = links.get(uid)
        if link is None:
            return uid
        uid = link.parent
    return uid


def is_withdrawn(links: Mapping[str, Link], pod: OwnedPod, root: str, levels: int) -> bool:
    """Return True if an object between the pod and the root is deleted, or about to be."""
    uid = pod.run_uid
    for _ in range(levels):
        if uid == root:
            return False
        link = links.get(uid)
        if link is None or link.deleted:
            return True
        uid = link.parent
    return uid != root


class EnginePods:
    """The pods of one operator that belong to Runs, and those that were deleted uncounted.

    Pods are found by the uids of their owners. So a pod belongs to a Run only if the whole chain of
    owners leads to it, whatever its labels are. A pod stays with the object at the top of its chain
    when objects between them are deleted before it.
    """

    def __init__(
        self, watches: Watches, source: PodSource, namespace: str, notify: Callable[[str], None]
    ) -> None:
        """`notify` is called with the uid of an object whose pods have changed."""
        self._notify = notify
        self.cache: Cache[OwnedPod] = Cache(lambda raw: read_pod(source, raw))
        self.owners: dict[str, Cache[Link]] = {}
        self._links: dict[str, Link] = {}
        # By the uid of an owner, how many of the links have it.
        self._parents: Counter[str] = Counter()
        # By node, the keys of the pods on it.
        self._on_nodes: dict[str, set[str]] = {}
        self._levels = len(source.owners)
        # By the uid of what is at the top of the chain, as far as it is known; by the pod's key.
        self._by_root: dict[str, dict[str, OwnedPod]] = {}
        self._roots: dict[str, str] = {}
        self._gone: dict[str, dict[str, OwnedPod]] = {}
        # Uids of pods that exist.
        self._ended_first: set[str] = set()
        self.cache.subscribe(self._changed)

        def watch(path: CollectionPath, cache: Cache[Any], selector: str) -> Watch[Any]:
            query = {"labelSelector": selector}
            return watches.add(path, cache, required=False, query=query, page_size=A_PAGE)

        self.watches: list[Watch[Any]] = []
        for owner in source.owners:
            links = self.owners[owner.resource] = Cache(read_link)
            links.subscribe(self._link_changed)
            path = CollectionPath(owner.api_version, owner.resource, namespace or None)
            self.watches.append(watch(path, links, owner.selector))
        path = CollectionPath("v1", "pods", namespace or None)
        self.watches.append(watch(path, self.cache, source.selector))

    @property
    def synced(self) -> bool:
        """True once the pods, and the objects above them, are listed."""
        return self.cache.synced and all(cache.synced for cache in self.owners.values())

    def of(self, namespace: str, owner: str) -> tuple[OwnedPod, ...]:
        """Return the pods of the object with this uid."""
        prefix = f"{namespace}/"
        pods_by_key = self._by_root.get(owner, {})
        return tuple(
            self._mark(pod, owner) for key, pod in pods_by_key.items() if key.startswith(prefix)
        )

    def has_owner(self, owner: str, links: Mapping[str, Link] | None = None) -> bool:
        """Return True if the object with this uid owns one of those between it and its pods.

        links: those of a live read, if there was one. True if nothing is between.
        """
        if not self._levels:
            return True
        if links is None:
            return owner in self._parents
        return any(link.parent == owner for link in links.values())

    def owners_on(self, node: str) -> set[str]:
        """Return the uids of the objects that have pods on the node."""
        pods = filter(None, map(self.cache.get, self._on_nodes.get(node, ())))
        return {root for pod in pods if (root := self._roots.get(pod.uid))}

    def judge_live(
        self, namespace: str, pod: OwnedPod, owner: str, links: Mapping[str, Link]
    ) -> OwnedPod:
        """Return a pod from a live read, with what the watch has shown of its end."""
        cached = self.cache.get(f"{namespace}/{pod.name}")
        cached_pod = cached if cached and cached.uid == pod.uid else None
        first = pod.uid in self._ended_first or _ended_first(cached_pod, pod)
        withdrawn = is_withdrawn(links, pod, owner, self._levels)
        return replace(pod, ended_first=first, withdrawn=withdrawn)

    def gone(self, owner: str, links: Mapping[str, Link] | None = None) -> tuple[OwnedPod, ...]:
        """Return the deleted pods of the object with this uid that may not be counted yet.

        links: those of a live read, if there was one.
        """
        gone_pods = self._gone.get(owner, {}).values()
        chain = self._links if links is None else links
        return tuple(
            replace(pod, withdrawn=is_withdrawn(chain, pod, owner, self._levels))
            for pod in gone_pods
        )

    def forget_all(self, owner: str) -> None:
        """Forget all deleted pods of an object that is gone."""
        self._gone.pop(owner, None)

    def forget(self, owner: str, uids: Iterable[str]) -> None:
        """Forget deleted pods that are counted."""
        gone_by_uid = self._gone.get(owner, {})
        for uid in uids:
            gone_by_uid.pop(uid, None)
        if not gone_by_uid:
            self._gone.pop(owner, None)

    def _link_changed(self, change: Change[Link]) -> None:
        before, after = change.before, change.after
        if before and (after is None or after.uid != before.uid):
            self._set_link(before.uid, None)
        if after is not None:
            self._set_link(after.uid, after)
            root = find_root(self._links, after.uid, self._levels)
            if root != after.uid and (pods := self._by_root.pop(after.uid, None)):
                # These pods came before their owner.
                self._by_root.setdefault(root, {}).update(pods)
                self._roots.update(dict.fromkeys((pod.uid for pod in pods.values()), root))
        for link in (before, after):
            if link:
                self._notify(find_root(self._links, link.parent, self._levels))

    def _set_link(self, uid: str, link: Link | None) -> None:
        old_link = self._links.pop(uid, None)
        if old_link:
            self._parents[old_link.parent] -= 1
            if not self._parents[old_link.parent]:
                del self._parents[old_link.parent]
        if link:
            self._links[uid] = link
            self._parents[link.parent] += 1

    def _changed(self, change: Change[OwnedPod]) -> None:
        before, after = change.before, change.after
        if before and before.node:
            keys = self._on_nodes[before.node]
            keys.discard(change.key)
            if not keys:
                del self._on_nodes[before.node]
        if after and after.node:
            self._on_nodes.setdefault(after.node, set()).add(change.key)
        same = before is not None and after is not None and after.uid == before.uid
        if after is not None and _ended_first(before if same else None, after):
            self._ended_first.add(after.uid)
        if before is not None and not same:
            self._notify(self._remember(change.key, before))
        if after is not None:
            cached_root = self._roots.get(after.uid)
            root = cached_root or find_root(self._links, after.run_uid, self._levels)
            self._roots[after.uid] = root
            self._by_root.setdefault(root, {})[change.key] = after
            self._notify(root)

    def _remember(self, key: str, pod: OwnedPod) -> str:
        """Keep a deleted pod until it is counted, unless it was deleted with its owner.

        Returns the uid at the top of its chain of owners.
        """
        root = self._roots.pop(pod.uid, pod.run_uid)
        pods = self._by_root.get(root, {})
        pods.pop(key, None)
        if not pods:
            self._by_root.pop(root, None)
        marked = self._mark(pod, root)
        self._ended_first.discard(pod.uid)
        if not marked.withdrawn or marked.ended:
            gone_by_uid = self._gone.setdefault(root, {})
            gone_by_uid[pod.uid] = marked
            if len(gone_by_uid) > MOST_GONE:
                del gone_by_uid[next(iter(gone_by_uid))]
        return root

    def _mark(self, pod: OwnedPod, root: str) -> OwnedPod:
        first = pod.uid in self._ended_first
        withdrawn = is_withdrawn(self._links, pod, root, self._levels)
        if not (first or withdrawn):
            return pod
        return replace(pod, ended_first=first, withdrawn=withdrawn)


def _ended_first(before: OwnedPod | None, pod: OwnedPod) -> bool:
    """Return True if the pod had ended before its deletion was requested.

    before: the same pod as it was seen last. The API server gives a pod that has ended no grace
    period (registry/core/pod, CheckGracefulDelete). A pod that ends because it is deleted is seen
    with its grace period before.
    """
    if not pod.ended:
        return False
    return not pod.deleted_at or (pod.half_deleted and not (before and before.deleted_at))


def read_pod(source: PodSource, raw: Mapping[str, Any]) -> OwnedPod | None:
    """Return a pod of the operator, with the uid of its controller in place of the Run's."""
    return observation.engine_pod(raw, source.role, source.index, source.containers)
