"""An app for a connection that is not to be used: every request is refused, for one reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


@dataclass(frozen=True, slots=True)
class Refused:
    """An ASGI app that answers with a status and a reason, and closes the connection."""

    status: int
    reason: str

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer without reading the body."""
        body = f"{self.reason}\n".encode()
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
