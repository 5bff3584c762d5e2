"""One HTTP request to the API server, with current credentials."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

import aiohttp
import orjson
from kubernetes.aio.client.rest import RESTClientObject

from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from kubernetes.aio.client.configuration import Configuration

JSON = "application/json"


class _Answer(aiohttp.ClientResponse):
    """A response whose connection is aborted at once when it is closed early."""

    def close(self) -> None:
        """Abort the connection; after a complete answer it is already back in the pool."""
        # A graceful TLS shutdown would wait for the server, longer than the client exists.
        if self.connection and self.connection.transport:
            self.connection.transport.abort()
        super().close()


# The default of aiohttp. The kubernetes package uses 2 MiB per connection so that one line fits,
# but we split lines ourselves. Its trust_env would read ~/.netrc for every request, and fail if
# that has an entry for the host, because then there are two authorizations.
_SESSION: Final = {"trust_env": False, "read_bufsize": 2**16, "response_class": _Answer}


class _Connections(RESTClientObject):
    """The kubernetes package's TLS and connections, without its request function.

    That function encodes bodies with the standard library, among other work per call.
    """

    def __init__(self, configuration: Configuration) -> None:
        configuration.client_session_kwargs = dict(_SESSION)
        super().__init__(configuration)

    def session(self) -> aiohttp.ClientSession:
        """Return the open session; the first call, which has an event loop, opens it."""
        if self.pool_manager is None:
            # The package's own request function calls it; nothing public opens a session.
            self.pool_manager = self._create_pool_manager()
        return self.pool_manager

    def options(self) -> dict[str, Any]:
        options = {
            "proxy": self.proxy,
            "proxy_headers": self.proxy_headers,
            "server_hostname": self.configuration.tls_server_name,
        }
        return {name: value for name, value in options.items() if value}


class Transport:
    """Connections to one API server. `credentials` is called on opening, and after each 401.

    `trace` gets a line about each request: method, address, status and time.
    """

    def __init__(
        self,
        credentials: Callable[[], Awaitable[Configuration]],
        trace: Callable[[str], None] | None = None,
    ) -> None:
        self._credentials = credentials
        self._trace = trace
        self._configuration: Configuration
        self._connections: _Connections
        self._renewal = asyncio.Lock()

    async def open(self) -> None:
        """Read credentials and trusted certificates; send nothing. Raises ClusterError."""
        self._configuration = await self._credentials()
        try:
            self._connections = _Connections(self._configuration)
        except (OSError, ValueError) as error:
            raise ClusterError(f"the cluster's certificates cannot be read: {error}") from None

    async def close(self) -> None:
        await self._connections.close()

    async def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: object = None,
        content_type: str = JSON,
        *,
        accept: str = JSON,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """Send one request; the caller reads and closes the response, whatever its status.

        After a 401 the request is retried once if the credentials have changed, because tokens
        expire. Raises aiohttp's errors.
        """
        session, options = self._connections.session(), self._connections.options()
        data = None if body is None else orjson.dumps(body)
        url = f"{self._configuration.host}{path}?{urlencode(query, quote_via=quote)}"
        headers = {"Content-Type": content_type, "Accept": accept, "User-Agent": "fairlead"}

        async def once(authorization: str) -> aiohttp.ClientResponse:
            authorization_headers = {"Authorization": authorization} if authorization else {}
            begin, answered = time.monotonic(), "no answer"
            try:
                response = await session.request(
                    method,
                    url,
                    headers={**headers, **authorization_headers},
                    data=data,
                    timeout=limits,
                    **options,
                )
                answered = f"{response.status} {response.reason or ''}".strip()
            finally:
                if self._trace:
                    took = f"{1000 * (time.monotonic() - begin):.0f} ms"
                    # No header and no body: these have tokens and Secrets.
                    self._trace(f"{method} {url}: {answered} in {took}")
            return response

        used = await self._authorization()
        response = await once(used)
        if response.status == HTTPStatus.UNAUTHORIZED:
            # Read the body, so that the connection can be reused.
            await response.read()
            renewed = await self._renew(used)
            if renewed != used:
                response = await once(renewed)
        return response

    async def _authorization(self) -> str:
        """Return the Authorization header, or "". In a pod the token is read once a minute."""
        setting = (await self._configuration.auth_settings()).get("BearerToken")
        # A token file may end in a newline, which aiohttp rejects in a header.
        return ((setting and setting["value"]) or "").strip()

    async def _renew(self, used: str) -> str:
        """Return the header to try after a 401; read the credentials once for all failed calls."""
        async with self._renewal:
            if (current := await self._authorization()) != used:
                return current
            fresh = await self._credentials()
            self._configuration.api_key = fresh.api_key
            self._configuration.refresh_api_key_hook = fresh.refresh_api_key_hook
            return await self._authorization()
