"""Watches the objects that hold and publish certificates, to know at once that one has changed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from webhook.kube.named import Named

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from webhook.controller.certificates.places import Installation
    from webhook.kube.client import Client


async def watch(
    client: Client, installation: Installation, changed: Callable[[], None]
) -> NoReturn:
    """Call `changed` whenever one of the objects has, until cancelled.

    Each is watched by its name, so that a right by resourceNames is enough. Nothing of it is kept
    but its version: the authority's key must not lie about in a cache.
    """
    objects = [
        (installation.secrets, installation.authority),
        (installation.secrets, installation.serving),
        *((place.collection, place.name) for place in installation.places),
    ]
    async with asyncio.TaskGroup() as group:
        for collection, name in objects:
            watched = Named(client, collection, name, _version)
            watched.subscribe(lambda _: changed())
            group.create_task(watched.run())
    raise AssertionError("reflectors run until they are cancelled")


def _version(seen: dict[str, Any]) -> str:
    return str(seen["metadata"]["resourceVersion"])
