"""The kube module's client against a real API server: verbs, errors, credentials."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.eventually import eventually_async
from webhook.errors import ClusterError
from webhook.kube.client import Client, connect
from webhook.kube.config import load

if TYPE_CHECKING:
    from pathlib import Path

    from webhook.sandbox.control_plane import ControlPlane


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"made": "here"}},
        "data": data,
    }


def test_objects_are_created_read_patched_and_deleted(
    control_plane: ControlPlane, namespace: str
) -> None:
    """Each verb and each kind of patch does what the API server means by it."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"

    async def run() -> None:
        async with connect(control_plane.kubeconfig) as client:
            await client.create(path, config_map("a", x="0"), query={"dryRun": "All"})
            created = await client.create(path, config_map("a", x="1"))
            assert created["metadata"]["uid"]
            assert await client.get(f"{path}/a") == created
            json_patch = [{"op": "replace", "path": "/data/x", "value": "2"}]
            assert (await client.patch(f"{path}/a", json_patch, "json"))["data"] == {"x": "2"}
            merge = {"data": {"x": None, "y": "3"}}
            assert (await client.patch(f"{path}/a", merge, "merge"))["data"] == {"y": "3"}
            label = {"metadata": {"labels": {"l": "4"}}}
            patched = await client.patch(f"{path}/a", label, "strategic")
            assert patched["metadata"]["labels"] == {"made": "here", "l": "4"}
            mine = {"fieldManager": "test", "force": "true"}
            applied = await client.patch(f"{path}/b", config_map("b", z="5"), "apply", query=mine)
            assert applied["data"] == {"z": "5"}
            await client.delete(f"{path}/a", {"preconditions": {"uid": created["metadata"]["uid"]}})
            await client.delete(f"{path}/b")
            left = await client.list(
                path, lambda seen: seen["metadata"]["name"], query={"labelSelector": "made=here"}
            )
            assert left.items == []

    asyncio.run(run())


def test_refusals_are_distinguished(control_plane: ControlPlane, namespace: str) -> None:
    """Absent, there already, changed meanwhile, invalid: by status and reason."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"

    async def run() -> list[tuple[int | None, str]]:
        async with connect(control_plane.kubeconfig) as client:
            await client.create(path, config_map("a"))
            stale = {"metadata": {"resourceVersion": "1"}, "data": {"x": "y"}}
            attempts = [
                client.get(f"{path}/absent"),
                client.create(path, config_map("a")),
                client.patch(f"{path}/a", stale, "merge"),
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


def test_pages_make_the_same_list_as_one_piece(control_plane: ControlPlane, namespace: str) -> None:
    """However small the pages."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"

    async def run() -> None:
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

    asyncio.run(run())


def test_a_certificate_of_another_authority_is_not_trusted(control_plane: ControlPlane) -> None:
    """Nothing is sent to such a server, and the error says why."""
    other = control_plane.layout.credentials / "front-proxy-ca.crt"

    async def run() -> None:
        async def credentials() -> Any:
            configuration = await load(control_plane.kubeconfig, environ={})
            configuration.ssl_ca_cert = str(other)
            return configuration

        async with Client(credentials) as client:
            with pytest.raises(ClusterError, match=r"certificate of .* not trusted"):
                await client.get("/api/v1/namespaces")

    asyncio.run(run())


def test_a_pod_s_own_token_is_used_and_its_rotation_noticed(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    """With the mount of a real service account: forbidden, allowed by RBAC, expired, renewed."""
    address = urlsplit(control_plane.url)
    environ = {
        "KUBERNETES_SERVICE_HOST": str(address.hostname),
        "KUBERNETES_SERVICE_PORT": str(address.port),
    }
    shutil.copy(control_plane.layout.credentials / "ca.crt", tmp_path / "ca.crt")
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
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
        answer = await admin.create(f"{account}/token", {"spec": {"expirationSeconds": 600}})
        return str(answer["status"]["token"])

    async def allowed(client: Client, path: str) -> bool:
        try:
            await client.get(path)
        except ClusterError as error:
            assert error.status == 403  # noqa: PT017 (any other is a failure)
            return False
        return True

    async def run() -> None:
        async with connect(control_plane.kubeconfig) as admin:
            (tmp_path / "token").write_text(await token(admin))
            pod = Client(lambda: load(None, environ=environ, service_account=tmp_path))
            async with pod:
                path = f"/api/v1/namespaces/{namespace}/configmaps"
                with pytest.raises(ClusterError) as caught:
                    await pod.get(path)
                assert (caught.value.status, caught.value.reason) == (403, "Forbidden")
                await admin.create(f"{roles}/roles", reader)
                await admin.create(f"{roles}/rolebindings", binding)
                # RBAC is read from caches too.
                await eventually_async("the role counts", lambda: allowed(pod, path))
                (tmp_path / "token").write_text("not.a.token")
            async with pod:
                with pytest.raises(ClusterError) as caught:
                    await pod.get(path)
                assert caught.value.status == 401
                (tmp_path / "token").write_text(await token(admin))
                await pod.get(path)

    asyncio.run(run())
