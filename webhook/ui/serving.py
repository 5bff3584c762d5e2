"""Serve the pages on loopback, under a name of their own."""

from __future__ import annotations

import asyncio
import errno
import logging
import secrets
import socket
from typing import TYPE_CHECKING, Final

from webhook.errors import ServingError
from webhook.server.connection_limiter import ConnectionLimiter
from webhook.server.drain import Drain, drain_on_signals
from webhook.server.listener import bind, serve_people

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp

    from webhook.ui.app import Pages

# Connections at one time. Beyond, the limiter closes one that waits for nothing: so whoever sends
# nothing, or no token, keeps nobody out.
MOST_CONNECTIONS: Final = 100
# Pages that are open are never done.
_FINISH_SECONDS: Final = 1.0
# Ports of 127.0.0.1 that are tried until one is free at ::1 too.
_TRIES: Final = 20
_HAS_NO_SUCH_ADDRESS: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)


def own_name() -> str:
    """Return a host name that only these pages have, and that nobody can guess.

    Browsers resolve names in .localhost to loopback themselves (RFC 6761, section 6.3): Chromium
    always, Firefox since 84. Safari asks macOS, which knows none of them.
    """
    return f"fairlead-{secrets.token_hex(10)}.localhost"


def listen(port: int) -> list[socket.socket]:
    """Listen at 127.0.0.1, and at ::1 where the machine has it.

    Browsers try both for a name in .localhost: whoever listened at the other one would get the
    cookie. Port 0 takes one that is free at both. Raises ServingError.
    """
    for _ in range(_TRIES):
        first = bind("127.0.0.1", port)
        if not _has_ipv6_loopback():
            return [first]
        try:
            return [first, bind("::1", first.getsockname()[1])]
        except ServingError:
            first.close()
            if port:
                raise
    raise ServingError("no port is free at 127.0.0.1 and ::1: choose one with --port")


def _has_ipv6_loopback() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as trial:
            trial.bind(("::1", 0))
    except OSError as error:
        return error.errno not in _HAS_NO_SUCH_ADDRESS
    return True


def serve(pages: Pages, app: ASGIApp, sockets: Sequence[socket.socket]) -> None:
    """Serve the pages by `app`, their guard, until SIGINT or SIGTERM."""
    for name in ("uvicorn.error", "webhook.server.listener"):
        logging.getLogger(name).addFilter(_is_error)
    asyncio.run(_serve(pages, app, sockets))


async def _serve(pages: Pages, app: ASGIApp, sockets: Sequence[socket.socket]) -> None:
    drain = Drain(grace=0)
    with drain_on_signals(drain):
        async with pages.running():
            await serve_people(
                app,
                sockets=sockets,
                limiter=ConnectionLimiter(MOST_CONNECTIONS),
                drain=drain,
                finish_seconds=_FINISH_SECONDS,
            )


def _is_error(record: logging.LogRecord) -> bool:
    """Return False for what is said of pages that are open at the end: they are cut off."""
    cancelled = record.exc_info and record.exc_info[0] is asyncio.CancelledError
    return not (cancelled or record.getMessage() == "requests cut off")
