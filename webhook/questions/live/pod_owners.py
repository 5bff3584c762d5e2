"""The owners of live pods: the objects that created them, the topmost controllers, and back."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.api_paths import CollectionPath, kubectl_name
from webhook.errors import PassOver
from webhook.questions.live.live_objects import Discovery, as_object
from webhook.run.controller_reference import controller_of
from webhook.workloads.rollout import at_revision, kept_of
from webhook.workloads.stored_pod import is_over

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.workloads.object import Object
    from webhook.workloads.rollout import Kept

# A chain of owners is longer only if somebody has forged it.
_LONGEST_CHAIN: Final = 10


class Owner(NamedTuple):
    """The topmost controller of a pod, or the pod itself."""

    group: str
    kind: str
    name: str

    def __str__(self) -> str:
        """Return the form that kubectl takes: `deployment.apps/web`."""
        return kubectl_name(*self)


class ListedPod(NamedTuple):
    """A live pod as JSON text, which takes less memory than the parsed object."""

    namespace: str
    name: str
    text: bytes
    owner: Mapping[str, Any] | None


def _uid(listed: ListedPod) -> str:
    return str((listed.owner or {}).get("uid"))


def _kind_of(owner: Mapping[str, Any]) -> tuple[str, str]:
    return str(owner.get("apiVersion")), str(owner.get("kind"))


async def maker_of(discovery: Discovery, pod: Object) -> tuple[Object | None, str]:
    """Return the object that created the pod, None if it does not exist any more; and why it may
    not be read.

    The author of the pod chose the owner's name, and the API server accepts any text. Raises
    ClusterError.
    """
    owner = controller_of(pod.value)
    if owner is None:
        return None, ""
    version, kind = _kind_of(owner)
    name = str(owner.get("name"))
    with PassOver(HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN) as passed:
        if served := await discovery.by_kind(version, kind):
            path = served.path_of(pod.namespace, name)
            maker = as_object(served, await discovery.client.get(path))
            # Another object may have the same name now.
            if maker.metadata.get("uid") != owner.get("uid"):
                return None, ""
            kept = kept_of(maker.value)
            if kept is None or not kept.revision or not kept.keeps(pod.name):
                return maker, ""
            before = await read_revision(discovery, maker, kept)
            return before, "" if before else (
                f"{pod.title} in {pod.namespace} is made again of {kept.source}, a "
                f"ControllerRevision that you may not get: kubectl auth can-i get "
                f"controllerrevisions -n {pod.namespace}"
            )
    if passed.status == HTTPStatus.FORBIDDEN:
        return None, (
            f"you may not get {kind}/{name} in {pod.namespace}, which made {pod.title}: what "
            f"its author wrote is not known for sure; kubectl auth can-i get {kind.lower()} -n "
            f"{pod.namespace}"
        )
    return None, ""


async def read_revision(discovery: Discovery, workload: Object, kept: Kept) -> Object | None:
    """Return the workload with the template of which it makes the kept pods again; None if that may
    not be read. Raises ClusterError."""
    with PassOver(HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
        path = CollectionPath("apps/v1", "controllerrevisions", workload.namespace)
        revision = await discovery.client.get(path.path_of(kept.revision))
        return at_revision(workload, revision)
    return None


class Owners:
    """The objects that created pods, and the owners above them; each kind is listed once.

    `unread` has the apiVersion and kind of objects that may not be listed.
    """

    def __init__(self) -> None:
        self._direct: dict[str, Object] = {}
        self._above: dict[str, Mapping[str, Any] | None] = {}
        self._kept: dict[str, Kept] = {}
        self._before: dict[str, Object | None] = {}
        self.unread: dict[tuple[str, str], None] = {}

    @classmethod
    async def of(
        cls,
        discovery: Discovery,
        namespace: str,
        owners: Iterable[Mapping[str, Any]],
        below: object = None,
    ) -> Owners:
        """Read these owners, kind by kind and upwards, up to the one with the uid `below`."""
        owner_tree = cls()
        wanted = {str(owner.get("uid")): owner for owner in owners}
        for depth in range(_LONGEST_CHAIN):
            wanted.pop(str(below), None)
            above: dict[str, Mapping[str, Any]] = {}
            for kind in sorted(set(map(_kind_of, wanted.values()))):
                above |= await owner_tree._read(
                    discovery, kind, namespace, wanted, direct=not depth
                )
            wanted = {uid: owner for uid, owner in above.items() if uid not in owner_tree._above}
            if not wanted:
                break
        for uid, kept in owner_tree._kept.items():
            if kept.revision and uid in owner_tree._direct:
                before = await read_revision(discovery, owner_tree._direct[uid], kept)
                owner_tree._before[uid] = before
                if before is None:
                    owner_tree.unread["apps/v1", "ControllerRevision"] = None
        return owner_tree

    async def _read(
        self,
        discovery: Discovery,
        kind: tuple[str, str],
        namespace: str,
        wanted: Mapping[str, Mapping[str, Any]],
        *,
        direct: bool,
    ) -> dict[str, Mapping[str, Any]]:
        above: dict[str, Mapping[str, Any]] = {}
        with PassOver(HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN) as passed:
            served = await discovery.by_kind(*kind)
            if served is None or not served.namespaced:
                return above

            def keep(value: dict[str, Any]) -> None:
                uid = str(value["metadata"].get("uid"))
                if uid not in wanted:
                    return
                if kept := kept_of({**value, "apiVersion": kind[0], "kind": kind[1]}):
                    self._kept[uid] = kept
                if direct:
                    self._direct[uid] = as_object(served, value)
                self._above[uid] = upper = controller_of(value)
                if upper is not None:
                    above[str(upper.get("uid"))] = upper

            await discovery.client.list(served.path(namespace), keep)
        if passed.status == HTTPStatus.FORBIDDEN:
            self.unread[kind] = None
        return above

    def maker(self, listed: ListedPod) -> Object | None:
        """Return what created the pod, with the template of which it would be made again; None if
        it does not exist."""
        owner = listed.owner or {}
        maker = self._direct.get(_uid(listed))
        # Any user who may write pods may give one the uid of another namespace's object.
        if maker is None or (maker.namespace, maker.name) != (listed.namespace, owner.get("name")):
            return None
        return self._before.get(_uid(listed)) if self._is_of_revision(listed) else maker

    def is_unread(self, listed: ListedPod) -> bool:
        """Return whether the pod's owner, or its revision, may not be read."""
        if self._is_of_revision(listed):
            return self._before.get(_uid(listed)) is None
        return _kind_of(listed.owner or {}) in self.unread

    def _is_of_revision(self, listed: ListedPod) -> bool:
        kept = self._kept.get(_uid(listed))
        return kept is not None and bool(kept.revision) and kept.keeps(listed.name)

    def kept(self, listed: ListedPod) -> Kept | None:
        """Return why no rollout of an owner replaces the pod; None if one does, as far as known."""
        uids = (str(ancestor.get("uid")) for ancestor in self.chain(listed.owner))
        candidates = (self._kept[uid] for uid in uids if uid in self._kept)
        return next((candidate for candidate in candidates if candidate.keeps(listed.name)), None)

    def chain(self, owner: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
        """Yield an owner, and all known owners above it."""
        for _ in range(_LONGEST_CHAIN + 1):
            if owner is None:
                return
            yield owner
            owner = self._above.get(str(owner.get("uid")))

    def top(self, listed: ListedPod, pod: Object) -> Owner:
        """Return the last owner of the chain that is known."""
        chain = list(self.chain(listed.owner))
        if not chain:
            return Owner("", "Pod", pod.name)
        version, kind = _kind_of(chain[-1])
        return Owner(version.rpartition("/")[0], kind, str(chain[-1].get("name")))


async def pods_of(
    discovery: Discovery, source: Object, notes: list[str]
) -> list[tuple[Object, Object | None]]:
    """Return the live pods of an object, created by it or by objects that it created, each with
    what would make it again; None if that may not be read. Sorted by name.

    They are found by their owners and the owners of these, of any kind. Leaves out pods that have
    ended or are being deleted. Kinds that may not be listed are added to `notes`. Raises
    ClusterError.
    """
    served = await discovery.by_word("pods")
    listed = await discovery.client.list(
        served.path(source.namespace),
        lambda pod: as_object(served, pod) if controller_of(pod) else None,
    )
    pods = [pod for pod in listed.items if pod is not None and not is_over(pod.value)]
    owners = [owner for pod in pods if (owner := controller_of(pod.value))]
    uid = source.metadata.get("uid")
    owner_tree = await Owners.of(discovery, source.namespace, owners, below=uid)
    notes += [
        f"you may not list {kind} objects in {source.namespace}, so it is unknown whether their "
        f"pods belong to {source.title}"
        for _, kind in owner_tree.unread
    ]
    kept = kept_of(source.value)
    before = await read_revision(discovery, source, kept) if kept and kept.revision else source

    def again(pod: Object, owner: Mapping[str, Any]) -> Object | None:
        if kept is None or not kept.source or not kept.keeps(pod.name):
            return source
        if owner.get("uid") == uid:
            return before
        return owner_tree.maker(ListedPod(pod.namespace, pod.name, b"", owner))

    if kept and kept.source and pods:
        notes.append(
            f"{source.title} in {source.namespace}: {kept.why}, so these are made again of "
            f"{kept.source}, not from this template"
        )
    made = [
        (pod, again(pod, owner))
        for pod, owner in zip(pods, owners, strict=True)
        if any(ancestor.get("uid") == uid for ancestor in owner_tree.chain(owner))
    ]
    return sorted(made, key=lambda pair: pair[0].name)
