"""The kube module against a real API server: verbs, errors, credentials, metadata, bookmarks.

That lists and watches go on after restarts is in test_controller_survives.py.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from tests.cluster.etcd import compact
from tests.eventually import eventually_async
from tests.kube.fake_api import until
from tests.objects import an_object
from webhook.api_paths import NAMESPACES, ApiPath, CollectionPath
from webhook.backoff import Delays
from webhook.cluster_objects.namespaces import labels_of
from webhook.errors import ClusterError
from webhook.kube.cache import Cache
from webhook.kube.client import Client, connect
from webhook.kube.config import load
from webhook.kube.reflector import Reflector
from webhook.kube.transport import JSON
from webhook.kube.watches import Watches
from webhook.sandbox.control_plane import ControlPlane
from webhook.sandbox.kubectl import Kubectl


def config_map(name: str, **data: str) -> dict[str, Any]:
    return an_object("v1", "ConfigMap", {"name": name, "labels": {"made": "here"}}, data=data)


async def test_objects_are_created_read_patched_and_deleted(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Each verb and each kind of patch does what the API server means by it."""
    path = CollectionPath("v1", "configmaps", namespace)
    async with connect(control_plane.kubeconfig) as client:
        await client.create(path, config_map("a", x="0"), query={"dryRun": "All"})
        created = await client.create(path, config_map("a", x="1"))
        assert created["metadata"]["uid"]
        assert await client.get(path.path_of("a")) == created
        json_patch = [{"op": "replace", "path": "/data/x", "value": "2"}]
        assert (await client.patch(path.path_of("a"), json_patch, "json"))["data"] == {"x": "2"}
        merge = {"data": {"x": None, "y": "3"}}
        assert (await client.patch(path.path_of("a"), merge, "merge"))["data"] == {"y": "3"}
        label = {"metadata": {"labels": {"l": "4"}}}
        patched = await client.patch(path.path_of("a"), label, "strategic")
        assert patched["metadata"]["labels"] == {"made": "here", "l": "4"}
        mine = {"fieldManager": "test", "force": "true"}
        applied = await client.patch(path.path_of("b"), config_map("b", z="5"), "apply", query=mine)
        assert applied["data"] == {"z": "5"}
        await client.delete(
            path.path_of("a"), {"preconditions": {"uid": created["metadata"]["uid"]}}
        )
        await client.delete(path.path_of("b"))
        left = await client.list(
            path, lambda seen: seen["metadata"]["name"], query={"labelSelector": "made=here"}
        )
        assert left.items == []


def test_refusals_are_distinguished(control_plane: ControlPlane, namespace: str) -> None:
    """Absent, there already, changed meanwhile, invalid: by status and reason."""
    path = CollectionPath("v1", "configmaps", namespace)

    async def run() -> list[tuple[int | None, str]]:
        async with connect(control_plane.kubeconfig) as client:
            await client.create(path, config_map("a"))
            stale = {"metadata": {"resourceVersion": "1"}, "data": {"x": "y"}}
            attempts = [
                client.get(path.path_of("absent")),
                client.create(path, config_map("a")),
                client.patch(path.path_of("a"), stale, "merge"),
                client.create(path, config_map("No Name")),
                client.get(path, query={"resourceVersion": "nonsense"}),
            ]
            seen = []
            for attempt in attempts:
                with pytest.raises(ClusterError) as caught:
                    await attempt
                seen.append((caught.value.status, caught.value.reason))
            return seen

    assert asyncio.run(run()) == [
        (404, "NotFound"),
        (409, "AlreadyExists"),
        (409, "Conflict"),
        (422, "Invalid"),
        (400, "BadRequest"),
    ]


