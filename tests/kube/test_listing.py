"""Reading a whole collection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.fake_api import Answer, Request, client_of, fake_api
from webhook.errors import ClusterError
from webhook.kube.client import Listing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

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
                "/things", lambda seen: str(seen["metadata"]["name"]), query={"a": "b"}, page_size=3
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


def test_a_list_that_expired_is_read_again_in_one_piece(tmp_path: Path) -> None:
    """Nothing of the pages before remains; without a limit nothing can expire."""

    async def expire(request: Request, answer: Answer) -> None:
        if "continue" in request.query:
            await answer.status(410, "Expired", "the continue parameter is too old")
        elif "limit" in request.query:
            await answer.json(page(["old"], "3", "50"))
        else:
            await answer.json(page(NAMES))

    listing, requests = read(expire, tmp_path)
    assert listing == Listing(NAMES, "100")
    assert len(requests) == 3


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
