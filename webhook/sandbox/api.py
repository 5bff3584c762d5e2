"""A few plain calls to the sandbox's own API server."""

from __future__ import annotations

import http.client
import json
import select
import ssl
import threading
from typing import TYPE_CHECKING, Any, Final

from webhook.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_JSON: Final = "application/json"
_MERGE_PATCH: Final = "application/merge-patch+json"


class Api:
    """The API server on 127.0.0.1:port, as the administrator. One kept connection a thread.

    The controller manager and the scheduler tell their health in the same way, so that ready()
    serves for them too.
    """

    def __init__(self, port: int, credentials: Path) -> None:
        self._port = port
        self._context = ssl.create_default_context(cafile=str(credentials / "ca.crt"))
        self._context.load_cert_chain(credentials / "admin.crt", credentials / "admin.key")
        # By thread. Each is taken out while it is used, and comes back after a whole answer.
        self._kept: dict[int, http.client.HTTPSConnection] = {}

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> tuple[int, Any]:
        """Status and decoded body of one request. Raises OSError if nobody answers.

        A body that is not JSON (readyz answers "ok") comes back as text.
        """
        sent = None if body is None else json.dumps(body)
        headers = {"Content-Type": content_type, "Accept": accept}
        try:
            status, text = self._exchange(method, path, sent, headers)
        except http.client.HTTPException as error:
            raise ConnectionError(f"{method} {path}: {error!r}") from error
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text.decode(errors="replace")

    def get(self, path: str) -> Any:
        """The decoded object, or None if there is none. Raises SandboxError on any other status."""
        status, body = self.call("GET", path)
        return None if status == http.HTTPStatus.NOT_FOUND else _accepted("GET", path, status, body)

    def create(self, path: str, body: object) -> Any:
        """The object as created. Raises SandboxError with the server's message if it refuses."""
        return _accepted("POST", path, *self.call("POST", path, body))

    def patch(self, path: str, body: object) -> Any:
        """The object with `body` merged into it. Raises SandboxError if the server refuses."""
        answer = self.call("PATCH", path, body, content_type=_MERGE_PATCH)
        return _accepted("PATCH", path, *answer)

    def delete(self, path: str) -> Any:
        """What the server answers; None if there is nothing. Raises SandboxError if it refuses."""
        status, body = self.call("DELETE", path)
        if status == http.HTTPStatus.NOT_FOUND:
            return None
        return _accepted("DELETE", path, status, body)

    def ready(self) -> bool:
        """Whether it says that it is ready; False too while nobody answers."""
        try:
            return self.call("GET", "/readyz")[0] == http.HTTPStatus.OK
        except OSError:
            return False

    def close(self) -> None:
        """Close every connection that is kept. A later call opens another."""
        while self._kept:
            self._kept.popitem()[1].close()

    def _exchange(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        kept = self._take()
        connection = kept or http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=30, context=self._context
        )
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            text = response.read()
        except (ConnectionError, ssl.SSLError):
            connection.close()
            # The server has closed it in this moment. What may have been done is not asked twice.
            if kept and method == "GET":
                return self._exchange(method, path, body, headers)
            raise
        except BaseException:
            connection.close()
            raise
        self._kept[threading.get_ident()] = connection
        return response.status, text

    def _take(self) -> http.client.HTTPSConnection | None:
        """Take this thread's connection if the server still holds it open."""
        kept = self._kept.pop(threading.get_ident(), None)
        if kept is None or kept.sock is None:
            return None
        poll = select.poll()
        poll.register(kept.sock, select.POLLIN)
        # No answer is due, so what can be read is its end.
        if not poll.poll(0):
            return kept
        kept.close()
        return None


def _accepted(method: str, path: str, status: int, body: Any) -> Any:
    if status >= http.HTTPStatus.BAD_REQUEST:
        message = body.get("message", body) if isinstance(body, dict) else body
        raise SandboxError(f"the sandbox's API server refused {method} {path}: {message}")
    return body
