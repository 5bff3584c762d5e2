"""Wait for what becomes of a Run, and say meanwhile what it waits for."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from webhook.errors import ClusterError
from webhook.run.model import RunStatus
from webhook.run_client.submit import run_path
from webhook.shortening import harmless

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from webhook.kube.client import Client

# Seconds between two looks; and for how long the API server may not answer.
LOOK_SECONDS: Final = 1.0
SILENCE_SECONDS: Final = 60.0


class Ending(NamedTuple):
    """How the waiting ended. status: the last one that was seen.

    reached: it is as wanted. ended: the Run is over, otherwise than wanted. gone: it, or the Run of
    that uid, is deleted. late: time is up.
    """

    how: Literal["reached", "ended", "gone", "late"]
    status: RunStatus


async def follow(
    client: Client,
    namespace: str,
    name: str,
    reached: Callable[[RunStatus], bool],
    *,
    timeout: float | None = None,  # noqa: ASYNC109 (what a person gives)
    report: Callable[[str], None] = lambda _: None,
) -> Ending:
    """Return when the Run is as wanted, over, or gone, or after `timeout` seconds.

    `report` gets each new phase and message. Raises as `looks`.
    """
    begun, printed_line, status = time.monotonic(), "", RunStatus()
    async for new_status in looks(client, namespace, name):
        if new_status is None:
            return Ending("gone", status)
        status = new_status
        line = f"{status.phase}: {harmless(status.message)}".removesuffix(": ")
        if line != printed_line:
            report(f"run {name}: {line}")
            printed_line = line
        if reached(status):
            return Ending("reached", status)
        if status.ended:
            return Ending("ended", status)
        if timeout is not None and time.monotonic() - begun >= timeout:
            break
    return Ending("late", status)


async def looks(client: Client, namespace: str, name: str) -> AsyncIterator[RunStatus | None]:
    """Yield the status of a Run again and again, without an answer the last one; None once it, or
    the Run of that uid, is gone.

    Raises ClusterError if the first request fails, and later if there is no answer for a minute.
    """
    answered = time.monotonic()
    uid, status = "", RunStatus()
    while True:
        try:
            raw = await client.find(run_path(namespace, name))
        except ClusterError as error:
            refused = error.status is not None and error.status < 500
            if refused or not uid or time.monotonic() - answered > SILENCE_SECONDS:
                raise
        else:
            answered = time.monotonic()
            if raw is None or raw["metadata"]["uid"] != (uid or raw["metadata"]["uid"]):
                yield None
                return
            uid = raw["metadata"]["uid"]
            status = RunStatus.read(raw.get("status"))
            if status.phase == "Suspended" and not raw["spec"].get("suspend"):
                resumed = status.observed_generation < raw["metadata"]["generation"]
                status = RunStatus() if resumed else status
        yield status
        await asyncio.sleep(LOOK_SECONDS)
