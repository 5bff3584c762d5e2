"""Leases of an API server whose network does what a test wants of it, on a clock that jumps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from webhook.errors import ClusterError
from webhook.kube.client import Client

COLLECTION = "/apis/coordination.k8s.io/v1/namespaces/here/leases"


@dataclass(frozen=True)
class Fate:
    """What becomes of one request: seconds on the way there and back, or that it is lost there."""

    there: float = 0.0
    back: float = 0.0
    lost: bool = False
    unheard: bool = False


@dataclass
class Leases:
    """The API server's own: optimistic locking by version, nothing else."""

    stored: dict[str, Any] | None = None
    versions: int = 0
    writes: list[str] = field(default_factory=list)

    @property
    def holder(self) -> str:
        return str(self.stored["spec"]["holderIdentity"]) if self.stored else ""

    def create(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if self.stored is not None:
            raise ClusterError("taken", status=409, reason="AlreadyExists")
        return self._store(body["metadata"], body["spec"])

    def patch(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if self.stored is None:
            raise ClusterError("absent", status=404, reason="NotFound")
        current = self.stored["metadata"]
        if body["metadata"]["resourceVersion"] != current["resourceVersion"]:
            raise ClusterError("changed meanwhile", status=409, reason="Conflict")
        return self._store(current, body["spec"])

    def _store(self, metadata: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
        self.versions += 1
        self.writes.append(spec["holderIdentity"])
        version = {**metadata, "resourceVersion": str(self.versions)}
        self.stored = {"metadata": version, "spec": dict(spec)}
        return self.stored


@dataclass
class Line:
    """One elector's connection; `fate` is asked at each request."""

    leases: Leases
    fate: Callable[[], Fate] = Fate
    requests: int = 0
    late: set[asyncio.Task[Any]] = field(default_factory=set)

    def client(self) -> Client:
        return cast("Client", self)

    async def find(self, path: str) -> Any:
        assert path == f"{COLLECTION}/the-lease"
        return await self._carry(lambda: self.leases.stored)

    async def create(self, path: str, body: Mapping[str, Any]) -> Any:
        assert (path, body["metadata"]) == (COLLECTION, {"name": "the-lease"})
        return await self._carry(lambda: self.leases.create(body))

    async def patch(self, path: str, body: Mapping[str, Any], kind: str) -> Any:
        assert (path, kind) == (f"{COLLECTION}/the-lease", "merge")
        return await self._carry(lambda: self.leases.patch(body))

    async def _carry(self, done: Callable[[], Any]) -> Any:
        self.requests += 1
        fate = self.fate()

        async def there() -> Any:
            await asyncio.sleep(fate.there)
            return done()

        if fate.lost:
            await asyncio.sleep(fate.there)
            raise ClusterError("connection refused")
        # What is on its way arrives, whether its sender waits for it or not.
        going = asyncio.create_task(there())
        self.late.add(going)
        answer = await asyncio.shield(going)
        await asyncio.sleep(fate.back)
        if fate.unheard:
            raise ClusterError("connection reset")
        return answer

    async def settle(self) -> None:
        for going in self.late:
            with suppress(ClusterError):
                await going
