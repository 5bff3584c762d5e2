"""A body is read up to a size and within a time, and never past either."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Message

from webhook.admission.body import InvalidLength, TooLarge, Unfinished, read


def read_parts(parts: list[bytes], headers: dict[bytes, bytes] | None = None) -> tuple[bytes, int]:
    """The body that comes in these parts with at most 10 bytes, and how many parts were left."""
    waiting = list(parts)

    async def receive() -> Message:
        part = waiting.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(waiting)}

    body = asyncio.run(
        read({"headers": list((headers or {}).items())}, receive, most=10, seconds=60)
    )
    return body, len(waiting)


@pytest.mark.parametrize("parts", [[b"0123456789"], [b"01234", b"", b"56789"], [b""]])
def test_a_body_of_the_limit_is_read_whole(parts: list[bytes]) -> None:
    """In however many parts it comes."""
    assert read_parts(parts) == (b"".join(parts), 0)


@pytest.mark.parametrize("parts", [[b"0123456789a"], [b"01234", b"56789", b"a"]])
def test_a_body_over_the_limit_is_refused_whatever_its_header_says(parts: list[bytes]) -> None:
    """Without a length, and with one that is too small."""
    for headers in ({}, {b"content-length": b"3"}):
        with pytest.raises(TooLarge):
            read_parts(parts, headers)


def test_of_a_body_that_says_that_it_is_too_large_the_first_bytes_are_read() -> None:
    """The API server writes there what an answer needs."""
    waiting = [b"x" * 400, b"y" * 400, b"z"]

    async def receive() -> Message:
        return {"type": "http.request", "body": waiting.pop(0), "more_body": True}

    with pytest.raises(TooLarge) as caught:
        asyncio.run(read({"headers": [(b"content-length", b"801")]}, receive, most=10))
    assert caught.value.head == b"x" * 400 + b"y" * 400
    assert waiting == [b"z"]


@pytest.mark.parametrize("length", [b"many", b"+5", b"5_0", b"", b"0" * 5_000, b"9" * 20])
def test_a_length_that_is_no_number_is_refused_unread(length: bytes) -> None:
    """int() would take some of them, and raise another error of some others."""
    with pytest.raises(InvalidLength):
        read_parts([b"01234"], {b"content-length": length})


def test_no_part_past_the_limit_is_read() -> None:
    """However much more there is."""
    waiting = [b"01234", b"56789", b"a", b"b", b"c"]

    async def receive() -> Message:
        return {"type": "http.request", "body": waiting.pop(0), "more_body": bool(waiting)}

    with pytest.raises(TooLarge):
        asyncio.run(read({"headers": []}, receive, most=10))
    assert waiting == [b"b", b"c"]


def test_a_caller_that_goes_away_is_told_from_one_that_is_slow() -> None:
    """The first needs no answer, the second gets one."""

    async def leave() -> Message:
        return {"type": "http.disconnect"}

    async def stall() -> Message:
        await asyncio.sleep(3600)
        raise AssertionError

    with pytest.raises(Unfinished) as gone:
        asyncio.run(read({"headers": []}, leave))
    with pytest.raises(Unfinished) as slow:
        asyncio.run(read({"headers": []}, stall, seconds=0.01))
    assert (gone.value.gone, slow.value.gone) == (True, False)
