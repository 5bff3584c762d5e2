"""The webhook as an ASGI app: a POST to the path of each kind of review, and nothing else."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

from starlette.applications import Starlette
from starlette.routing import Route

from webhook.admission import body
from webhook.admission.handler import Reply, problem, unread
from webhook.admission.review import uid_in
from webhook.interception import PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import Receive, Scope, Send

    from webhook.admission.handler import Observer

_JSON: Final = (b"content-type", b"application/json")
# The API server quotes text of this type in the error that it answers with.
_TEXT: Final = (b"content-type", b"text/plain; charset=utf-8")
_RETRY: Final = (b"retry-after", b"1")


class Answers(Protocol):
    """What answers reviews of one kind."""

    async def handle(self, body: bytes) -> Reply:
        """The answer to the body of one POST. Raises nothing."""


def admission_app(
    handlers: Mapping[str, Answers],
    observer: Observer,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> Starlette:
    """The app, of what answers under each path: 404 for any other, 405 for any other method."""
    # A plain ASGI endpoint: Starlette's Request and Response would cost as much as a decision.
    app = Starlette(
        routes=[
            Route(path, Endpoint(handler, observer, clock, of_pods=path == PATH), methods=["POST"])
            for path, handler in handlers.items()
        ]
    )
    app.router.redirect_slashes = False
    return app


class Endpoint:
    """Reads the body, has it handled, and sends the reply.

    `of_pods`: whether the reviews are of pods. Their seconds are counted, which others would hide;
    and what is too large of them is refused, for no failure may let it through.
    """

    def __init__(
        self,
        handler: Answers,
        observer: Observer,
        clock: Callable[[], float],
        *,
        of_pods: bool = True,
    ) -> None:
        self._handler = handler
        self._observer = observer
        self._clock = clock
        self._of_pods = of_pods

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        began = self._clock()
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
        seconds = self._clock() - began if self._of_pods else None
        self._observer.request_answered(reply.result, reply.status, seconds)

    async def _reply(self, scope: Scope, receive: Receive) -> Reply | None:
        """None if nobody waits for an answer any more."""
        content_type = _content_type(scope)
        if not _is_json(content_type):
            seen = content_type.decode("latin-1")[:100]
            return problem(415, "unsupported", f"want application/json, not {seen!r}")
        try:
            content = await body.read(scope, receive)
        except body.InvalidLength:
            return problem(400, "invalid", "content-length: want a number of at most 19 digits")
        except body.TooLarge as error:
            uid = uid_in(error.head) if self._of_pods else ""
            return unread(uid, 413, "too-large", f"{error}; make the pod smaller")
        except body.Unfinished as error:
            return None if error.gone else problem(408, "timeout", str(error))
        return await self._handler.handle(content)


def _content_type(scope: Scope) -> bytes:
    for name, value in scope["headers"]:
        if name == b"content-type":
            return bytes(value)
    return b""


def _is_json(content_type: bytes) -> bool:
    """Whether the body may be JSON: it is, by its type, or nothing is said of it."""
    if content_type == b"application/json":
        return True
    media_type = content_type.partition(b";")[0].strip().lower()
    return media_type in (b"", b"application/json", b"text/json") or media_type.endswith(b"+json")
