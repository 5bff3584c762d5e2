"""Who may see the pages, and what their browser may do with them."""

from __future__ import annotations

import asyncio
import hmac
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import URL, Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PARAMETER: Final = "token"
ENTRY: Final = "/enter"
# Bytes of a form with the token, and seconds until it is there.
_LONGEST_FORM: Final = 1024
_FORM_TIMEOUT_SECONDS: Final = 10.0
# Names of every program that listens on loopback.
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
}
# A redirect would be part of the way from the file, another site, and would lack the cookie. What
# the page itself asks for next has it.
_ENTERED: Final = (
    '<!doctype html><html lang="en"><meta http-equiv="refresh" content="0;url=/">'
    '<title>Fairlead</title><a href="/">Fairlead</a></html>'
)
_STALE: Final = (
    "This page is for the person who started it: open the address that `fairlead ui` printed last."
)
# Without the page's own name, which another account of the machine must not learn.
_WRONG_HOST: Final = (
    "This page has another name: open the address that `fairlead ui` printed last, or, after "
    "`kubectl port-forward`, one with 127.0.0.1 or localhost."
)


class Guard:
    """ASGI middleware: only requests of this page with its token reach the app.

    The token is in the first address, or in a form that is sent to ENTRY, and then in a cookie that
    no script reads and that no other site can have sent (RFC 6265bis, SameSite=Strict). A request
    for another host name is refused, because its page may be another site's (DNS rebinding), and so
    is one from another origin, except for a form with the token. Both hold without a token too.

    Browsers send a cookie to every port of its host (RFC 6265, section 8.5), so on 127.0.0.1 the
    servers of other accounts get it. `name` is a host name of these pages alone, which nobody else
    knows. The pages have the names of loopback too, for browsers that do not resolve it and for
    `kubectl port-forward`.

    `entered` is called at each entry with the token.
    """

    def __init__(self, app: ASGIApp, *, token: str, name: str = "") -> None:
        self._app = app
        self._token = token
        self._hosts = frozenset((*LOOPBACK, name) if name else LOOPBACK)
        self.entered: Callable[[], None] = lambda: None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        request = Request(scope, receive)
        is_form = bool(self._token) and (request.method, request.url.path) == ("POST", ENTRY)
        refusal = "" if self._is_host(request.headers) else _WRONG_HOST
        if not refusal and not is_form:
            refusal = _foreign(request.headers)
        if refusal:
            await PlainTextResponse(f"{refusal}\n", HTTPStatus.FORBIDDEN)(scope, receive, answer)
        elif not self._token:
            await self._app(scope, receive, answer)
        elif is_form and self._is_token(await _token_of(request)):
            await self._welcome(HTMLResponse(_ENTERED), request.url)(scope, receive, answer)
        elif self._is_token(request.query_params.get(PARAMETER, "")):
            response = RedirectResponse(_without_token(request.url), HTTPStatus.SEE_OTHER)
            await self._welcome(response, request.url)(scope, receive, answer)
        elif not is_form and self._is_token(request.cookies.get(_cookie(request.url), "")):
            await self._app(scope, receive, answer)
        else:
            await PlainTextResponse(f"{_STALE}\n", HTTPStatus.UNAUTHORIZED)(scope, receive, answer)

    def _is_host(self, headers: Headers) -> bool:
        try:
            return urlsplit(f"//{headers.get('host', '')}").hostname in self._hosts
        except ValueError:
            return False

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    def _welcome(self, response: Response, url: URL) -> Response:
        """Return the response with the cookie."""
        self.entered()
        response.set_cookie(_cookie(url), self._token, httponly=True, samesite="strict")
        return response


def _foreign(headers: Headers) -> str:
    """Return why a request from another site's page is refused; empty for others."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    is_foreign = origin is not None and origin.partition("://")[2] != headers.get("host")
    if is_foreign or (site == "cross-site" and headers.get("sec-fetch-mode") != "navigate"):
        return "a page of another site asked for this"
    return ""


async def _token_of(request: Request) -> str:
    """Return the token of a form; empty if it has none, or is too long or too slow."""
    body = bytearray()
    try:
        async with asyncio.timeout(_FORM_TIMEOUT_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > _LONGEST_FORM:
                    return ""
    except (TimeoutError, ClientDisconnect):
        return ""
    return dict(parse_qsl(body.decode("ascii", "replace"))).get(PARAMETER, "")


def _without_token(url: URL) -> str:
    """Return the path and query of an address, without the token."""
    query = urlencode([pair for pair in parse_qsl(url.query) if pair[0] != PARAMETER])
    where = url.path + (f"?{query}" if query else "")
    # One slash: two would begin the name of another host.
    return "/" + where.lstrip("/")


def _cookie(url: URL) -> str:
    """Return the cookie's name: on 127.0.0.1 all ports share their cookies."""
    return f"fairlead-ui-{url.port or 80}"
