"""One object of the cluster by its kind and name, or why it cannot be had, with the cure."""

from __future__ import annotations

import difflib
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from webhook.errors import ClusterError, FairleadError
from webhook.workloads.object import answered

if TYPE_CHECKING:
    from webhook.cli.live.kinds import Served
    from webhook.kube.client import Client
    from webhook.workloads.object import Object


class NoSuchObject(FairleadError):
    """There is no such object, or it may not be read; the text has the cure."""


async def find(client: Client, served: Served, namespace: str, name: str) -> Object:
    """The object. Raises NoSuchObject, also if it may not be read, and ClusterError."""
    try:
        return as_object(served, await client.get(served.path(namespace, name)))
    except ClusterError as error:
        if error.status == HTTPStatus.FORBIDDEN:
            raise NoSuchObject(_forbidden(error, served, namespace)) from error
        if error.status != HTTPStatus.NOT_FOUND:
            raise
    raise NoSuchObject(await _absent(client, served, namespace, name))


def as_object(served: Served, value: dict[str, Any]) -> Object:
    """An object as it was answered, without what is known of its fields' managers.

    A pod keeps that: it tells whether its author named its node.
    """
    if served.kind != "Pod":
        metadata = {key: each for key, each in value["metadata"].items() if key != "managedFields"}
        value = {**value, "metadata": metadata}
    return answered(served.version, served.kind, value)


def _forbidden(error: ClusterError, served: Served, namespace: str) -> str:
    where = f" -n {namespace}" if namespace and served.namespaced else ""
    return (
        f"{error.words or error}; ask for the right: kubectl auth can-i get "
        f"{served.resource}{where} tells whether you have it"
    )


async def _absent(client: Client, served: Served, namespace: str, name: str) -> str:
    word = served.kind.lower()
    said = f"{word} {name}: not found in namespace {namespace}"
    here = await _names(client, served, namespace)
    if near := difflib.get_close_matches(name, [one for _, one in here], 3):
        return f"{said}. Did you mean {' or '.join(near)}?"
    elsewhere = [place for place, one in await _names(client, served, "") if one == name]
    if elsewhere:
        return f"{said}, but in {' and '.join(elsewhere[:3])}: try -n {elsewhere[0]}"
    return f"{said}. kubectl get {served.resource} -A lists all that you may see"


async def _names(client: Client, served: Served, namespace: str) -> list[tuple[str, str]]:
    """Namespaces and names, as far as they may be listed."""
    try:
        found = await client.list(
            served.path(namespace),
            lambda one: (str(one["metadata"].get("namespace", "")), str(one["metadata"]["name"])),
        )
    except ClusterError:
        return []
    return found.items
