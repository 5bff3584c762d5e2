"""The labels of every namespace, from a watch; those not known yet, asked for."""

from __future__ import annotations

import asyncio
import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook.errors import ClusterError, NotSynced
from webhook.kube.cache import Cache
from webhook.kube.reflector import Reflector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.kube.client import Client

PATH: Final = "/api/v1/namespaces"
# A DNS label, as the API server wants it: nothing else may become part of a path.
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def labels_of(namespace: Mapping[str, Any]) -> Mapping[str, str]:
    """A Namespace object's labels; all that is remembered of it."""
    labels: Mapping[str, str] = namespace["metadata"].get("labels") or {}
    return labels


class Namespaces:
    """Labels by namespace. `run()` keeps them current and must go on as long as they are asked for.

    `timeout` limits a live read, in seconds: short, for a pod's creation waits for it.
    """

    def __init__(
        self, client: Client, *, timeout: float = 2.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._timeout = timeout
        self._reads: dict[str, asyncio.Task[Mapping[str, str]]] = {}
        self.cache: Cache[Mapping[str, str]] = Cache(labels_of, clock=clock)
        self.reflector = Reflector(client, PATH, self.cache, clock=clock)

    async def run(self) -> None:
        """Watch until cancelled."""
        await self.reflector.run()

    def peek(self, name: str) -> Mapping[str, str] | None:
        """The labels, as far as they are known without waiting; None if the namespace is not."""
        return self.cache.get(name)

    async def labels(self, name: str) -> Mapping[str, str]:
        """The labels, asked for where the watch has not told of the namespace yet.

        Raises NotSynced if they cannot be known: they are never guessed, for with the wrong labels
        other policies would match. That a namespace does not exist is no answer either: no pod is
        created there, so the API server is ahead of what it told us.
        """
        known = self.cache.get(name)
        if known is not None:
            return known
        if not _NAME.fullmatch(name):
            raise NotSynced(f"namespace {name!r}: no namespace can have that name")
        # One read for all pods that wait for the same new namespace.
        read = self._reads.get(name)
        if read is None:
            read = self._reads[name] = asyncio.create_task(self._read(name))
            read.add_done_callback(lambda task: self._done(name, task))
        # One request that goes away must not take the answer from the others.
        return await asyncio.shield(read)

    async def _read(self, name: str) -> Mapping[str, str]:
        try:
            seen = await self._client.get(f"{PATH}/{name}", timeout=self._timeout)
        except ClusterError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                raise NotSynced(f"namespace {name}: the API server does not know it yet") from error
            raise NotSynced(f"namespace {name}: its labels are not known: {error}") from error
        if seen.get("kind") != "Namespace":
            raise NotSynced(f"namespace {name}: the API server answered with something else")
        return labels_of(seen)

    def _done(self, name: str, task: asyncio.Task[Mapping[str, str]]) -> None:
        del self._reads[name]
        if not task.cancelled():
            # Looked at, lest asyncio complain where everybody who waited has gone away.
            task.exception()
