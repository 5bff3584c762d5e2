"""The owners of many live pods: the objects that created them, and the topmost controllers."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook.cli.live.live_objects import as_object, controller_of, is_named
from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.cli.live.live_objects import Discovery
    from webhook.kube.client import Client
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


class Owners:
    """The objects that created pods, and the owners above them; each kind is listed once."""

    def __init__(self) -> None:
        self._direct: dict[str, Object] = {}
        self._above: dict[str, Mapping[str, Any] | None] = {}
        self._unread: set[tuple[str, str]] = set()

    @classmethod
    async def of(
        cls,
        client: Client,
        discovery: Discovery,
        namespace: str,
        listed: Sequence[ListedPod],
        unknown: list[str],
    ) -> Owners:
        """Read them, kind by kind and upwards; kinds that may not be listed are `unknown`."""
        found = cls()
        wanted = {str(each.owner.get("uid")): each.owner for each in listed if each.owner}
        direct = True
        for _ in range(_LONGEST_CHAIN):
            kinds = {
                (str(each.get("apiVersion")), str(each.get("kind")))
                for each in wanted.values()
                if is_named(each)
            }
            above: dict[str, Mapping[str, Any]] = {}
            for kind in sorted(kinds):
                above |= await found._read(
                    client, discovery, kind, namespace, wanted, unknown, direct=direct
                )
            wanted = {uid: owner for uid, owner in above.items() if uid not in found._above}
            direct = False
            if not wanted:
                break
        return found

    async def _read(
        self,
        client: Client,
        discovery: Discovery,
        kind: tuple[str, str],
        namespace: str,
        wanted: Mapping[str, Mapping[str, Any]],
        unknown: list[str],
        *,
        direct: bool,
    ) -> dict[str, Mapping[str, Any]]:
        """Read the wanted objects of a kind; return their own owners by uid."""
        above: dict[str, Mapping[str, Any]] = {}
        try:
            served = await discovery.by_kind(*kind)
            if served is None or not served.namespaced:
                return above

            def keep(value: dict[str, Any]) -> None:
                uid = str(value["metadata"].get("uid"))
                if uid not in wanted:
                    return
                if direct:
                    self._direct[uid] = as_object(served, value)
                self._above[uid] = upper = controller_of(value["metadata"])
                if upper is not None:
                    above[str(upper.get("uid"))] = upper

            await client.list(served.path(namespace), keep)
        except ClusterError as error:
            if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
                raise
            if error.status == HTTPStatus.FORBIDDEN:
                self._unread.add(kind)
                where = f"in {namespace}" if namespace else "in all namespaces"
                scope = f"-n {namespace}" if namespace else "-A"
                unknown.append(
                    f"you may not list {kind[1]} objects {where}: whether their pods would be "
                    f"placed otherwise is unknown; kubectl auth can-i list {kind[1].lower()} "
                    f"{scope}"
                )
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
        owner = listed.owner or {}
        return (str(owner.get("apiVersion")), str(owner.get("kind"))) in self._unread

    def top(self, listed: ListedPod, pod: Object) -> Owner:
        """Return the last owner of the chain that is known."""
        owner, chain = listed.owner, 0
        if owner is None:
            return Owner("", "Pod", pod.name)
        while (upper := self._above.get(str(owner.get("uid")))) and chain < _LONGEST_CHAIN:
            owner, chain = upper, chain + 1
        group = str(owner.get("apiVersion")).rpartition("/")[0]
        return Owner(group, str(owner.get("kind")), str(owner.get("name")))
