"""The verbs, and what can go wrong with them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.fake_api import Answer, Request, client_of, fake_api, write_kubeconfig
from webhook.errors import ClusterError
from webhook.kube.client import Client, PatchType, connect
from webhook.kube.config import load

if TYPE_CHECKING:
    from pathlib import Path


async def echo(_: Request, answer: Answer) -> None:
    await answer.json({"kind": "Thing"})


async def test_each_verb_is_sent_as_the_api_server_wants_it(tmp_path: Path) -> None:
    """Method, path, query, content type, and the body as JSON."""
    async with fake_api(echo) as api, client_of(api, tmp_path) as client:
        assert await client.get("/a", query={"labelSelector": "a in (b, c)"}) == {"kind": "Thing"}
        await client.create("/a", {"x": "ü"}, query={"dryRun": "All"})
        await client.replace("/a/b", {"x": 1}, query={"dryRun": "All"})
        await client.patch("/a/b", [{"op": "test"}], "json")
        await client.delete("/a/b", {"propagationPolicy": "Background"})
        await client.delete("/a/b")
        get, create, replace, patch, delete, delete_plain = api.requests
    assert (get.method, get.path, get.query["labelSelector"]) == ("GET", "/a", "a in (b, c)")
    assert (create.method, create.query["dryRun"]) == ("POST", "All")
    assert create.headers["content-type"] == "application/json"
    assert json.loads(create.body) == {"x": "ü"}
    assert (replace.method, replace.path, json.loads(replace.body)) == ("PUT", "/a/b", {"x": 1})
    assert (replace.query["dryRun"], replace.headers["content-type"]) == ("All", "application/json")
    assert (patch.method, json.loads(patch.body)) == ("PATCH", [{"op": "test"}])
    assert (delete.method, json.loads(delete.body)) == (
        "DELETE",
        {"propagationPolicy": "Background"},
    )
    assert delete_plain.body == b""


@pytest.mark.parametrize(
    ("patch_type", "body", "content_type"),
    [
        ("json", [], "application/json-patch+json"),
        ("merge", {}, "application/merge-patch+json"),
        ("strategic", {}, "application/strategic-merge-patch+json"),
        ("apply", {"a": 1}, "application/apply-patch+yaml"),
    ],
)
async def test_a_patch_says_its_type(
    tmp_path: Path, patch_type: PatchType, body: Any, content_type: str
) -> None:
    async with fake_api(echo) as api, client_of(api, tmp_path) as client:
        await client.patch("/a", body, patch_type)
        request = api.requests[0]
    assert request.headers["content-type"] == content_type
    assert json.loads(request.body) == body


async def test_the_server_timeout_is_shorter_than_the_clients(tmp_path: Path) -> None:
    """The query's timeout is a little shorter than the client's own."""
    async with fake_api(echo) as api, client_of(api, tmp_path, timeout=20.0) as client:
        await client.get("/a")
        result = api.requests[0]
    assert result.query == {"timeout": "18000ms"}


async def test_a_refusal_is_an_error_with_its_status(tmp_path: Path) -> None:
    """Callers tell refusals apart by status and reason, and heed Retry-After."""

    async def refuse(_: Request, answer: Answer) -> None:
        await answer.status(429, "TooManyRequests", "because", Retry_After="2")

    async with fake_api(refuse) as api, client_of(api, tmp_path) as client:
        with pytest.raises(ClusterError) as caught:
            await client.get("/a")
        assert str(caught.value) == "GET /a: 429 TooManyRequests: because"
        assert (caught.value.status, caught.value.reason) == (429, "TooManyRequests")
        assert caught.value.retry_after == 2.0
        assert len(api.requests) == 1


async def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    """Neither a head that never comes nor a body that never ends holds the caller."""

    async def stall(request: Request, answer: Answer) -> None:
        if request.path == "/body":
            await answer.begin()
            await answer.chunk(b"{")
        await asyncio.sleep(1000)

    async with fake_api(stall) as api, client_of(api, tmp_path) as client:
        for path in ("/head", "/body"):
            with pytest.raises(ClusterError, match="did not answer") as caught:
                await client.get(path, timeout=0.05)
            assert caught.value.status is None


async def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with fake_api(echo) as api:
        gone = api
    async with client_of(gone, tmp_path) as client:
        with pytest.raises(ClusterError) as caught:
            await client.get("/a")
        result = str(caught.value)
    assert "GET /a: cannot connect to 127.0.0.1:" in result


async def test_a_truncated_answer_is_an_error(tmp_path: Path) -> None:
    """A body shorter than promised is an error, were it valid JSON or not."""

    async def cut(_: Request, answer: Answer) -> None:
        await answer.begin()
        await answer.chunk(b"{}")

    async with fake_api(cut) as api, client_of(api, tmp_path) as client:
        with pytest.raises(ClusterError) as caught:
            await client.create("/a", {})
        assert caught.value.status is None


async def test_connect_reads_nothing_before_it_is_entered() -> None:
    """A client may be made where there is no cluster; entering it says what is missing."""
    client = connect(environ={})
    with pytest.raises(ClusterError, match="no cluster"):
        await client.__aenter__()


async def test_a_cluster_whose_certificate_cannot_be_read_is_refused(tmp_path: Path) -> None:
    async def credentials() -> Any:
        configuration = await load(write_kubeconfig(tmp_path, "http://127.0.0.1:1"), environ={})
        configuration.ssl_ca_cert = str(tmp_path / "kubeconfig")
        return configuration

    with pytest.raises(ClusterError, match="certificates cannot be read"):
        await Client(credentials).__aenter__()


async def test_each_call_is_logged_with_its_result(tmp_path: Path) -> None:
    """Verb and status, also of a refusal; no status where no answer came. Metrics count them."""
    seen: list[tuple[str, int | None]] = []

    async def handle(request: Request, answer: Answer) -> None:
        if request.path == "/refused":
            await answer.status(409, "Conflict", "because")
        elif request.path == "/fine":
            await echo(request, answer)

    async with fake_api(handle) as api:
        file = write_kubeconfig(tmp_path, api.url)
        client = connect(file, on_answer=lambda *told: seen.append(told))
        async with client:
            await client.get("/fine")
            for path in ("/refused", "/cut"):
                with pytest.raises(ClusterError):
                    await client.create(path, {})
    assert seen == [("GET", 200), ("POST", 409), ("POST", None)]
