"""One request to the API server, sent with credentials that are current."""

from __future__ import annotations

import asyncio
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
    """An answer whose connection ends at once when it is given up, wherever that is."""

    def close(self) -> None:
        """Break the connection off; one that carried a whole answer is in the pool by now."""
        # A polite end of TLS would wait for the server's, beyond the life of the client.
        if self.connection and self.connection.transport:
            self.connection.transport.abort()
        super().close()


# aiohttp's own default. The package asks for 2 MiB a connection, so that one line fits: we split
# lines ourselves. Its trust_env would read ~/.netrc at every request, and fail where that has an
# entry for the host, for then there are two authorizations.
_SESSION: Final = {"trust_env": False, "read_bufsize": 2**16, "response_class": _Answer}


class _Connections(RESTClientObject):
    """The package's TLS and connections, without its way to send.

    That encodes bodies with the standard library, among other work at each call.
    """

    def __init__(self, configuration: Configuration) -> None:
        configuration.client_session_kwargs = dict(_SESSION)
        super().__init__(configuration)

    def session(self) -> aiohttp.ClientSession:
        """The open session; opened by the first call, which has an event loop."""
        if self.pool_manager is None:
            self.pool_manager = self._create_pool_manager()
        return self.pool_manager

    def options(self) -> dict[str, Any]:
        """What every request says of its way."""
        found = {
            "proxy": self.proxy,
            "proxy_headers": self.proxy_headers,
            "server_hostname": self.configuration.tls_server_name,
        }
        return {name: value for name, value in found.items() if value}


class Transport:
    """Connections to one API server. `credentials` is asked on opening, and after each 401."""

    def __init__(self, credentials: Callable[[], Awaitable[Configuration]]) -> None:
        self._credentials = credentials
        self._configuration: Configuration
        self._connections: _Connections
        self._renewal = asyncio.Lock()

    async def open(self) -> None:
        """Read credentials and trusted certificates; nothing is sent yet. Raises ClusterError."""
        self._configuration = await self._credentials()
        try:
            self._connections = _Connections(self._configuration)
        except (OSError, ValueError) as error:
            raise ClusterError(f"the cluster's certificates cannot be read: {error}") from None

    async def close(self) -> None:
        """Close every connection."""
        await self._connections.close()

    async def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: object = None,
        content_type: str = JSON,
        *,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """Send one request; the answer, whatever its status, is the caller's to read and close.

        A 401 is tried once more if the credentials have changed since: tokens expire. Raises what
        aiohttp raises.
        """
        session, options = self._connections.session(), self._connections.options()
        data = None if body is None else orjson.dumps(body)
        url = f"{self._configuration.host}{path}?{urlencode(query, quote_via=quote)}"
        headers = {"Content-Type": content_type, "Accept": JSON, "User-Agent": "fairlead"}

        async def once(authorization: str) -> aiohttp.ClientResponse:
            own = {"Authorization": authorization} if authorization else {}
            return await session.request(
                method, url, headers={**headers, **own}, data=data, timeout=limits, **options
            )

        used = await self._authorization()
        response = await once(used)
        if response.status == HTTPStatus.UNAUTHORIZED:
            # Read, so that it can be asked for again and its connection be used again.
            await response.read()
            renewed = await self._renew(used)
            if renewed != used:
                response = await once(renewed)
        return response

    async def _authorization(self) -> str:
        """The Authorization header, or "". In a pod the package reads its token once a minute."""
        setting = (await self._configuration.auth_settings()).get("BearerToken")
        # A token's file may end in a newline; aiohttp refuses such a header.
        return ((setting and setting["value"]) or "").strip()

    async def _renew(self, used: str) -> str:
        """The header to try after a 401: credentials read anew, once for all calls that failed."""
        async with self._renewal:
            if (current := await self._authorization()) != used:
                return current
            fresh = await self._credentials()
            self._configuration.api_key = fresh.api_key
            self._configuration.refresh_api_key_hook = fresh.refresh_api_key_hook
            return await self._authorization()
