"""Watch Runs, the objects made for them, and nodes."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from webhook import names
from webhook.api_paths import NODES, CollectionPath
from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webhook.controller.observed_state import ObservedState
    from webhook.kube.cache import Cache
    from webhook.kube.watches import Watch, Watches

_logger = logging.getLogger(__name__)

# Seconds between two attempts to list after an API server error.
RETRY: Final = 1.0
# The size of a list page, which is held in memory as a whole. A node has about 20 KB of JSON, most
# of it its list of images. A malicious Run or pod may have over a megabyte.
A_PAGE: Final = 50
# Others write app.kubernetes.io/managed-by on what they deploy or adopt.
_OWNED: Final = {"labelSelector": names.RUN_UID}


class Informers:
    """The watches of Runs and what belongs to them, in one namespace or, if it is empty, in all.

    all: the required ones. beside: nodes and capacity classes, if they are watched. Runs are
    reconciled without these, and without the right to read them.
    """

    def __init__(
        self, watches: Watches, state: ObservedState, namespace: str = "", *, nodes: bool = True
    ) -> None:
        def informer(
            api_version: str,
            resource: str,
            cache: Cache[Any],
            query: Mapping[str, str],
            *,
            metadata_only: bool = False,
        ) -> Watch[Any]:
            return watches.add(
                CollectionPath(api_version, resource, namespace or None),
                cache,
                query=query,
                page_size=A_PAGE,
                metadata_only=metadata_only,
            )

        def cluster_wide(path: CollectionPath, cache: Cache[Any]) -> Watch[Any]:
            return watches.add(path, cache, required=False, page_size=A_PAGE)

        classes = CollectionPath(names.API_VERSION, names.CAPACITY_CLASSES)
        self.all: Sequence[Watch[Any]] = (
            informer(names.API_VERSION, names.RUNS, state.runs, {}),
            informer("v1", "pods", state.pods, _OWNED),
            informer("v1", "services", state.services, _OWNED),
            informer("v1", "configmaps", state.config_maps, _OWNED, metadata_only=True),
            informer("apps/v1", "deployments", state.deployments, _OWNED),
        )
        self.beside: Sequence[Watch[Any]] = (
            (
                cluster_wide(NODES, state.nodes.cache),
                cluster_wide(classes, state.nodes.classes),
            )
            if nodes
            else ()
        )

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
