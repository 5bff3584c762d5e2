"""The owners of live pods: the objects that created them, the topmost controllers, and back."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.errors import PassOver
from webhook.questions.live.live_objects import Discovery, as_object
from webhook.run.observation import controller_of
from webhook.workloads.stored_pod import is_over

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from webhook.workloads.object import Object

# A chain of owners is longer only if somebody has forged it.
_LONGEST_CHAIN: Final = 10


class Owner(NamedTuple):
    """The topmost controller of a pod, or the pod itself."""

    group: str
    kind: str
    name: str

    def __str__(self) -> str:
        """Return the form that kubectl takes: `deployment.apps/web`."""
        word = self.kind.lower()
        return f"{word}.{self.group}/{self.name}" if self.group else f"{word}/{self.name}"


class ListedPod(NamedTuple):
    """A live pod as JSON text, which takes less memory than the parsed object."""

    namespace: str
    text: bytes
    owner: Mapping[str, Any] | None


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
            found = as_object(served, await discovery.client.get(path))
            # Another object may have the same name now.
            return found if found.metadata.get("uid") == owner.get("uid") else None, ""
    if passed.status == HTTPStatus.FORBIDDEN:
        return None, (
            f"you may not get {kind}/{name} in {pod.namespace}, which made {pod.title}: what "
            f"its author wrote is not known for sure; kubectl auth can-i get {kind.lower()} -n "
            f"{pod.namespace}"
        )
    return None, ""


class Owners:
    """The objects that created pods, and the owners above them; each kind is listed once.

    `unread` has the apiVersion and kind of objects that may not be listed.
    """

    def __init__(self) -> None:
        self._direct: dict[str, Object] = {}
        self._above: dict[str, Mapping[str, Any] | None] = {}
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
        found = cls()
        wanted = {str(each.get("uid")): each for each in owners}
        for depth in range(_LONGEST_CHAIN):
            wanted.pop(str(below), None)
            above: dict[str, Mapping[str, Any]] = {}
            for kind in sorted(set(map(_kind_of, wanted.values()))):
                above |= await found._read(discovery, kind, namespace, wanted, direct=not depth)
            wanted = {uid: owner for uid, owner in above.items() if uid not in found._above}
            if not wanted:
                break
        return found

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
        """Return the object that created the pod; None if it does not exist."""
        owner = listed.owner or {}
        found = self._direct.get(str(owner.get("uid")))
        # Any user who may write pods may give one the uid of another namespace's object.
        if found is None or (found.namespace, found.name) != (listed.namespace, owner.get("name")):
            return None
        return found

    def is_unread(self, listed: ListedPod) -> bool:
        """Return whether the pod's owner is of a kind that may not be listed."""
        return _kind_of(listed.owner or {}) in self.unread

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


async def pods_of(discovery: Discovery, source: Object, notes: list[str]) -> list[Object]:
    """Return the live pods of an object, created by it or by objects that it created; sorted by
    name.

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
    found = await Owners.of(discovery, source.namespace, owners, below=uid)
    notes += [
        f"you may not list {kind} objects in {source.namespace}, so it is unknown whether their "
        f"pods belong to {source.title}"
        for _, kind in found.unread
    ]
    made = [
        pod
        for pod, owner in zip(pods, owners, strict=True)
        if any(each.get("uid") == uid for each in found.chain(owner))
    ]
    return sorted(made, key=lambda pod: pod.name)
