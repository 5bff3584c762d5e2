"""A few plain calls to the sandbox's own API server."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import TYPE_CHECKING, Any

from webhook.errors import SandboxError

if TYPE_CHECKING:
    from pathlib import Path


class Api:
    """The API server on 127.0.0.1:port, as the administrator. One connection a call.

    The controller manager and the scheduler tell their health in the same way, so that ready()
    serves for them too.
    """

    def __init__(self, port: int, credentials: Path) -> None:
        self._port = port
        self._context = ssl.create_default_context(cafile=str(credentials / "ca.crt"))
        self._context.load_cert_chain(credentials / "admin.crt", credentials / "admin.key")

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and decoded body of one request. Raises OSError if nobody answers.

        A body that is not JSON (readyz answers "ok") comes back as text.
        """
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._port, timeout=30, context=self._context
        )
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, {"Content-Type": "application/json"})
            response = connection.getresponse()
            text = response.read()
        except http.client.HTTPException as error:
            raise ConnectionError(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()
        try:
            return response.status, json.loads(text)
        except ValueError:
            return response.status, text.decode(errors="replace")

    def get(self, path: str) -> Any:
        """The decoded object, or None if there is none. Raises SandboxError on any other status."""
        status, body = self.call("GET", path)
        return None if status == http.HTTPStatus.NOT_FOUND else _accepted("GET", path, status, body)

    def create(self, path: str, body: object) -> Any:
        """The object as created. Raises SandboxError with the server's message if it refuses."""
        return _accepted("POST", path, *self.call("POST", path, body))

    def ready(self) -> bool:
        """Whether it says that it is ready; False too while nobody answers."""
        try:
            return self.call("GET", "/readyz")[0] == http.HTTPStatus.OK
        except OSError:
            return False


def _accepted(method: str, path: str, status: int, body: Any) -> Any:
    if status >= http.HTTPStatus.BAD_REQUEST:
        message = body.get("message", body) if isinstance(body, dict) else body
        raise SandboxError(f"the sandbox's API server refused {method} {path}: {message}")
    return body
