"""Watches Runs and what is made for them, and nothing else of the cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.kube.reflector import Reflector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webhook.controller.known import Known
    from webhook.kube.cache import Cache
    from webhook.kube.client import Client

_OWNED: Final = {"labelSelector": f"{names.MANAGED_BY}={names.MANAGER}"}


class Informer(NamedTuple):
    """One watched collection: its resource, what is remembered of it, and what keeps that so."""

    resource: str
    cache: Cache[Any]
    reflector: Reflector[Any]


class Informers:
    """The informers of all collections, in one namespace or, if that is empty, in all."""

    def __init__(self, client: Client, known: Known, namespace: str = "") -> None:
        self.all: Sequence[Informer] = tuple(
            Informer(
                resource,
                cache,
                Reflector(client, collection(group, resource, namespace), cache, query=query),
            )
            for group, resource, cache, query in (
                (f"/apis/{names.API_VERSION}", names.RUNS, known.runs, {}),
                ("/api/v1", "pods", known.pods, _OWNED),
                ("/api/v1", "services", known.services, _OWNED),
                ("/api/v1", "configmaps", known.config_maps, _OWNED),
                ("/apis/apps/v1", "deployments", known.deployments, _OWNED),
            )
        )

    async def run(self) -> None:
        """Keep all caches current, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in self.all:
                group.create_task(informer.reflector.run())

    async def wait_synced(self) -> None:
        """Return once every cache has been filled."""
        for informer in self.all:
            await informer.cache.wait_synced()


def collection(group: str, resource: str, namespace: str = "") -> str:
    """The path of a collection: `group` is /api/v1 or /apis/<group>/<version>."""
    return f"{group}/namespaces/{namespace}/{resource}" if namespace else f"{group}/{resource}"
