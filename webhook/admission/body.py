"""Reads a request's body, up to a size and within a time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import Receive, Scope

# The API server takes requests of up to 3 MiB, and etcd stores objects of up to 1.5 MiB. A review
# of a creation holds the object once (oldObject is null), beside the user and the options; on its
# way defaults are filled in, and Go writes each of < > & as six bytes. Twice the API server's own
# limit leaves room for that, and refuses no pod that anybody means.
MAX_BODY_BYTES: Final = 6 * 1024 * 1024
# Seconds. The API server waits for a webhook for 30 at the most: after that nobody wants to know.
READ_SECONDS: Final = 30.0
# Of a body over the limit: bytes that are read, and seconds for that. The API server writes the uid
# that an answer needs in the first two hundred, and sends four thousand at once.
_HEAD_BYTES: Final = 512
_HEAD_SECONDS: Final = 1.0
# Digits of a length in a header: above any that can be meant, and few enough for int().
_MAX_DIGITS: Final = 19


class TooLarge(Exception):
    """The body is over MAX_BODY_BYTES; `head` is what was read of it."""

    def __init__(self, head: bytes) -> None:
        self.head = head
        super().__init__(f"the review has over {MAX_BODY_BYTES} bytes")


class InvalidLength(Exception):
    """The content-length is not a number that can be meant."""


class Unfinished(Exception):
    """The caller went away, or was too slow, before the body had come whole."""

    def __init__(self, *, gone: bool) -> None:
        self.gone = gone
        super().__init__("the caller went away" if gone else f"no whole body in {READ_SECONDS} s")


async def read(
    scope: Scope, receive: Receive, *, most: int = MAX_BODY_BYTES, seconds: float = READ_SECONDS
) -> bytes:
    """The whole body. Raises TooLarge, after the first bytes if the header says so.

    Raises InvalidLength and Unfinished as well.
    """
    for name, value in scope["headers"]:
        if name == b"content-length" and _declared(value) > most:
            raise TooLarge(await _head(receive))
    # Parts may be of one byte each: a list of them would take many times their size.
    content = bytearray()
    try:
        async with asyncio.timeout(seconds):
            body, more = await _part(receive)
            if not more:
                return _within(body, most)
            content += body
            while more:
                body, more = await _part(receive)
                content += body
                if len(content) > most:
                    raise TooLarge(bytes(content[:_HEAD_BYTES]))
    except TimeoutError:
        raise Unfinished(gone=False) from None
    return bytes(content)


def _declared(value: bytes) -> int:
    # int() would take "+5", "5_0" and spaces too, and raises for thousands of digits.
    if not value.isdigit() or len(value) > _MAX_DIGITS:
        raise InvalidLength
    return int(value)


async def _head(receive: Receive) -> bytes:
    head = b""
    try:
        async with asyncio.timeout(_HEAD_SECONDS):
            more = True
            while more and len(head) < _HEAD_BYTES:
                part, more = await _part(receive)
                head += part[:_HEAD_BYTES]
    except TimeoutError:
        # It is too large, however little has come.
        pass
    return head


async def _part(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Unfinished(gone=True)
    return message.get("body", b""), message.get("more_body", False)


def _within(body: bytes, most: int) -> bytes:
    if len(body) > most:
        raise TooLarge(body[:_HEAD_BYTES])
    return body
