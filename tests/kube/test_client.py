"""The verbs and lists, and what can go wrong with them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kube.fake_api import (
    THING,
    THINGS,
    Answer,
    Request,
    client_of,
    fake_api,
    write_kubeconfig,
)
from webhook.api_paths import ApiPath, CollectionPath
from webhook.errors import ClusterError
from webhook.kube.client import LONGEST_PAGE, Client, Listing, PatchType, connect
from webhook.kube.config import load


async def echo(_: Request, answer: Answer) -> None:
    await answer.json({"kind": "Thing"})


async def test_each_verb_is_sent_as_the_api_server_wants_it(tmp_path: Path) -> None:
    """Method, path, query, content type, and the body as JSON."""
    async with fake_api(echo) as api, client_of(api, tmp_path) as client:
        assert await client.get(THINGS, query={"labelSelector": "a in (b, c)"}) == {"kind": "Thing"}
        await client.create(THINGS, {"x": "ü"}, query={"dryRun": "All"})
        await client.replace(THING, {"x": 1}, query={"dryRun": "All"})
        await client.patch(THING, [{"op": "test"}], "json")
        await client.delete(THING, {"propagationPolicy": "Background"})
        await client.delete(THING)
        get, create, replace, patch, delete, delete_plain = api.requests
    assert (get.method, get.path, get.query["labelSelector"]) == ("GET", THINGS, "a in (b, c)")
    assert (create.method, create.query["dryRun"]) == ("POST", "All")
    assert create.headers["content-type"] == "application/json"
    assert json.loads(create.body) == {"x": "ü"}
    assert (replace.method, replace.path, json.loads(replace.body)) == ("PUT", THING, {"x": 1})
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
        await client.patch(THING, body, patch_type)
        request = api.requests[0]
    assert request.headers["content-type"] == content_type
    assert json.loads(request.body) == body


async def test_the_server_timeout_is_shorter_than_the_clients(tmp_path: Path) -> None:
    """The query's timeout is a little shorter than the client's own."""
    async with fake_api(echo) as api, client_of(api, tmp_path, timeout=20.0) as client:
        await client.get(THINGS)
        result = api.requests[0]
    assert result.query == {"timeout": "18000ms"}


async def test_a_refusal_is_an_error_with_its_status(tmp_path: Path) -> None:
    """Callers tell refusals apart by status and reason, and heed Retry-After."""

    async def refuse(_: Request, answer: Answer) -> None:
        await answer.status(429, "TooManyRequests", "because", Retry_After="2")

    async with fake_api(refuse) as api, client_of(api, tmp_path) as client:
        with pytest.raises(ClusterError) as caught:
            await client.get(THINGS)
        assert str(caught.value) == "the API server is too busy to list things: try again"
        assert (caught.value.status, caught.value.reason) == (429, "TooManyRequests")
        assert caught.value.retry_after == 2.0
        assert len(api.requests) == 1


async def test_a_server_that_never_answers_is_given_up(tmp_path: Path) -> None:
    """Neither a head that never comes nor a body that never ends holds the caller."""

    async def stall(request: Request, answer: Answer) -> None:
        if request.path == ApiPath("body"):
            await answer.begin()
            await answer.chunk(b"{")
        await asyncio.sleep(1000)

    async with fake_api(stall) as api, client_of(api, tmp_path) as client:
        for path in (ApiPath("head"), ApiPath("body")):
            with pytest.raises(ClusterError, match="did not answer") as caught:
                await client.get(path, timeout=0.05)
            assert caught.value.status is None


async def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with fake_api(echo) as api:
        gone = api
    async with client_of(gone, tmp_path) as client:
        with pytest.raises(ClusterError) as caught:
            await client.get(THINGS)
        result = str(caught.value)
    assert "cannot connect to the API server 127.0.0.1:" in result


async def test_a_truncated_answer_is_an_error(tmp_path: Path) -> None:
    """A body shorter than promised is an error, were it valid JSON or not."""

    async def cut(_: Request, answer: Answer) -> None:
        await answer.begin()
        await answer.chunk(b"{}")

    async with fake_api(cut) as api, client_of(api, tmp_path) as client:
        with pytest.raises(ClusterError) as caught:
            await client.create(THINGS, {})
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
        if request.path == THINGS:
            await answer.status(409, "Conflict", "because")
        elif request.path == ApiPath("fine"):
            await echo(request, answer)

    async with fake_api(handle) as api:
        file = write_kubeconfig(tmp_path, api.url)
        client = connect(file, on_answer=lambda *told: seen.append(told))
        async with client:
            await client.get(ApiPath("fine"))
            for path in (THINGS, CollectionPath("v1", "cut")):
                with pytest.raises(ClusterError):
                    await client.create(path, {})
    assert seen == [("GET", 200), ("POST", 409), ("POST", None)]


NAMES = [f"n{number}" for number in range(7)]


def page(names: list[str], position: str = "", version: str = "100") -> dict[str, Any]:
    metadata = {"resourceVersion": version, **({"continue": position} if position else {})}
    return {"metadata": metadata, "items": [{"metadata": {"name": name}} for name in names]}


def read(
    handler: Callable[[Request, Answer], Awaitable[None]], folder: Path
) -> tuple[Listing[str], list[Request]]:
    """The collection as the client reads it in pages of 3, and the requests that this took."""

    async def run() -> tuple[Listing[str], list[Request]]:
        async with fake_api(handler) as api, client_of(api, folder) as client:
            listing = await client.list(
                THINGS, lambda seen: str(seen["metadata"]["name"]), query={"a": "b"}, page_size=3
            )
            return listing, api.requests

    return asyncio.run(run())


async def paged(request: Request, answer: Answer) -> None:
    first = int(request.query.get("continue", "0"))
    size = int(request.query.get("limit", "1000"))
    rest = first + size
    await answer.json(page(NAMES[first:rest], str(rest) if rest < len(NAMES) else ""))


def test_all_pages_make_one_list(tmp_path: Path) -> None:
    """Each page is asked for where the last one ended, with the same query."""
    listing, requests = read(paged, tmp_path)
    assert listing == Listing(NAMES, "100")
    assert [x.query.get("continue") for x in requests] == [None, "3", "6"]
    assert {x.query["a"] for x in requests} == {"b"}


def test_a_page_of_large_objects_has_fewer_of_them(tmp_path: Path) -> None:
    """A page that is too long is not read to its end; pages grow again where objects are small."""
    pages: dict[int, tuple[int, int]] = {}
    names = [f"n{number}" for number in range(60)]

    async def large(request: Request, answer: Answer) -> None:
        first, size = int(request.query.get("continue", "0")), int(request.query["limit"])
        body = page(names[first : first + size], str(first + size) if first + size < 60 else "")
        for number, each in enumerate(body["items"], first):
            each["spec"] = "x" * (LONGEST_PAGE // 4 if 4 <= number < 12 else 1)
        # The last answer of those that were asked for there.
        pages[first] = size, len(json.dumps(body))
        await answer.json(body)

    async def run() -> Listing[str]:
        async with fake_api(large) as api, client_of(api, tmp_path) as client:
            return await client.list(
                THINGS, lambda seen: str(seen["metadata"]["name"]), page_size=16
            )

    assert asyncio.run(run()).items == names
    assert max(length for _, length in pages.values()) <= LONGEST_PAGE
    assert max(size for size, _ in pages.values()) == 16


def test_an_object_that_is_longer_than_a_page_is_read_alone(tmp_path: Path) -> None:
    """No list is left without it."""

    async def large(request: Request, answer: Answer) -> None:
        first, rest = 0, int(request.query["limit"])
        body = page(NAMES[first:rest])
        body["items"][0]["spec"] = "x" * (LONGEST_PAGE + 1)
        await answer.json(body)

    listing, requests = read(large, tmp_path)
    assert listing.items == NAMES[:1]
    assert [request.query["limit"] for request in requests] == ["3", "1"]


GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


def test_a_list_that_expired_continues_where_it_was(tmp_path: Path) -> None:
    """From the position that the 410 has; a watch from the first page's version misses nothing."""

    async def expire(request: Request, answer: Answer) -> None:
        position = request.query.get("continue", "")
        if position.startswith("old-"):
            at = position.removeprefix("old-")
            await answer.json({**GONE, "metadata": {"continue": f"new-{at}"}}, 410)
            return
        first = int(position.removeprefix("new-") or "0")
        rest = first + int(request.query["limit"])
        more = f"old-{rest}" if rest < len(NAMES) else ""
        await answer.json(page(NAMES[first:rest], more, str(100 + first)))

    listing, requests = read(expire, tmp_path)
    assert listing == Listing(NAMES, "100")
    positions = [None, "old-3", "new-3", "old-6", "new-6"]
    assert [request.query.get("continue") for request in requests] == positions
    assert {request.query["limit"] for request in requests} == {"3"}


