"""The labels of every namespace, from a watch; asked for where that does not tell them."""

from __future__ import annotations

import asyncio
import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook.errors import ClusterError, NotSynced
from webhook.kube.cache import Cache
from webhook.kube.pace import Pace
from webhook.kube.reflector import SILENCE, Reflector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from webhook.kube.client import Client

PATH: Final = "/api/v1/namespaces"
# A DNS label, as the API server wants it: nothing else may become part of a path.
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# Seconds without a word of the API server after which what the watch told is not gone by: a silent
# watch is broken off after SILENCE, and a list takes its place at once if there is an answer.
_BELIEVED: Final = SILENCE + 15.0
# Seconds for which a live answer serves all that ask for the same namespace.
_FRESH: Final = 1.0
# Seconds between two reads of one namespace for those whom no earlier answer serves.
_APART: Final = 0.5
# Live reads a second, whoever asks for whatever: anybody may make up reviews.
_RATE: Final = 20.0
_BURST: Final = 40


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
        self._clock = clock
        # Under way, or answered less than _FRESH ago; each with when it began.
        self._reads: dict[str, tuple[float, asyncio.Task[Mapping[str, str]]]] = {}
        self._pace = Pace(_RATE, _BURST)
        self.cache: Cache[Mapping[str, str]] = Cache(labels_of, clock=clock)
        self.reflector = Reflector(client, PATH, self.cache, clock=clock)

    async def run(self) -> None:
        """Watch until cancelled."""
        await self.reflector.run()

    def peek(self, name: str) -> Mapping[str, str] | None:
        """The labels, as far as they are known without waiting; None if the namespace is not.

        Nor is any while the watch has been silent for too long to be believed.
        """
        age = self.cache.age()
        return self.cache.get(name) if age is not None and age <= _BELIEVED else None

    async def labels(self, name: str) -> Mapping[str, str]:
        """The labels, asked for where the watch has not told of the namespace yet.

        Raises NotSynced if they cannot be known: they are never guessed, for with the wrong labels
        other policies would match. That a namespace does not exist is no answer either: no pod is
        created there, so the API server is ahead of what it told us.
        """
        known = self.peek(name)
        return await self.live(name) if known is None else known

    async def live(self, name: str, *, anew: bool = False) -> Mapping[str, str]:
        """The labels as the API server has them, at most a second ago. Raises NotSynced.

        With `anew`, as it has them now: for who knows that they have just changed. All that ask for
        one namespace share an answer, and reads have a pace, beyond which none is made.
        """
        if not _NAME.fullmatch(name):
            raise NotSynced(f"namespace {name!r}: no namespace can have that name")
        came = self._clock()
        known = self._reads.get(name)
        if known and anew:
            await asyncio.sleep(max(0.0, known[0] + _APART - came))
            # Who waited as well may have begun one that serves all.
            later = self._reads.get(name)
            known = later if later and later[0] >= came and later is not known else None
        if known is None:
            known = self._begin(name)
        # One request that goes away must not take the answer from the others.
        return await asyncio.shield(known[1])

    def _begin(self, name: str) -> tuple[float, asyncio.Task[Mapping[str, str]]]:
        now = self._clock()
        if self._pace.wait(now) > 0:
            raise NotSynced(f"namespace {name}: too many namespaces are asked for at once")
        self._pace.take(now)
        read = asyncio.create_task(self._read(name))
        begun = self._reads[name] = now, read
        read.add_done_callback(lambda _: self._done(name, begun))
        return begun

    async def _read(self, name: str) -> Mapping[str, str]:
        try:
            seen = await self._get(f"{PATH}/{name}")
        except ClusterError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                raise NotSynced(f"namespace {name}: the API server does not know it yet") from error
            raise NotSynced(f"namespace {name}: its labels are not known: {error}") from error
        if seen.get("kind") != "Namespace":
            raise NotSynced(f"namespace {name}: the API server answered with something else")
        labels = labels_of(seen)
        self.cache.offer(name, labels, str(seen["metadata"].get("resourceVersion", "")))
        return labels

    async def _get(self, path: str) -> dict[str, Any]:
        """One object. Raises ClusterError."""
        # Where a watch has stalled, a connection that was kept for calls is mostly dead too.
        try:
            return await self._client.get(path, timeout=self._timeout / 2)
        except ClusterError as error:
            if error.status is not None:
                raise
            return await self._client.get(path, timeout=self._timeout / 2)

    def _done(self, name: str, read: tuple[float, asyncio.Task[Mapping[str, str]]]) -> None:
        # Looked at, lest asyncio complain where everybody who waited has gone away.
        if read[1].cancelled() or read[1].exception() is not None:
            self._forget(name, read)
        else:
            asyncio.get_running_loop().call_later(_FRESH, self._forget, name, read)

    def _forget(self, name: str, read: tuple[float, asyncio.Task[Mapping[str, str]]]) -> None:
        if self._reads.get(name) is read:
            del self._reads[name]