async def test_pages_make_the_same_list_as_one_piece(
    control_plane: ControlPlane, namespace: str
) -> None:
    """However small the pages."""
    path = CollectionPath("v1", "configmaps", namespace)
    async with connect(control_plane.kubeconfig) as client:
        for number in range(7):
            await client.create(path, config_map(f"n{number}"))
        selected = {"labelSelector": "made in (here, there)"}
        lists = [
            await client.list(
                path, lambda seen: seen["metadata"]["name"], query=selected, page_size=size
            )
            for size in (1, 3, 7, 500)
        ]
        names = [f"n{number}" for number in range(7)]
        assert [one.items for one in lists] == [names] * 4
        assert all(int(one.resource_version) > 0 for one in lists)


class PageByPage(Client):
    """A client that does something before its second page, and notes what it asked for."""

    def __init__(self, plane: ControlPlane, between: Callable[[], Awaitable[None]]) -> None:
        super().__init__(lambda: load(plane.kubeconfig, environ={}))
        self._between = between
        self.limits: list[str] = []
        self.refused: list[ClusterError] = []

    async def _fetch(
        self, method: str, path: ApiPath, *, query: Mapping[str, str] | None, **more: Any
    ) -> bytes:
        if method != "GET":
            return await super()._fetch(method, path, query=query, **more)
        self.limits.append((query or {}).get("limit", ""))
        if len(self.limits) == 2:
            await self._between()
        try:
            return await super()._fetch(method, path, query=query, **more)
        except ClusterError as error:
            self.refused.append(error)
            raise


def event(namespace: str, name: str) -> dict[str, Any]:
    """An Event: of these alone the API server keeps no cache, from which old pages could come."""
    about = {"kind": "ConfigMap", "apiVersion": "v1", "name": "a", "namespace": namespace}
    return an_object("v1", "Event", {"name": name, "labels": {"made": "here"}}) | {
        "involvedObject": about,
        "reason": "Made",
    }


MADE: Final = {"labelSelector": "made=here"}


async def test_a_list_that_expires_between_two_pages_goes_on_in_pages(
    control_plane: ControlPlane, namespace: str
) -> None:
    """What the API server says of where to go on; what came and went later is as it is by then."""
    path = CollectionPath("v1", "events", namespace)

    async def expire() -> None:
        async with connect(control_plane.kubeconfig) as other:
            for name in ("n0", "n6"):
                await other.delete(path.path_of(name))
            await other.create(path, event(namespace, "n9"))
        await asyncio.to_thread(compact, control_plane)

    async with PageByPage(control_plane, expire) as client:
        for number in range(7):
            await client.create(path, event(namespace, f"n{number}"))
        listing = await client.list(
            path, lambda seen: seen["metadata"]["name"], query=MADE, page_size=2
        )
        assert set(client.limits) == {"2"}
        assert [(each.status, bool(each.position)) for each in client.refused] == [(410, True)]
        assert listing.items == ["n0", "n1", "n2", "n3", "n4", "n5", "n9"]


async def test_a_watch_after_a_list_that_expired_comes_to_what_there_is(
    control_plane: ControlPlane, namespace: str
) -> None:
    """What the list has too much is put right by the watch, or by the next list."""
    path = CollectionPath("v1", "events", namespace)

    async def expire() -> None:
        async with connect(control_plane.kubeconfig) as other:
            await other.delete(path.path_of("n0"))
        await asyncio.to_thread(compact, control_plane)

    async with connect(control_plane.kubeconfig) as first:
        for number in range(7):
            await first.create(path, event(namespace, f"n{number}"))
    async with PageByPage(control_plane, expire) as client, Watches(client) as watches:
        cache = Cache(labels_of)
        watches.add(path, cache, query=MADE, page_size=2, delays=Delays(0.01, 0.1))
        await until(lambda: set(cache.items()) == {f"{namespace}/n{at}" for at in range(1, 7)})
        assert 410 in [each.status for each in client.refused]
        assert "" not in client.limits