def test_a_list_that_expired_without_a_position_is_read_again_in_pages(tmp_path: Path) -> None:
    """Nothing of the pages before remains."""
    expired: list[Request] = []

    async def expire(request: Request, answer: Answer) -> None:
        if "continue" in request.query and len(expired) < 2:
            expired.append(request)
            await answer.json(GONE, 410)
        else:
            await paged(request, answer)

    listing, requests = read(expire, tmp_path)
    assert listing == Listing(NAMES, "100")
    assert {request.query["limit"] for request in requests} == {"3"}


@pytest.mark.parametrize("metadata", [None, {"continue": "again"}, {"continue": 7}, []])
def test_a_list_that_expires_each_time_is_an_error(tmp_path: Path, metadata: object) -> None:
    """After some attempts in pages, and never by one answer with the whole collection."""
    seen = []

    async def expire(request: Request, answer: Answer) -> None:
        seen.append(request.query)
        if "continue" in request.query:
            await answer.json({**GONE, "metadata": metadata}, 410)
        else:
            await answer.json(page(["a"], "3"))

    with pytest.raises(ClusterError) as caught:
        read(expire, tmp_path)
    assert caught.value.status == 410
    assert {query["limit"] for query in seen} == {"3"}
    assert len(seen) < 20


def test_another_failure_on_the_way_is_an_error(tmp_path: Path) -> None:
    async def fail(request: Request, answer: Answer) -> None:
        if "continue" in request.query:
            await answer.status(503, "ServiceUnavailable", "down")
        else:
            await answer.json(page(["a"], "3"))

    with pytest.raises(ClusterError) as caught:
        read(fail, tmp_path)
    assert caught.value.status == 503


