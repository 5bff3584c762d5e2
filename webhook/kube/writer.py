"""The verbs that change something, each in its turn and only while we may."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from webhook.errors import ClusterError, NotLeading
from webhook.kube.answers import TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from webhook.kube.client import Client, PatchType
    from webhook.kube.token_bucket import TokenBucket

# How often one call is tried while the server answers 429: as often as client-go does.
TRIES: Final = 10
# Seconds. Longer quiet than this is not kept, whoever asks for it.
LONGEST_PAUSE: Final = 300.0

_OVERLOADED: Final = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
# The server worked well, though the object was there already, or gone, or changed meanwhile.
_FINE: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)


class Writer:
    """Client's create, replace, patch and delete behind a token bucket.

    Every call asks `may_write` when its turn has come, just before it is sent, and raises
    NotLeading instead of sending it. A call that the server answered with 429 and Retry-After has
    done nothing, and is tried again, up to 10 times; nothing else is.
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
        """How many answers of 429 there have been."""
        return self._throttled

    async def create(
        self, path: str, body: Mapping[str, Any], *, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """As Client.create."""
        return await self._in_turn(lambda: self._client.create(path, body, query=query))

    async def replace(
        self, path: str, body: Mapping[str, Any], *, query: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """As Client.replace."""
        return await self._in_turn(lambda: self._client.replace(path, body, query=query))

    async def patch(
        self,
        path: str,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        patch_type: PatchType,
        *,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """As Client.patch."""
        return await self._in_turn(lambda: self._client.patch(path, body, patch_type, query=query))

    async def delete(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """As Client.delete."""
        return await self._in_turn(lambda: self._client.delete(path, body, query=query))

    async def _in_turn(self, call: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        for _ in range(TRIES - 1):
            try:
                return await self._once(call)
            except ClusterError as error:
                if error.status != HTTPStatus.TOO_MANY_REQUESTS or error.retry_after is None:
                    raise
        return await self._once(call)

    async def _once(self, call: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        passed = await self._bucket.take()
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
