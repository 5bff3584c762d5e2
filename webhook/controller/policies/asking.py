"""Asks every replica of the webhook what it has counted, and which policies it serves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

import aiohttp

from webhook.controller.policies.reading import report_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from webhook.kube.replicas import Replica
    from webhook.policy.reporting.counting import Report

# Seconds that one replica has; within a cluster it takes some milliseconds.
PATIENCE: Final = 5.0
AT_ONCE: Final = 8
# Bytes. With 1,000 policies in 1,000 namespaces there are some ten million.
_LONGEST: Final = 64 * 2**20


class Look(NamedTuple):
    """The replicas that there are, and what those said that answered, by key."""

    replicas: Sequence[Replica]
    reports: Mapping[str, Report]


async def ask(
    replicas: Callable[[], Awaitable[Sequence[Replica]]], *, patience: float = PATIENCE
) -> Look:
    """Look once, at several at a time. Raises ClusterError if it is not known who there is.

    A replica that does not answer, or no metrics, has no report; the next look may find it.
    """
    found = await replicas()
    turns = asyncio.Semaphore(AT_ONCE)
    limits = aiohttp.ClientTimeout(total=patience)
    async with aiohttp.ClientSession(timeout=limits, auto_decompress=False) as session:

        async def one(replica: Replica) -> Report | None:
            async with turns:
                try:
                    text = await _text(session, replica)
                    # It takes milliseconds with many policies.
                    return await asyncio.to_thread(report_of, text)
                except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
                    return None

        reports = await asyncio.gather(*(one(replica) for replica in found))
    said = zip(found, reports, strict=True)
    return Look(found, {replica.key: report for replica, report in said if report is not None})


async def _text(session: aiohttp.ClientSession, replica: Replica) -> str:
    host = f"[{replica.host}]" if ":" in replica.host else replica.host
    url = f"http://{host}:{replica.port}/metrics"
    async with session.get(url, allow_redirects=False) as response:
        if response.status != 200:
            raise ValueError(f"{url} answered {response.status}")
        text = bytearray()
        async for chunk in response.content.iter_any():
            text += chunk
            if len(text) > _LONGEST:
                raise ValueError(f"{url} does not come to an end")
    return text.decode("utf-8", "replace")
