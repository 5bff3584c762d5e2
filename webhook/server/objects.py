"""Facts about the objects that make pods, read from the API server and remembered."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from webhook.api_paths import CollectionPath
from webhook.errors import ClusterError, PassOver
from webhook.kube.rate_limit import Pace, Paces
from webhook.placement.owner_selector import SELECTING, CountedPods, conditions_of, first_of
from webhook.recent import Recent
from webhook.workloads.object import ANSWERED, Object
from webhook.workloads.template_search import pod_templates

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from webhook.api_paths import ObjectPath
    from webhook.decision.notice import Owner
    from webhook.kube.client import Client
    from webhook.sources.marks import ObjectRef
    from webhook.sources.table import SourceTable

# Seconds for one read. A pod waits for it, and the API server waits three for the webhook.
_READ_TIMEOUT_SECONDS: Final = 0.5
# Seconds for which a failure holds, and that there is no such object.
_FAILURE_KEPT_SECONDS: Final = 5.0
_CACHED_OBJECTS: Final = 4096
# Roles of an object do not change: these kinds are immutable there, or their pods are made again.
_KEPT_ROLES: Final = 60.0
_ORDINALS_KEPT: Final = 60.0
# Reads per second in total, and at once, because any author may name any object.
_ROLES: Final = (20.0, 40)
# Each Job has a selector of its own, and so each ReplicaSet: as many as Kubernetes' controllers
# make in a busy cluster. No namespace takes more than half of them from the others.
_SELECTORS: Final = (100.0, 200)
_SELECTORS_OF_ONE: Final = (50.0, 100)
# An object may have been made again with its name. An author may also write any uid.
_SELECTORS_OF_A_NAME: Final = (0.2, 3)
# Characters of all remembered selectors. The selector of one object may have a megabyte.
_MOST_CHARACTERS: Final = 1 << 20
_FOREVER: Final = float("inf")

K = TypeVar("K", bound="Hashable")
F = TypeVar("F")


class _Unknown(NamedTuple):
    """Why a fact is unknown.

    A shared error would refer to the frames of its callers, and keep their reviews.
    """

    why: str


class _Facts(Generic[K, F]):
    """Facts that are read once. Concurrent callers for one key share a read.

    `pace` limits the reads of all callers.
    """

    def __init__(self, clock: Callable[[], float], pace: Pace) -> None:
        self._clock = clock
        self._pace = pace
        # By key: when the answer ends, and the answer.
        self._known: Recent[K, tuple[float, F | _Unknown]] = Recent(
            _CACHED_OBJECTS, _MOST_CHARACTERS
        )
        self._reads: dict[K, asyncio.Task[F | _Unknown]] = {}

    async def fact(
        self,
        key: K,
        read: Callable[[], Awaitable[tuple[F, float]]],
        may_read: Callable[[], bool] = lambda: True,
    ) -> F:
        """Return the fact. `read` returns it with the seconds for which it holds; it is called if
        `may_read` and the pace allow it. Raises ClusterError.
        """
        answer = await self._answer(key, read, may_read)
        if isinstance(answer, _Unknown):
            raise ClusterError(answer.why)
        return answer

    async def _answer(
        self,
        key: K,
        read: Callable[[], Awaitable[tuple[F, float]]],
        may_read: Callable[[], bool],
    ) -> F | _Unknown:
        now, entry = self._clock(), self._known.get(key)
        if entry and now < entry[0]:
            return entry[1]
        task = self._reads.get(key)
        if task is None:
            if not (may_read() and self._pace.passes(now)):
                return _Unknown("too many objects are asked for at once")
            task = self._reads[key] = asyncio.create_task(self._read(key, read))
            # Retrieve the exception, or asyncio reports it if all callers were cancelled.
            task.add_done_callback(lambda done: done.cancelled() or done.exception())
        # The cancellation of one request must not cancel the shared read.
        return await asyncio.shield(task)

    async def _read(self, key: K, read: Callable[[], Awaitable[tuple[F, float]]]) -> F | _Unknown:
        answer: F | _Unknown
        try:
            async with asyncio.timeout(_READ_TIMEOUT_SECONDS):
                answer, seconds = await read()
        except (ClusterError, TimeoutError) as error:
            answer = _Unknown(str(error) or f"no answer in {_READ_TIMEOUT_SECONDS} s")
            seconds = _FAILURE_KEPT_SECONDS
        finally:
            del self._reads[key]
        self._put(key, seconds, answer)
        return answer

    def _put(self, key: K, seconds: float, fact: F | _Unknown) -> None:
        self._known.put(key, (self._clock() + seconds, fact), len(repr((key, fact))))


class MakingObjects:
    """Whether objects have pods that lead, and by which selectors they count their pods."""

    def __init__(self, client: Client, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._led: _Facts[ObjectPath, bool] = _Facts(clock, Pace(*_ROLES))
        self._conditions: _Facts[tuple[ObjectPath, str], CountedPods] = _Facts(
            clock, Pace(*_SELECTORS)
        )
        self._namespaces, self._names = (
            Paces(burst, 1 / rate, _CACHED_OBJECTS)
            for rate, burst in (_SELECTORS_OF_ONE, _SELECTORS_OF_A_NAME)
        )

    async def led(self, namespace: str, ref: ObjectRef, name: str, sources: SourceTable) -> bool:
        """Return True if the object has a pod that leads by its role. Raises ClusterError."""
        path = _path(namespace, ref, name, sources)

        async def read() -> tuple[bool, float]:
            workload = Object(ANSWERED, await self._client.get(path))
            return any(
                template.led for template in pod_templates(workload, sources=sources)
            ), _KEPT_ROLES

        return await self._led.fact(path, read)

    async def counted(self, namespace: str, owner: Owner) -> CountedPods:
        """Return how an owner of one of OwnerSelector's kinds counts its pods.

        Nothing if there is no such object: then none counts the pod. Raises ClusterError.
        """
        group, _, _ = owner.api_version.rpartition("/")
        resource = SELECTING[group, owner.kind]
        with PassOver(HTTPStatus.NOT_FOUND):
            # The author of a pod may write any version of its owner.
            path = CollectionPath(f"{group}/v1", resource, namespace).path_of(owner.name)
            return await self._conditions.fact(
                (path, owner.uid),
                partial(self._read_counted, path, owner.uid, resource),
                lambda: all(
                    paces.passes(key, self._clock())
                    for paces, key in ((self._names, path), (self._namespaces, namespace))
                ),
            )
        return CountedPods()

    async def _read_counted(
        self, path: ObjectPath, uid: str, resource: str
    ) -> tuple[CountedPods, float]:
        document: dict[str, Any] = {}
        with PassOver(HTTPStatus.NOT_FOUND, HTTPStatus.FORBIDDEN) as passed:
            document = await self._client.get(path)
        if passed.status == HTTPStatus.FORBIDDEN:
            raise ClusterError(f"the webhook may not get {resource}")
        if not document or document["metadata"].get("uid") != uid:
            return CountedPods(), _FAILURE_KEPT_SECONDS
        # The API server refuses changes of the selector, but not of a StatefulSet's ordinals.
        kept = _ORDINALS_KEPT if resource == "statefulsets" else _FOREVER
        return CountedPods(conditions_of(document), first_of(document)), kept


def _path(namespace: str, ref: ObjectRef, name: str, sources: SourceTable) -> ObjectPath:
    """Return the object's path in the API. Raises ClusterError if it can have none."""
    group, _, _ = ref.api_version.rpartition("/")
    resources = [pod_kind.resource for pod_kind in sources.pod_kinds.get((group, ref.kind), ())]
    if not any(resources):
        raise ClusterError("there can be no such object")
    return CollectionPath(ref.api_version, max(resources), namespace).path_of(name)
