"""Who makes a live pod, and which live pods an object has made."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook.cli.live.finding import as_object
from webhook.cli.live.kinds import NoSuchKind
from webhook.errors import ClusterError
from webhook.placement.schema.syntax import is_subdomain
from webhook.sources import POD_KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webhook.cli.live.kinds import Discovery
    from webhook.kube.client import Client
    from webhook.workloads.object import Object

_OVER: Final = ("Succeeded", "Failed")


def controller_of(metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The owner that manages an object; None if nobody does."""
    owners = metadata.get("ownerReferences")
    return next((each for each in owners or () if each.get("controller")), None)


async def maker_of(client: Client, discovery: Discovery, pod: Object) -> Object | None:
    """The object that made the pod; None if there is none, or none that may be read.

    Whoever made the pod chose what its owner is called, and the API server takes any text: only
    what is a name becomes part of a path, which is read with the rights of who asks.
    """
    owner = controller_of(pod.metadata)
    if owner is None or not _is_named(owner):
        return None
    try:
        served = await discovery.by_kind(str(owner.get("apiVersion")), str(owner.get("kind")))
        if served is None:
            return None
        found = as_object(
            served, await client.get(served.path(pod.namespace, str(owner.get("name"))))
        )
    except ClusterError as error:
        if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            raise
        return None
    # One of the same name may have come after it.
    return found if found.metadata.get("uid") == owner.get("uid") else None


def _is_named(owner: Mapping[str, Any]) -> bool:
    group, _, version = str(owner.get("apiVersion")).rpartition("/")
    return all(map(is_subdomain, (group or "core", version, str(owner.get("name")))))


async def pods_of(client: Client, discovery: Discovery, source: Object) -> list[Object]:
    """The live pods that the object has made, itself or by others that it made; by name.

    Pods that are over or being deleted are left out. Raises ClusterError.
    """
    group = str(source.value.get("apiVersion") or "").rpartition("/")[0]
    uids = {source.metadata.get("uid")}
    between = dict.fromkeys(
        word for kind in POD_KINDS.get((group, source.kind), ()) for word in kind.through
    )
    for word in between:
        try:
            served = await discovery.by_word(word)
        except NoSuchKind:
            continue
        made = await client.list(served.path(source.namespace), lambda one: one["metadata"])
        uids |= {each["uid"] for each in made.items if _is_of(each, uids)}
    served = await discovery.by_word("pods")
    found = await client.list(
        served.path(source.namespace),
        lambda pod: as_object(served, pod) if _is_of(pod["metadata"], uids) else None,
    )
    live = [pod for pod in found.items if pod is not None and not _is_over(pod)]
    return sorted(live, key=lambda pod: pod.name)


def _is_of(metadata: Mapping[str, Any], uids: set[Any]) -> bool:
    owner = controller_of(metadata)
    return owner is not None and owner.get("uid") in uids


def _is_over(pod: Object) -> bool:
    phase = (pod.value.get("status") or {}).get("phase")
    return phase in _OVER or bool(pod.metadata.get("deletionTimestamp"))