async def test_an_object_that_a_converter_does_not_take_is_left_out_of_a_live_watch(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Listed or changed: it is named as long as it lasts, and all others are followed."""
    path = CollectionPath("v1", "configmaps", namespace)

    def convert(raw: dict[str, Any]) -> str:
        return str(raw["data"]["x"])

    async with connect(control_plane.kubeconfig) as client, Watches(client) as watches:
        await client.create(path, config_map("listed", y="1"))
        await client.create(path, config_map("good", x="1"))
        cache = Cache(convert)
        watch = watches.add(path, cache, query=MADE)
        await cache.wait_synced()
        assert dict(cache.items()) == {f"{namespace}/good": "1"}
        await client.patch(path.path_of("good"), {"data": {"x": None}}, "merge")
        await client.create(path, config_map("later", x="3"))
        await until(lambda: dict(cache.items()) == {f"{namespace}/later": "3"})
        assert set(cache.faults) == {f"{namespace}/listed", f"{namespace}/good"}
        await client.patch(path.path_of("good"), {"data": {"x": "2"}}, "merge")
        await client.delete(path.path_of("listed"))
        await until(lambda: cache.faults == {})
        assert dict(cache.items()) == {f"{namespace}/later": "3", f"{namespace}/good": "2"}
        assert (watch.lists, watch.errors, watch.restarts) == (1, 0, 0)


async def test_a_kind_that_the_cluster_does_not_define_is_waited_for(
    control_plane: ControlPlane,
) -> None:
    """Such as that of an engine which is not installed: by the API server's own discovery."""
    async with connect(control_plane.kubeconfig) as client, Watches(client) as watches:
        watch = watches.add(
            CollectionPath("kubeflow.org/v9", "pytorchjobs"), Cache(labels_of), required=False
        )
        needed = watches.add(CollectionPath("kubeflow.org/v9", "mpijobs"), Cache(labels_of))
        await until(lambda: watch.undefined and needed.errors > 0)
        assert (watch.trouble(), watch.cache.synced) == ("", False)
        assert "mpijobs.kubeflow.org is not installed" in needed.trouble()


async def test_a_certificate_of_another_authority_is_not_trusted(
    control_plane: ControlPlane,
) -> None:
    """Nothing is sent to such a server, and the error says why."""
    other = control_plane.layout.credentials / "front-proxy-ca.crt"

    async def credentials() -> Any:
        configuration = await load(control_plane.kubeconfig, environ={})
        configuration.ssl_ca_cert = str(other)
        return configuration

    async with Client(credentials) as client:
        with pytest.raises(ClusterError, match=r"certificate of .* not trusted"):
            await client.get(NAMESPACES)


async def test_a_pod_s_own_token_is_used_and_its_rotation_noticed(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """With the mount of a real service account: forbidden, allowed by RBAC, expired, renewed."""
    address = urlsplit(control_plane.url)
    environ = {
        "KUBERNETES_SERVICE_HOST": str(address.hostname),
        "KUBERNETES_SERVICE_PORT": str(address.port),
    }
    shutil.copy(control_plane.layout.credentials / "ca.crt", tmp_path / "ca.crt")
    account = CollectionPath("v1", "serviceaccounts", namespace).path_of("default")
    rbac = "rbac.authorization.k8s.io/v1"
    reader = {
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}],
    }
    binding = {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
    }

    async def token(admin: Client) -> str:
        answer = await admin.create(
            account.subresource("token"), {"spec": {"expirationSeconds": 600}}
        )
        return str(answer["status"]["token"])

    async def allowed(client: Client, path: CollectionPath) -> bool:
        try:
            await client.get(path)
        except ClusterError as error:
            assert error.status == 403  # noqa: PT017 (any other is a failure)
            return False
        return True

    async with connect(control_plane.kubeconfig) as admin:
        (tmp_path / "token").write_text(await token(admin))
        pod = Client(lambda: load(None, environ=environ, service_account=tmp_path))
        async with pod:
            path = CollectionPath("v1", "configmaps", namespace)
            with pytest.raises(ClusterError) as caught:
                await pod.get(path)
            assert (caught.value.status, caught.value.reason) == (403, "Forbidden")
            await admin.create(CollectionPath(rbac, "roles", namespace), reader)
            await admin.create(CollectionPath(rbac, "rolebindings", namespace), binding)
            # RBAC is read from caches too.
            await eventually_async("the role counts", lambda: allowed(pod, path))
            (tmp_path / "token").write_text("not.a.token")
        async with pod:
            with pytest.raises(ClusterError) as caught:
                await pod.get(path)
            assert caught.value.status == 401
            (tmp_path / "token").write_text(await token(admin))
            await pod.get(path)


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


