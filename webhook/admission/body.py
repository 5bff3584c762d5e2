"""Reads a request's body, up to a size and within a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

# The API server takes requests of up to 3 MiB, and etcd stores objects of up to 1.5 MiB. A review
# of a creation holds the object once (oldObject is null), beside the user and the options; on its
# way defaults are filled in, and Go writes each of < > & as six bytes. Twice the API server's own
# limit leaves room for that, and refuses nothing that could ever be stored.
MAX_BODY_BYTES: Final = 6 * 1024 * 1024
# Seconds. The API server waits for a webhook for 30 at the most: after that nobody wants to know.
READ_SECONDS: Final = 30.0


class TooLarge(Exception):
    """The body is over MAX_BODY_BYTES."""


class Unfinished(Exception):
    """The caller went away, or was too slow, before the body had come whole."""

    def __init__(self, *, gone: bool) -> None:
        self.gone = gone
        super().__init__("the caller went away" if gone else f"no whole body in {READ_SECONDS} s")


async def read(
    scope: Scope, receive: Receive, *, most: int = MAX_BODY_BYTES, seconds: float = READ_SECONDS
) -> bytes:
    """The whole body. Raises TooLarge, before reading if the header says so, and Unfinished."""
    for name, value in scope["headers"]:
        # int() would take "+5", "5_0" and spaces too: what matters is that none of it gets by.
        if name == b"content-length" and value.isdigit() and int(value) > most:
            raise TooLarge
    try:
        async with asyncio.timeout(seconds):
            body, more = await _part(receive)
            if not more:
                return _within(body, most)
            parts = [body]
            size = len(body)
            while more:
                body, more = await _part(receive)
                parts.append(body)
                size += len(body)
                if size > most:
                    raise TooLarge
    except TimeoutError:
        raise Unfinished(gone=False) from None
    return b"".join(parts)


async def _part(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Unfinished(gone=True)
    return message.get("body", b""), message.get("more_body", False)


def _within(body: bytes, most: int) -> bytes:
    if len(body) > most:
        raise TooLarge
    return body
