"""Watches Runs, what is made for them, and the nodes that their pods run on."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.errors import ClusterError
from webhook.kube.events import key_of
from webhook.kube.reflector import Reflector

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.controller.observed_state import ObservedState
    from webhook.kube.cache import Cache
    from webhook.kube.client import Client

_logger = logging.getLogger(__name__)

# Seconds between two attempts to list, while the API server is in trouble.
RETRY: Final = 1.0
# A node is some 20 KB of JSON, most of it the images that it holds.
NODES_A_PAGE: Final = 50
_OWNED: Final = {"labelSelector": f"{names.MANAGED_BY}={names.MANAGER}"}


class Informer(NamedTuple):
    """One watched collection: what is remembered of it, and what keeps that so."""

    resource: str
    path: str
    query: Mapping[str, str]
    cache: Cache[Any]
    reflector: Reflector[Any]

    async def catch_up(self, client: Client) -> None:
        """List the collection, and know all that the watch has not told yet. Raises ClusterError.

        The watch goes on where it is; what it tells of older versions changes nothing then.
        """

        def entry(raw: dict[str, Any]) -> tuple[str, str, Any]:
            return key_of(raw), raw["metadata"]["resourceVersion"], self.cache.keep(raw)

        before = set(self.cache.items())
        listing = await client.list(self.path, entry, query=self.query)
        for key, version, kept in listing.items:
            self.cache.offer(key, kept, version)
        for key in before - {key for key, _, _ in listing.items}:
            self.cache.offer(key, None, listing.resource_version)


class Informers:
    """The informers of all collections, in one namespace or, if that is empty, in all.

    all: those that nothing is done without. beside: nodes and capacity classes, where they are
    watched. Without them, or without the right to them, runs go on.
    """

    def __init__(
        self, client: Client, known: ObservedState, namespace: str = "", *, nodes: bool = True
    ) -> None:
        self._client = client

        def informer(
            group: str,
            resource: str,
            cache: Cache[Any],
            query: Mapping[str, str],
            namespace: str = namespace,
            page_size: int = 500,
        ) -> Informer:
            path = collection(group, resource, namespace)
            reflector = Reflector(client, path, cache, query=query, page_size=page_size)
            return Informer(resource, path, query, cache, reflector)

        self.all: Sequence[Informer] = (
            informer(f"/apis/{names.API_VERSION}", names.RUNS, known.runs, {}),
            informer("/api/v1", "pods", known.pods, _OWNED),
            informer("/api/v1", "services", known.services, _OWNED),
            informer("/api/v1", "configmaps", known.config_maps, _OWNED),
            informer("/apis/apps/v1", "deployments", known.deployments, _OWNED),
        )
        group, classes = f"/apis/{names.API_VERSION}", names.CAPACITY_CLASSES
        self.beside: Sequence[Informer] = (
            (
                informer("/api/v1", "nodes", known.nodes.cache, {}, "", NODES_A_PAGE),
                informer(group, classes, known.nodes.classes, {}, ""),
            )
            if nodes
            else ()
        )

    async def run(self) -> None:
        """Keep all caches current, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in (*self.all, *self.beside):
                group.create_task(informer.reflector.run())

    async def catch_up(self) -> None:
        """Know at least what whoever led before has known, though the watches be behind.

        Runs come first. Their status says which pods are counted, and forgets a pod once it is
        gone: beside a newer status an older cache of pods would have a failure counted twice.
        """
        for informer in self.all:
            await informer.cache.wait_synced()
        for informer in self.all:
            while True:
                try:
                    await informer.catch_up(self._client)
                    break
                except ClusterError as error:
                    _logger.warning("%s cannot be listed: %s", informer.resource, error)
                    await asyncio.sleep(RETRY)


def collection(group: str, resource: str, namespace: str = "") -> str:
    """The path of a collection: `group` is /api/v1 or /apis/<group>/<version>."""
    return f"{group}/namespaces/{namespace}/{resource}" if namespace else f"{group}/{resource}"