def test_an_empty_list_may_be_null(tmp_path: Path) -> None:
    """Go writes an empty slice so."""

    async def null(_: Request, answer: Answer) -> None:
        await answer.json({"metadata": {"resourceVersion": "1"}, "items": None})

    assert read(null, tmp_path)[0] == Listing([], "1")


@pytest.mark.parametrize(
    "body", [{"kind": "Status"}, {"items": []}, {"metadata": {"resourceVersion": "1"}}]
)
def test_a_value_that_is_not_a_list_is_an_error(tmp_path: Path, body: dict[str, Any]) -> None:
    async def other(_: Request, answer: Answer) -> None:
        await answer.json(body)

    with pytest.raises(ClusterError, match="not a list"):
        read(other, tmp_path)


async def test_a_text_is_no_path_and_no_collection_is_deleted(tmp_path: Path) -> None:
    """Neither is sent: nobody has checked the text, and a deleted collection is all of it."""
    async with fake_api(echo) as api, client_of(api, tmp_path) as client:
        # Any: mypy refuses all of these too.
        text: Any = f"{THINGS}/{''}"
        collection: Any = THINGS
        other: Any = ApiPath(*THING.split("/")[1:])
        for call in (
            client.get(text),
            client.find(text),
            client.patch(text, {}, "merge"),
            client.list(text, lambda each: each),
            client.delete(text),
            client.delete(collection),
            client.delete(other),
        ):
            with pytest.raises(TypeError, match="want a path"):
                await call
        with pytest.raises(TypeError, match="want a path"):
            async with client.stream(text, query={}, silence=None):
                raise AssertionError
        assert api.requests == []
        await client.delete(THING)
        assert [each.path for each in api.requests] == [THING]
