"""Watches the objects that hold and publish certificates, to know at once that one has changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from webhook.kube.cache import Cache
from webhook.kube.reflector import Reflector

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from webhook.controller.certificates.places import Installation
    from webhook.kube.client import Client


class _Watched(NamedTuple):
    collection: str
    name: str


async def watch(
    client: Client, installation: Installation, changed: Callable[[], None]
) -> NoReturn:
    """Call `changed` whenever one of the objects has, until cancelled.

    Each is watched by its name, so that a right by resourceNames is enough. Nothing of it is kept
    but its version: the authority's key must not lie about in a cache.
    """
    objects = [
        _Watched(installation.secrets, installation.authority),
        _Watched(installation.secrets, installation.serving),
        *(_Watched(place.collection, place.name) for place in installation.places),
    ]
    async with asyncio.TaskGroup() as group:
        for each in objects:
            cache: Cache[str] = Cache(_version)
            cache.subscribe(lambda _: changed())
            query = {"fieldSelector": f"metadata.name={each.name}"}
            group.create_task(Reflector(client, each.collection, cache, query=query).run())
    raise AssertionError("reflectors run until they are cancelled")


def _version(seen: dict[str, Any]) -> str:
    return str(seen["metadata"]["resourceVersion"])
