"""The kube module's caches against a real API server: metadata alone, and bookmarks.

That lists and watches go on after restarts is in test_controller_survives.py.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import TYPE_CHECKING, Any

from tests.kube.fake_api import until
from webhook.kube.cache import Cache
from webhook.kube.client import Client, connect
from webhook.kube.config import load
from webhook.kube.namespaces import PATH, labels_of
from webhook.kube.reflector import Reflector
from webhook.kube.transport import JSON
from webhook.sandbox.control_plane import ControlPlane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from webhook.sandbox.kubectl import Kubectl


@asynccontextmanager
async def running(run: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Something that goes on in the background."""
    task = asyncio.ensure_future(run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def test_a_config_map_comes_without_data_whatever_its_managed_fields(
    control_plane: ControlPlane, kubectl: Kubectl, namespace: str
) -> None:
    """In a list and in a watch; anybody may nest managedFields deeper than most parsers go."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    fields = '{"f:data":' + '{"f:a":' * 1100 + "{}" + "}" * 1101

    def body(name: str) -> dict[str, Any]:
        entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsV1": "FIELDS"}
        entry = {**entry, "fieldsType": "FieldsV1", "time": "2026-01-01T00:00:00Z"}
        metadata = {"name": name, "managedFields": [entry]}
        return {"metadata": metadata, "data": {"large": "x"}}

    def create(name: str) -> None:
        whole = json.dumps({**body(name), "apiVersion": "v1", "kind": "ConfigMap"})
        kubectl("create", "--raw", path, "-f", "-", stdin=whole.replace('"FIELDS"', fields))

    async def run() -> None:
        async with connect(control_plane.kubeconfig) as client:
            cache: Cache[frozenset[str]] = Cache(frozenset)
            reflector = Reflector(client, path, cache, metadata_only=True)
            await asyncio.to_thread(create, "listed")
            async with running(reflector.run):
                await cache.wait_synced()
                await asyncio.to_thread(create, "watched")
                await until(lambda: cache.get(f"{namespace}/watched") is not None)
                assert reflector.last_error is None
            for name in ("listed", "watched"):
                kept = cache.get(f"{namespace}/{name}")
                assert kept is not None
                assert kept <= {"kind", "apiVersion", "metadata"}

    asyncio.run(run())


class Recorded(Client):
    """A client that notes where each watch began."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(lambda: load(plane.kubeconfig, environ={}))
        self.versions: list[int] = []

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], silence: float | None, accept: str = JSON
    ) -> AsyncIterator[Callable[[], Awaitable[bytes]]]:
        self.versions.append(int(query["resourceVersion"]))
        async with super().stream(path, query=query, silence=silence, accept=accept) as read:
            yield read


class FiveSeconds(Random):
    """Makes the server end each watch after five seconds, not after five to ten minutes."""

    def randint(self, a: int, b: int) -> int:
        return min(a, b, 5)


def test_bookmarks_move_a_watch_that_sees_no_events(
    control_plane: ControlPlane,
) -> None:
    """The next watch begins where the collection is by then, and nothing is listed again."""

    async def run() -> None:
        async with Recorded(control_plane) as client:
            cache = Cache(labels_of)
            nothing = {"labelSelector": "no=such"}
            reflector = Reflector(client, PATH, cache, query=nothing, random=FiveSeconds())
            async with running(reflector.run):
                await until(lambda: len(client.versions) == 1)
                seen = await client.create(PATH, {"metadata": {"generateName": "unseen-"}})
                last = int(seen["metadata"]["resourceVersion"])
                assert client.versions[0] < last
                # The watch after the next one, if the first was near its end by then.
                await until(lambda: client.versions[-1] >= last)
                assert reflector.lists == 1
                assert dict(cache.items()) == {}

    asyncio.run(run())
