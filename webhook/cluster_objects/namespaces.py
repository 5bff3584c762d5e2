"""The labels of namespaces, from a watch or a direct read."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from webhook.api_paths import NAMESPACES, check_namespace
from webhook.errors import ClusterError, InvalidName, NotSynced
from webhook.kube.cache import Cache
from webhook.kube.rate_limit import Pace
from webhook.kube.watches import LONGEST_SILENCE
from webhook.placement.plugin_tolerations import AnnotatedLabels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.api_paths import ObjectPath
    from webhook.kube.client import Client
    from webhook.kube.watches import Watches

# Seconds without a message from the API server after which the cache is not used. A silent watch
# ends, and the list that follows refreshes the cache if the server answers.
_BELIEVED: Final = LONGEST_SILENCE + 15.0
# Seconds for which a live answer is shared by all callers for the same namespace.
_FRESH: Final = 1.0
# Minimum seconds between two reads of one namespace for callers that need a fresh one.
_APART: Final = 0.5
# A read in progress; its result is the labels, or why they are unknown.
_Read: TypeAlias = "asyncio.Task[Mapping[str, str] | str]"
# Maximum live reads per second in total, because any client may send forged reviews.
_RATE: Final = 20.0
_BURST: Final = 40


def labels_of(namespace: Mapping[str, Any]) -> Mapping[str, str]:
    """Return a Namespace object's labels, with the only annotation that is cached."""
    metadata = namespace["metadata"]
    return AnnotatedLabels.of(metadata.get("labels") or {}, metadata.get("annotations"))


class Namespaces:
    """Labels by namespace, from a watch.

    `timeout` limits a live read, in seconds; it is short, because a pod's creation waits for it.
    """

    def __init__(
        self,
        watches: Watches,
        *,
        timeout: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cache = Cache(labels_of, clock=clock)
        self.watch = watches.add(NAMESPACES, self.cache)
        self._client = watches.client
        self._clock = clock
        self._timeout = timeout
        # Reads in progress, or answered less than _FRESH seconds ago; each with its start time.
        self._reads: dict[str, tuple[float, _Read]] = {}
        self._pace = Pace(_RATE, _BURST)

    def peek(self, name: str) -> Mapping[str, str] | None:
        """Return the labels from the cache; None if the namespace is not cached.

        The result is also None while the watch has been silent for too long.
        """
        age = self.cache.age()
        return self.cache.get(name) if age is not None and age <= _BELIEVED else None

    async def labels(self, name: str) -> Mapping[str, str]:
        """Return the labels; read them from the API if the namespace is not cached.

        Raises NotSynced if they cannot be determined. They are never guessed, because with wrong
        labels other policies would match. A 404 raises too: the API server creates a pod only in an
        existing namespace, so the answer is outdated.
        """
        labels = self.peek(name)
        return await self.live(name) if labels is None else labels

    async def live(self, name: str, *, fresh: bool = False) -> Mapping[str, str]:
        """Read the labels from the API server, at most a second ago. Raises NotSynced.

        With `fresh`, the read starts after this call, for callers that know of a recent change.
        Callers for one namespace share an answer, and reads are rate limited.
        """
        called_at = self._clock()
        shared_read = self._reads.get(name)
        if shared_read and fresh:
            await asyncio.sleep(max(0.0, shared_read[0] + _APART - called_at))
            # Another caller that waited may have started a read that serves all.
            later = self._reads.get(name)
            shared_read = (
                later if later and later[0] >= called_at and later is not shared_read else None
            )
        if shared_read is None:
            shared_read = self._begin(name)
        # The cancellation of one request must not cancel the shared read.
        labels = await asyncio.shield(shared_read[1])
        if isinstance(labels, str):
            raise NotSynced(labels)
        return labels

    def _begin(self, name: str) -> tuple[float, _Read]:
        now = self._clock()
        if not self._pace.passes(now):
            raise NotSynced(f"namespace {name}: too many namespaces are asked for at once")
        read = asyncio.create_task(self._read(name))
        begun = self._reads[name] = now, read
        read.add_done_callback(lambda _: self._done(name, begun))
        return begun

    async def _read(self, name: str) -> Mapping[str, str] | str:
        """Return the labels, or why they are unknown.

        An error would refer to the frames of the callers, which refer to this read: such a cycle
        keeps each large review until the next collection of garbage.
        """
        try:
            raw = await self._get(NAMESPACES.path_of(check_namespace(name)))
        except InvalidName:
            return f"namespace {name!r}: no namespace can have that name"
        except ClusterError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return f"namespace {name}: the API server does not know it yet"
            return f"namespace {name}: its labels are unknown: {error}"
        if raw.get("kind") != "Namespace":
            return f"namespace {name}: the API server answered with something else"
        labels = labels_of(raw)
        self.cache.offer(name, labels, str(raw["metadata"].get("resourceVersion", "")))
        return labels

    async def _get(self, path: ObjectPath) -> dict[str, Any]:
        # If a watch has stalled, the pooled connection is probably dead too, so try twice.
        try:
            return await self._client.get(path, timeout=self._timeout / 2)
        except ClusterError as error:
            if error.status is not None:
                raise
            return await self._client.get(path, timeout=self._timeout / 2)

    def _done(self, name: str, read: tuple[float, _Read]) -> None:
        # Retrieve the exception, or asyncio reports it if all callers were cancelled.
        task = read[1]
        if task.cancelled() or task.exception() is not None or isinstance(task.result(), str):
            self._forget(name, read)
        else:
            asyncio.get_running_loop().call_later(_FRESH, self._forget, name, read)

    def _forget(self, name: str, read: tuple[float, _Read]) -> None:
        if self._reads.get(name) is read:
            del self._reads[name]


async def read_namespace(client: Client, name: str) -> dict[str, Any]:
    """Return the Namespace object. Raises ClusterError, without a status if it does not exist."""
    namespace = await client.find(NAMESPACES.path_of(check_namespace(name)))
    if namespace is None:
        raise ClusterError(f"there is no namespace {name}; see kubectl get namespaces")
    return namespace
