"""The webhook as an ASGI app: one POST path for each kind of review, with limits on the body."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from starlette.applications import Starlette
from starlette.routing import Route

from webhook.admission.handler import Reply, problem, unread
from webhook.admission.review import uid_in
from webhook.interception import PATH

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.types import Receive, Scope, Send

    from webhook.admission.handler import Observer

_JSON: Final = (b"content-type", b"application/json")
# The API server quotes a body of this type in its own error.
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_RETRY: Final = (b"retry-after", b"1")
# The API server accepts requests of up to 3 MiB, and etcd stores objects of up to 1.5 MiB. The
# review of a creation holds the object once (oldObject is null), plus the user and the options.
# Defaulting adds fields, and Go escapes each of < > & as six bytes. Twice the API server's own
# limit leaves room for both and rejects no realistic pod.
MAX_BODY_BYTES: Final = 6 * 1024 * 1024
# Seconds. The API server waits at most 30 s for a webhook, so a later answer has no reader.
READ_SECONDS: Final = 30.0
# For a body over the limit: the bytes to read, and the seconds to spend on it. The API server
# writes the uid, which an answer needs, in the first two hundred bytes, and sends four thousand
# at a time.
_HEAD_BYTES: Final = 512
_HEAD_SECONDS: Final = 1.0
# Digits of a content-length: more than any valid length has, and few enough for int().
_MAX_DIGITS: Final = 19


class Unread(Exception):
    """A body that is not read. `reply` is the answer; None if the caller has disconnected."""

    def __init__(self, reply: Reply | None) -> None:
        self.reply = reply


def _too_large(head: bytes, *, of_pods: bool) -> Unread:
    reason = f"the review has over {MAX_BODY_BYTES} bytes; make the pod smaller"
    return Unread(unread(uid_in(head) if of_pods else "", 413, "too-large", reason))


# Returns the answer to the body of one POST, and raises nothing.
Handle: TypeAlias = "Callable[[bytes], Awaitable[Reply]]"


def admission_app(handlers: Mapping[str, Handle], observer: Observer) -> Starlette:
    """Return the app for handlers by path: 404 for other paths, 405 for other methods."""
    # A plain ASGI endpoint: Starlette's Request and Response would take as long as a decision.
    app = Starlette(
        routes=[
            Route(path, Endpoint(handle, observer, of_pods=path == PATH), methods=["POST"])
            for path, handle in handlers.items()
        ]
    )
    app.router.redirect_slashes = False
    return app


@dataclass(eq=False, repr=False, slots=True)
class Endpoint:
    """Read the body, call the handler and send the reply.

    `of_pods`: the reviews are of pods. Only their durations are measured, because the durations
    of other reviews would distort the metric. A pod review that is too large is rejected, so that
    no failure policy can admit it.
    """

    handle: Handle
    observer: Observer
    of_pods: bool

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()
        reply = await self._reply(scope, receive)
        if reply is None:
            return
        headers = [
            _JSON if reply.status == 200 else _TEXT,
            (b"content-length", b"%d" % len(reply.body)),
        ]
        if reply.retry:
            headers.append(_RETRY)
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})
        seconds = time.perf_counter() - began if self.of_pods else None
        self.observer.request_answered(reply.result, reply.status, seconds)

    async def _reply(self, scope: Scope, receive: Receive) -> Reply | None:
        """Return the reply; None if the caller has disconnected."""
        content_type = _content_type(scope)
        if not _is_json(content_type):
            actual = content_type.decode("latin-1")[:100]
            return problem(415, "unsupported", f"want application/json, not {actual!r}")
        try:
            content = await read_body(scope, receive, of_pods=self.of_pods)
        except Unread as error:
            return error.reply
        return await self.handle(content)


def _content_type(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"content-type":
            return bytes(value)
    return b""


def _is_json(content_type: bytes) -> bool:
    if content_type == b"application/json":
        return True
    media_type = content_type.partition(b";")[0].strip().lower()
    return media_type in (b"", b"application/json", b"text/json") or media_type.endswith(b"+json")


async def read_body(
    scope: Scope,
    receive: Receive,
    *,
    of_pods: bool = True,
    most: int = MAX_BODY_BYTES,
    seconds: float = READ_SECONDS,
) -> bytes:
    """Return the whole body.

    Raises Unread for a body that is too large (after the first bytes if the content-length exceeds
    the limit) or not complete in time, and for an invalid content-length.
    """
    for name, value in scope["headers"]:
        if name == b"content-length" and _declared(value) > most:
            raise _too_large(await _head(receive), of_pods=of_pods)
    try:
        async with asyncio.timeout(seconds):
            body, more = await _part(receive)
            # A list of parts of one byte each would take many times their size.
            content = bytearray(body) if more else body
            while more and len(content) <= most:
                body, more = await _part(receive)
                content += body
    except TimeoutError:
        raise Unread(problem(408, "timeout", f"no whole body in {READ_SECONDS} s")) from None
    if len(content) > most:
        raise _too_large(bytes(content[:_HEAD_BYTES]), of_pods=of_pods)
    return bytes(content)


def _declared(value: bytes) -> int:
    # int() would also accept "+5", "5_0" and spaces, and raises for thousands of digits.
    if not value.isdigit() or len(value) > _MAX_DIGITS:
        what = "content-length: want a number of at most 19 digits"
        raise Unread(problem(400, "invalid", what))
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
        # The body is too large, even if little of it has arrived.
        pass
    return head


async def _part(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Unread(None)
    return message.get("body", b""), message.get("more_body", False)
