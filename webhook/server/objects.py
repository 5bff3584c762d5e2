"""Facts about the objects that make pods, read from the API server and remembered."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from webhook.api_paths import CollectionPath
from webhook.errors import ClusterError
from webhook.kube.rate_limit import Pace
from webhook.recent import Recent
from webhook.workloads.object import ANSWERED, Object
from webhook.workloads.template_search import pod_templates

if TYPE_CHECKING:
    from collections.abc import Callable

    from webhook.api_paths import ObjectPath
    from webhook.kube.client import Client
    from webhook.sources.marks import ObjectRef
    from webhook.sources.table import SourceTable

# Seconds for one read. A pod waits for it, and the API server waits three for the webhook.
_PATIENCE: Final = 0.5
# Seconds for which an answer holds, and a failure. Roles of an object do not change: these kinds
# are immutable there, or their pods are made again.
_KEPT: Final = 60.0
_KEPT_FAILURE: Final = 5.0
_REMEMBERED: Final = 1024
# Reads per second in total, because any author may name any object.
_RATE: Final = 20.0
_BURST: Final = 40


class MakingObjects:
    """Whether objects have pods that lead. Concurrent callers for one object share a read."""

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._pace = Pace(_RATE, _BURST)
        # By path: when the answer ends, and the answer.
        self._known: Recent[ObjectPath, tuple[float, bool | ClusterError]] = Recent(_REMEMBERED)
        self._reads: dict[ObjectPath, asyncio.Task[bool]] = {}

    async def led(self, namespace: str, ref: ObjectRef, name: str, sources: SourceTable) -> bool:
        """Return True if the object has a pod that leads by its role. Raises ClusterError."""
        path = _path(namespace, ref, name, sources)
        known = self._known.get(path)
        if known and self._clock() < known[0]:
            if isinstance(known[1], ClusterError):
                raise known[1]
            return known[1]
        read = self._reads.get(path)
        if read is None:
            if not self._pace.passes(self._clock()):
                raise ClusterError("too many objects are asked for at once")
            read = self._reads[path] = asyncio.create_task(self._read(path, sources))
            # Retrieve the exception, or asyncio reports it if all callers were cancelled.
            read.add_done_callback(lambda done: done.cancelled() or done.exception())
        # The cancellation of one request must not cancel the shared read.
        return await asyncio.shield(read)

    async def _read(self, path: ObjectPath, sources: SourceTable) -> bool:
        try:
            async with asyncio.timeout(_PATIENCE):
                found = await self._client.get(path)
            templates = pod_templates(Object(ANSWERED, found), sources=sources)
            led = any(each.led for each in templates)
            self._known.put(path, (self._clock() + _KEPT, led))
            return led
        except (ClusterError, TimeoutError) as error:
            failure = ClusterError(str(error) or f"no answer in {_PATIENCE} s")
            self._known.put(path, (self._clock() + _KEPT_FAILURE, failure))
            raise failure from error
        finally:
            del self._reads[path]


def _path(namespace: str, ref: ObjectRef, name: str, sources: SourceTable) -> ObjectPath:
    """Return the object's path in the API. Raises ClusterError if it can have none."""
    group, _, _ = ref.api_version.rpartition("/")
    resources = [each.resource for each in sources.pod_kinds.get((group, ref.kind), ())]
    if not any(resources):
        raise ClusterError("there can be no such object")
    return CollectionPath(ref.api_version, max(resources), namespace).path_of(name)
