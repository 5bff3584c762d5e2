"""Watch Runs, the objects made for them, and nodes."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from webhook import names
from webhook.errors import ClusterError
from webhook.kube.reflector import Reflector, key_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.controller.observed_state import ObservedState
    from webhook.kube.cache import Cache
    from webhook.kube.client import Client

_logger = logging.getLogger(__name__)

# Seconds between two attempts to list after an API server error.
RETRY: Final = 1.0
# The size of a list page, which is held in memory as a whole. A node has about 20 KB of JSON, most
# of it its list of images. A malicious Run or pod may have over a megabyte.
A_PAGE: Final = 50
_OWNED: Final = {"labelSelector": f"{names.MANAGED_BY}={names.MANAGER}"}


class Informer(NamedTuple):
    """One watched collection: its cache, and the reflector that keeps the cache current."""

    resource: str
    path: str
    query: Mapping[str, str]
    cache: Cache[Any]
    reflector: Reflector[Any]

    async def catch_up(self) -> None:
        """List the collection, and apply changes that the watch has not delivered yet.

        Raises ClusterError. The watch continues; its events for older versions are ignored.
        """

        def entry(raw: dict[str, Any]) -> tuple[str, str, Any]:
            return key_of(raw), raw["metadata"]["resourceVersion"], self.cache.keep(raw)

        before = set(self.cache.items())
        listing = await self.reflector.list(entry)
        for key, version, kept in listing.items:
            self.cache.offer(key, kept, version)
        for key in before - {key for key, _, _ in listing.items}:
            self.cache.offer(key, None, listing.resource_version)


class Informers:
    """The informers of all collections, in one namespace or, if it is empty, in all namespaces.

    all: the required informers. beside: nodes and capacity classes, if they are watched. Runs are
    reconciled without these, and without the right to read them.
    """

    def __init__(
        self, client: Client, known: ObservedState, namespace: str = "", *, nodes: bool = True
    ) -> None:
        def informer(
            group: str,
            resource: str,
            cache: Cache[Any],
            query: Mapping[str, str],
            namespace: str = namespace,
            *,
            metadata_only: bool = False,
        ) -> Informer:
            path = collection(group, resource, namespace)
            reflector = Reflector(
                client, path, cache, query=query, page_size=A_PAGE, metadata_only=metadata_only
            )
            return Informer(resource, path, query, cache, reflector)

        self.all: Sequence[Informer] = (
            informer(f"/apis/{names.API_VERSION}", names.RUNS, known.runs, {}),
            informer("/api/v1", "pods", known.pods, _OWNED),
            informer("/api/v1", "services", known.services, _OWNED),
            informer("/api/v1", "configmaps", known.config_maps, _OWNED, metadata_only=True),
            informer("/apis/apps/v1", "deployments", known.deployments, _OWNED),
        )
        group, classes = f"/apis/{names.API_VERSION}", names.CAPACITY_CLASSES
        self.beside: Sequence[Informer] = (
            (
                informer("/api/v1", "nodes", known.nodes.cache, {}, ""),
                informer(group, classes, known.nodes.classes, {}, ""),
            )
            if nodes
            else ()
        )

    async def run(self) -> None:
        """Keep all caches current until cancelled."""
        async with asyncio.TaskGroup() as group:
            for informer in (*self.all, *self.beside):
                group.create_task(informer.reflector.run())

    async def catch_up(self) -> None:
        """Bring the caches at least to the state that the previous leader saw.

        Runs come first. A Run's status lists the counted pods, and drops a pod once it is deleted.
        With a newer status and an older cache of pods, a failure would be counted twice.
        """
        for informer in self.all:
            await informer.cache.wait_synced()
        for informer in self.all:
            while True:
                try:
                    await informer.catch_up()
                    break
                except ClusterError as error:
                    _logger.warning("%s cannot be listed: %s", informer.resource, error)
                    await asyncio.sleep(RETRY)


def collection(group: str, resource: str, namespace: str = "") -> str:
    """Return the path of a collection; `group` is /api/v1 or /apis/<group>/<version>."""
    return f"{group}/namespaces/{namespace}/{resource}" if namespace else f"{group}/{resource}"
