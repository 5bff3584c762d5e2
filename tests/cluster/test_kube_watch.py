"""The kube module's caches against a real API server: lists, watches, bookmarks, restarts."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.fake_api import until
from webhook.kube.cache import Cache
from webhook.kube.client import Client, connect
from webhook.kube.config import load
from webhook.kube.namespaces import PATH, Namespaces, labels_of
from webhook.kube.reflector import Reflector
from webhook.kube.transport import JSON
from webhook.sandbox.control_plane import ControlPlane, Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
    from pathlib import Path

    from webhook.sandbox.kubectl import Kubectl

# Enough for what only stores and tells.
SMALL = Settings(components=("etcd", "kube-apiserver"))


@pytest.fixture(scope="module")
def module_plane(
    binaries: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """An API server of the module's own: it is restarted, and has a default class at times."""
    with ControlPlane(tmp_path_factory.mktemp("watched") / "state", binaries, SMALL) as plane:
        yield plane


@pytest.fixture
def plane(module_plane: ControlPlane) -> ControlPlane:
    """The same, which serves even if a test before has left it broken."""
    if "kube-apiserver" not in module_plane.pids:
        module_plane.start_component("kube-apiserver")
    module_plane.wait_for_api_server()
    return module_plane


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


def restart(plane: ControlPlane) -> None:
    """Kill the API server, and start it again."""
    plane.stop_component("kube-apiserver")
    plane.start_component("kube-apiserver")
    plane.wait_for_api_server()


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
    plane: ControlPlane,
) -> None:
    """The next watch begins where the collection is by then, and nothing is listed again."""

    async def run() -> None:
        async with Recorded(plane) as client:
            cache = Cache(labels_of)
            nothing = {"labelSelector": "no=such"}
            reflector = Reflector(client, PATH, cache, query=nothing, random=FiveSeconds())
            async with running(reflector.run):
                await until(lambda: len(client.versions) == 1)
                seen = await client.create(PATH, {"metadata": {"name": "unseen"}})
                last = int(seen["metadata"]["resourceVersion"])
                assert client.versions[0] < last
                # The watch after the next one, if the first was near its end by then.
                await until(lambda: client.versions[-1] >= last)
                assert reflector.lists == 1
                assert dict(cache.items()) == {}

    asyncio.run(run())


def test_what_was_missed_while_the_api_server_forgot_is_found_by_a_new_list(
    plane: ControlPlane,
) -> None:
    """A real 410: the server was restarted twice, with changes between that no watch can bring."""
    path = "/api/v1/namespaces/default/configmaps"

    async def run() -> None:
        online = asyncio.Event()
        online.set()
        offline_at: list[float] = []

        async def sleep(seconds: float) -> None:
            offline_at.append(seconds)
            await online.wait()

        async with connect(plane.kubeconfig) as client:
            cache: Cache[dict[str, str]] = Cache(lambda seen: seen.get("data") or {})
            for name in ("kept", "gone"):
                await client.create(path, {"metadata": {"name": name}, "data": {"x": "1"}})
            reflector = Reflector(client, path, cache, sleep=sleep)
            async with running(reflector.run):
                await until(lambda: reflector.watches == 1)
                online.clear()
                await asyncio.to_thread(restart, plane)
                await until(lambda: len(offline_at) == 1)
                await client.delete(f"{path}/gone")
                await client.patch(f"{path}/kept", {"data": {"x": "2"}}, "merge")
                await client.create(path, {"metadata": {"name": "new"}, "data": {"x": "3"}})
                await asyncio.to_thread(restart, plane)
                assert cache.get("default/gone") == {"x": "1"}
                online.set()
                await until(lambda: reflector.lists == 2)
                names = {key: value["x"] for key, value in cache.items().items() if "x" in value}
                assert names == {"default/kept": "2", "default/new": "3"}

    asyncio.run(run())


def test_a_watch_goes_on_after_the_api_server_was_away(
    plane: ControlPlane,
) -> None:
    """With its own backoff and no help, the cache is right again and stays so."""

    async def run() -> None:
        async with connect(plane.kubeconfig) as client:
            namespaces = Namespaces(client, timeout=60)
            async with running(namespaces.run):
                await namespaces.cache.wait_synced()
                await asyncio.to_thread(restart, plane)
                await client.create(PATH, {"metadata": {"name": "after", "labels": {"a": "b"}}})
                assert (await namespaces.labels("after"))["a"] == "b"
                await until(lambda: namespaces.peek("after") is not None)
                await until(lambda: namespaces.last_error is None)

    asyncio.run(run())
