"""Which answers say that a call is made again, as client-go does, and after how many seconds."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar

from webhook.errors import ClusterError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

# Attempts per call while the server answers 429, as in client-go.
TRIES: Final = 10
# Seconds. The maximum pause that a server can request.
LONGEST_PAUSE: Final = 300.0


def retry_after_seconds(value: object) -> float | None:
    """Return the value of Retry-After in seconds; the API server never sends a date."""
    text = str(value)
    return float(text) if text.isascii() and text.isdigit() and text != "0" else None


def pause_before_retry(status: int | None, retry_after: float | None, tries: int) -> float | None:
    """Return the seconds until a call is made again that has been made `tries` times.

    None: it is not. A call that is answered with 429 and Retry-After had no effect.
    """
    if status != HTTPStatus.TOO_MANY_REQUESTS or retry_after is None or tries >= TRIES:
        return None
    return min(retry_after, LONGEST_PAUSE)


async def retry_throttled(
    call: Callable[[], Awaitable[T]], pause: Callable[[float], Awaitable[object]]
) -> T:
    """Return the result of a call, which is made again while the server is too busy to take it.

    `pause` gets the seconds.
    """
    tries = 0
    while True:
        tries += 1
        try:
            return await call()
        except ClusterError as error:
            seconds = pause_before_retry(error.status, error.retry_after, tries)
            if seconds is None:
                raise
        await pause(seconds)