async def test_a_config_map_comes_without_data_whatever_its_managed_fields(
    control_plane: ControlPlane, kubectl: Kubectl, namespace: str
) -> None:
    """In a list and in a watch; anybody may nest managedFields deeper than most parsers go."""
    path = CollectionPath("v1", "configmaps", namespace)
    fields = '{"f:data":' + '{"f:a":' * 1100 + "{}" + "}" * 1101

    def body(name: str) -> dict[str, Any]:
        entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsV1": "FIELDS"}
        entry = {**entry, "fieldsType": "FieldsV1", "time": "2026-01-01T00:00:00Z"}
        metadata = {"name": name, "managedFields": [entry]}
        return {"metadata": metadata, "data": {"large": "x"}}

    def create(name: str) -> None:
        whole = json.dumps({**body(name), "apiVersion": "v1", "kind": "ConfigMap"})
        kubectl("create", "--raw", path, "-f", "-", stdin=whole.replace('"FIELDS"', fields))

    async with connect(control_plane.kubeconfig) as client:
        cache: Cache[frozenset[str]] = Cache(frozenset)
        await asyncio.to_thread(create, "listed")
        async with Watches(client) as watches:
            watch = watches.add(path, cache, metadata_only=True)
            await cache.wait_synced()
            await asyncio.to_thread(create, "watched")
            await until(lambda: cache.get(f"{namespace}/watched") is not None)
            assert watch.last_error is None
        for name in ("listed", "watched"):
            kept = cache.get(f"{namespace}/{name}")
            assert kept is not None
            assert kept <= {"kind", "apiVersion", "metadata"}


class Recorded(Client):
    """A client that notes where each watch began."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(lambda: load(plane.kubeconfig, environ={}))
        self.versions: list[int] = []

    @asynccontextmanager
    async def stream(
        self, path: ApiPath, *, query: Mapping[str, str], silence: float | None, accept: str = JSON
    ) -> AsyncIterator[Callable[[], Awaitable[bytes]]]:
        self.versions.append(int(query["resourceVersion"]))
        async with super().stream(path, query=query, silence=silence, accept=accept) as read:
            yield read


class FiveSeconds(Random):
    """Makes the server end each watch after five seconds, not after five to ten minutes."""

    def randint(self, a: int, b: int) -> int:
        return min(a, b, 5)


async def test_bookmarks_move_a_watch_that_sees_no_events(
    control_plane: ControlPlane,
) -> None:
    """The next watch begins where the collection is by then, and nothing is listed again."""
    async with Recorded(control_plane) as client:
        cache = Cache(labels_of)
        nothing = {"labelSelector": "no=such"}
        reflector = Reflector(client, NAMESPACES, cache, query=nothing, random=FiveSeconds())
        async with running(reflector.keep_current):
            await until(lambda: len(client.versions) == 1)
            seen = await client.create(NAMESPACES, {"metadata": {"generateName": "unseen-"}})
            last = int(seen["metadata"]["resourceVersion"])
            assert client.versions[0] < last
            # The watch after the next one, if the first was near its end by then.
            await until(lambda: client.versions[-1] >= last)
            assert reflector.lists == 1
            assert dict(cache.items()) == {}
