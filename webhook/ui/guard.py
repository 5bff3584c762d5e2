"""Who may see the pages, and what their browser may do with them."""

from __future__ import annotations

import hmac
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import URL, Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PARAMETER: Final = "token"
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_HEADERS: Final = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # With no-referrer, browsers send forms without their origin.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
}
_STALE: Final = (
    "This page is for the person who started it: open the address that `fairlead ui` printed last."
)


class Guard:
    """ASGI middleware: only requests of this page with its token reach the app.

    The token is in the first address, and then in a cookie that no script reads and that no other
    site can have sent (RFC 6265bis, SameSite=Strict). A request for another host name is refused,
    because its page may be another site's (DNS rebinding), and so is one from another origin. Both
    hold without a token too.
    """

    def __init__(self, app: ASGIApp, *, token: str, hosts: Collection[str] = LOOPBACK) -> None:
        self._app = app
        self._token = token
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        request = Request(scope)
        refusal = self._refusal(request.headers)
        if refusal:
            await PlainTextResponse(f"{refusal}\n", HTTPStatus.FORBIDDEN)(scope, receive, answer)
        elif not self._token:
            await self._app(scope, receive, answer)
        elif self._is_token(request.query_params.get(PARAMETER, "")):
            await self._welcome(request.url)(scope, receive, answer)
        elif self._is_token(request.cookies.get(_cookie(request.url), "")):
            await self._app(scope, receive, answer)
        else:
            response = PlainTextResponse(f"{_STALE}\n", HTTPStatus.UNAUTHORIZED)
            await response(scope, receive, answer)

    def _refusal(self, headers: Headers) -> str:
        """Return why a request is refused whatever its token; empty if it is not."""
        host = headers.get("host", "")
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            name = None
        if name not in self._hosts:
            return f"the page has other names than that: {', '.join(sorted(self._hosts))}"
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return "a page of another site asked for this"
        if headers.get("sec-fetch-site", "none") == "cross-site" and (
            headers.get("sec-fetch-mode") != "navigate"
        ):
            return "a page of another site asked for this"
        return ""

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _welcome(self, url: URL) -> RedirectResponse:
        """Return the same address without the token, and the cookie."""
        query = urlencode([pair for pair in parse_qsl(url.query) if pair[0] != PARAMETER])
        where = url.path + (f"?{query}" if query else "")
        # One slash: two would begin the name of another host.
        response = RedirectResponse("/" + where.lstrip("/"), HTTPStatus.SEE_OTHER)
        response.set_cookie(_cookie(url), self._token, httponly=True, samesite="strict")
        return response


def _cookie(url: URL) -> str:
    """Return the cookie's name: all ports of a host share their cookies."""
    return f"fairlead-ui-{url.port or 80}"
