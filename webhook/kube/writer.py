"""Writes to the API server: rate limited, and only while this process may write."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeAlias

from webhook.errors import ClusterError, NotLeading
from webhook.kube.answers import TIMEOUT, is_busy
from webhook.kube.client import Client
from webhook.kube.throttling import LONGEST_PAUSE, retry_throttled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from webhook.kube.rate_limit import TokenBucket

P = ParamSpec("P")

# The server is healthy, although the object existed, was deleted or has changed.
_FINE: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)


def _limited(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, dict[str, Any]]],
) -> Callable[Concatenate[Writer, P], Coroutine[Any, Any, dict[str, Any]]]:
    """Return the method of a client, whose first argument is a path, as one of a Writer."""

    async def limited(writer: Writer, /, *args: P.args, **options: P.kwargs) -> dict[str, Any]:
        call = getattr(writer.client, method.__name__)
        return await writer.call_in_turn(str(args[0]), lambda: call(*args, **options))

    return limited


@dataclass(eq=False, repr=False)
class Writer:
    """Client's create, replace, patch and delete behind a token bucket; namespaces take turns.

    Every call checks `may_write` just before it is sent, and raises NotLeading instead of sending
    it. A call that was answered with 429 and Retry-After had no effect, and is tried up to 10
    times; no other call is retried. `throttled` counts these answers.
    """

    client: Client
    bucket: TokenBucket
    may_write: Callable[[], bool] = lambda: True
    throttled: int = field(default=0, init=False)

    create = _limited(Client.create)
    replace = _limited(Client.replace)
    patch = _limited(Client.patch)
    delete = _limited(Client.delete)

    async def call_in_turn(
        self, path: str, call: Callable[[], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        """Return the result of a call about the object or collection at `path`."""
        _, _, below = path.partition("/namespaces/")
        namespace = below.partition("/")[0]
        return await retry_throttled(lambda: self._once(namespace, call), _in_turn)

    async def _once(
        self, namespace: str, call: Callable[[], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        passed = await self.bucket.take(namespace)
        if not self.may_write():
            self.bucket.ended(passed)
            raise NotLeading("nothing is written without the lease; another may hold it by now")
        try:
            answer = await call()
        except ClusterError as error:
            self._note(passed, error)
            raise
        except BaseException:
            self.bucket.ended(passed)
            raise
        self.bucket.succeeded(passed)
        return answer

    def _note(self, passed: float, error: ClusterError) -> None:
        self.throttled += error.status == HTTPStatus.TOO_MANY_REQUESTS
        if error.status is None or is_busy(error) or error.reason == TIMEOUT:
            self.bucket.refused(passed, min(error.retry_after or 0.0, LONGEST_PAUSE))
        elif error.status in _FINE:
            self.bucket.succeeded(passed)
        else:
            self.bucket.ended(passed)


async def _in_turn(_seconds: float) -> None:
    """Do not wait: the bucket lets nothing pass before."""


# What writes objects: where one process alone writes, the client itself.
Writes: TypeAlias = Writer | Client
