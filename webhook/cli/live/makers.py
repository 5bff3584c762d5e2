"""Who makes a live pod, and which live pods an object has made."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook.cli.live.finding import as_object
from webhook.errors import ClusterError
from webhook.placement.schema.syntax import is_subdomain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


async def pods_of(
    client: Client, discovery: Discovery, source: Object, notes: list[str]
) -> list[Object]:
    """The live pods that the object has made, itself or by others that it made; by name.

    Found from the pods upwards, by their owners and the owners of these, of whatever kind. Pods
    that are over or being deleted are left out. What may not be listed is noted. Raises
    ClusterError.
    """
    served = await discovery.by_word("pods")
    found = await client.list(
        served.path(source.namespace),
        lambda pod: as_object(served, pod) if controller_of(pod["metadata"]) else None,
    )
    pods = [pod for pod in found.items if pod is not None and not _is_over(pod)]
    owners = [owner for pod in pods if (owner := controller_of(pod.metadata))]
    above = await _owners_of(client, discovery, source, owners, notes)
    uid = source.metadata.get("uid")
    made = [
        pod
        for pod, owner in zip(pods, owners, strict=True)
        if uid in _chain(str(owner.get("uid")), above)
    ]
    return sorted(made, key=lambda pod: pod.name)


async def _owners_of(
    client: Client,
    discovery: Discovery,
    source: Object,
    owners: Sequence[Mapping[str, Any]],
    notes: list[str],
) -> dict[str, str]:
    """From the uid of an owner to that of its own, up to the source; kind by kind."""
    above: dict[str, str] = {}
    looked: set[tuple[str, str]] = set()
    while owners:
        wanted = {str(each.get("uid")) for each in owners} - {source.metadata.get("uid")}
        kinds = {
            (str(each.get("apiVersion")), str(each.get("kind")))
            for each in owners
            if each.get("uid") in wanted and _is_named(each)
        }
        owners = []
        for version, kind in sorted(kinds - looked):
            listed = await _of_kind(client, discovery, version, kind, source, notes)
            for metadata in listed:
                owner = controller_of(metadata)
                if owner is not None and metadata.get("uid") in wanted:
                    above[str(metadata["uid"])] = str(owner.get("uid"))
                    owners.append(owner)
        looked |= kinds
    return above


async def _of_kind(
    client: Client,
    discovery: Discovery,
    version: str,
    kind: str,
    source: Object,
    notes: list[str],
) -> Sequence[Mapping[str, Any]]:
    """The metadata of all objects of a kind beside the source; none if they may not be listed."""
    try:
        served = await discovery.by_kind(version, kind)
        if served is None or not served.namespaced:
            return []
        return (await client.list(served.path(source.namespace), lambda one: one["metadata"])).items
    except ClusterError as error:
        if error.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN):
            raise
        if error.status == HTTPStatus.FORBIDDEN:
            notes.append(
                f"you may not list {kind} objects in {source.namespace}: whether pods of theirs "
                f"are of {source.title} is not known"
            )
        return []


def _chain(uid: str, above: Mapping[str, str]) -> set[str]:
    """An owner's uid, and those of all owners above it."""
    found: set[str] = set()
    while uid and uid not in found:
        found.add(uid)
        uid = above.get(uid, "")
    return found


def _is_over(pod: Object) -> bool:
    phase = (pod.value.get("status") or {}).get("phase")
    return phase in _OVER or bool(pod.metadata.get("deletionTimestamp"))
