"""Writes to the API server: rate limited, and only while this process may write."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook.errors import ClusterError, NotLeading
from webhook.kube.answers import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from webhook.kube.client import Client, PatchType
    from webhook.kube.rate_limit import TokenBucket

# Attempts per call while the server answers 429, as in client-go.
TRIES: Final = 10
# Seconds. The maximum pause that a server can request.
LONGEST_PAUSE: Final = 300.0

_OVERLOADED: Final = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
# The server is healthy, although the object existed, was deleted or has changed.
_FINE: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)


class Writer:
    """Client's create, replace, patch and delete behind a token bucket; namespaces take turns.

    Every call checks `may_write` just before it is sent, and raises NotLeading instead of sending
    it. A call that was answered with 429 and Retry-After had no effect, and is tried up to 10
    times; no other call is retried.
    """

    def __init__(
        self, client: Client, bucket: TokenBucket, *, may_write: Callable[[], bool] = lambda: True
    ) -> None:
        self._client = client
        self._bucket = bucket
        self._may_write = may_write
        self._throttled = 0

    @property
    def throttled(self) -> int:
        """The number of 429 answers."""
        return self._throttled

    async def create(
        self, path: str, body: Mapping[str, Any], *, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Call Client.create."""
        return await self._in_turn(path, lambda: self._client.create(path, body, query=query))

    async def replace(
        self, path: str, body: Mapping[str, Any], *, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Call Client.replace."""
        return await self._in_turn(path, lambda: self._client.replace(path, body, query=query))

    async def patch(
        self,
        path: str,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        patch_type: PatchType,
        *,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Call Client.patch."""
        return await self._in_turn(
            path, lambda: self._client.patch(path, body, patch_type, query=query)
        )

    async def delete(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Call Client.delete."""
        return await self._in_turn(path, lambda: self._client.delete(path, body, query=query))

    async def _in_turn(
        self, path: str, call: Callable[[], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        _, _, below = path.partition("/namespaces/")
        namespace = below.partition("/")[0]
        for _ in range(TRIES - 1):
            try:
                return await self._once(namespace, call)
            except ClusterError as error:
                if error.status != HTTPStatus.TOO_MANY_REQUESTS or error.retry_after is None:
                    raise
        return await self._once(namespace, call)

    async def _once(
        self, namespace: str, call: Callable[[], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        passed = await self._bucket.take(namespace)
        if not self._may_write():
            self._bucket.ended(passed)
            raise NotLeading("nothing is written without the lease; another may hold it by now")
        try:
            answer = await call()
        except ClusterError as error:
            self._note(passed, error)
            raise
        except BaseException:
            self._bucket.ended(passed)
            raise
        self._bucket.succeeded(passed)
        return answer

    def _note(self, passed: float, error: ClusterError) -> None:
        self._throttled += error.status == HTTPStatus.TOO_MANY_REQUESTS
        if error.status is None or error.status in _OVERLOADED or error.reason == TIMEOUT:
            self._bucket.refused(passed, min(error.retry_after or 0.0, LONGEST_PAUSE))
        elif error.status in _FINE:
            self._bucket.succeeded(passed)
        else:
            self._bucket.ended(passed)
