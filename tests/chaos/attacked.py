"""Strangers on the network attack one replica, at its defaults, while pods are created."""

from __future__ import annotations

import asyncio
import random
import ssl
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from tests.bench import pods, reviews
from tests.chaos.arena import served
from tests.chaos.connection import post
from tests.chaos.ledger import FAILED, NEVER, Ledger
from tests.chaos.overload import DEAD, PEAK, too_much_memory, watched
from tests.chaos.replica import HEALTH_PORT, Replica
from tests.chaos.stage import Scenario, Stage, Tally, meanwhile
from tests.chaos.wire import PORT
from tests.objects import required_affinity
from tests.server.hostile import REQUESTS
from webhook import names
from webhook.interception import PATH
from webhook.validating import WORKLOADS_PATH

SECONDS: Final = "seconds"
ATTACKS: Final = "connections of attackers"
NOT_READY: Final = "looks at its readiness that found it not ready"
LOOKS: Final = "looks at its readiness"
P99: Final = "ms at the 99th percentile of creations under"
_NAME: Final = f"{names.WEBHOOK}.{names.NAMESPACE}.svc"
_HEAD: Final = (
    f"POST {PATH} HTTP/1.1\r\nHost: {_NAME}\r\nContent-Type: application/json\r\n".encode()
)
_LARGE_BYTES: Final = 3_700_000
# Creations a second: attackers, API server and load share the machine with the replica.
_RATE: Final = 25.0
# Longer than the server waits for an answer to be read; an end is not seen by who does not read.
_DEAF_SECONDS: Final = 12.0
# Connections that fill every place, and those that come all the time.
_IDLE: Final = 1000
_IDLE_AND_BARE: Final = 1160
# Seconds after which an attacker whose connection was closed comes back.
_BACK: Final = 0.2


@dataclass(frozen=True)
class _Target:
    """The replica's address, and how to speak to it."""

    address: str
    context: ssl.SSLContext

    async def connect(self, *, tls: bool = True) -> asyncio.StreamWriter:
        """A connection. Raises OSError."""
        context, name = (self.context, _NAME) if tls else (None, None)
        # Little is read before it is paused: the server has to keep the answer.
        _, writer = await asyncio.open_connection(
            self.address, PORT, ssl=context, server_hostname=name, limit=1
        )
        return writer

    @asynccontextmanager
    async def connected(self, *, tls: bool = True) -> AsyncIterator[asyncio.StreamWriter]:
        """A connection that is aborted in the end. Raises OSError."""
        writer = await self.connect(tls=tls)
        try:
            yield writer
        finally:
            writer.transport.abort()


# What one attacker does over and over, given the target and a number of his own.
_Attack = Callable[[_Target, int], Awaitable[None]]


def _pod(**spec: Any) -> bytes:
    pod = reviews.as_sent(pods.manifest(0))
    pod["spec"].update(spec)
    return reviews.review(pod, "a-review")


def _terms(values: list[list[str]]) -> dict[str, Any]:
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": each}]} for each in values
    ]
    return required_affinity(*terms)


_LARGE: Final = post(PATH, _pod(affinity=_terms([["z" * _LARGE_BYTES]])), _NAME)
_SMALL: Final = post(PATH, _pod(), _NAME)
_HEAVY: Final = post(PATH, _pod(affinity=_terms([[f"z{at}"] for at in range(1024)])), _NAME)
_TOO_HEAVY: Final = post(PATH, _pod(affinity=_terms([[f"z{at}"] for at in range(20_000)])), _NAME)
# Small parts, which take many times their bytes once they are read.
_MANY_VALUES: Final = _pod(affinity=_terms([["a-value-of-a-node"] * 200_000]))
_TOO_MANY_VALUES: Final = _pod(digits="0" * 19, values=[{}] * 2_000_000)


async def _deaf(target: _Target, _number: int, sent: bytes = _LARGE) -> None:
    async with target.connected() as writer:
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(sent)
        async with asyncio.timeout(_DEAF_SECONDS):
            await writer.wait_closed()


async def _trailers(target: _Target, _number: int) -> None:
    async with target.connected() as writer:
        writer.write(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
        # A hundred times what is allowed; after an abort nothing tells that it is in vain.
        for _ in range(300):
            writer.write(b"x: y\r\n" * 1000)
            await writer.drain()
            await asyncio.sleep(0)


async def _bodies(target: _Target, _number: int) -> None:
    """Six megabytes, and never the last byte of them."""
    async with target.connected() as writer:
        size = 6_000_000
        writer.write(_HEAD + b"Content-Length: %d\r\n\r\n" % size)
        for _ in range(size // 60_000 - 1):
            writer.write(b" " * 60_000)
            await writer.drain()
            await asyncio.sleep(0)
        async with asyncio.timeout(60):
            await writer.wait_closed()


async def _silent(target: _Target, number: int) -> None:
    async with target.connected(tls=number % 2 == 0) as writer:
        writer.write(_HEAD if number % 4 == 0 else b"")
        async with asyncio.timeout(60):
            await writer.wait_closed()


async def _heavy(target: _Target, number: int) -> None:
    await _ask(target, _HEAVY if number % 2 else _TOO_HEAVY)


async def _unknown_namespace(target: _Target, number: int) -> None:
    space = f"unknown-{number}-{time.monotonic_ns()}".encode()
    review = _MANY_VALUES.replace(reviews.NAMESPACE.encode(), space)
    await _ask(target, post(PATH, review, _NAME))


async def _ask(target: _Target, request: bytes) -> None:
    reader, writer = await asyncio.open_connection(
        target.address, PORT, ssl=target.context, server_hostname=_NAME
    )
    try:
        async with asyncio.timeout(30):
            writer.write(request)
            await reader.readuntil(b"\r\n")
    finally:
        writer.transport.abort()


async def _idle_and_bare(target: _Target, number: int) -> None:
    """A thousand are answered once and stay; others come without a word, again and again."""
    idle = number % _IDLE_AND_BARE < _IDLE
    writer = await target.connect(tls=idle)
    try:
        if idle:
            writer.write(b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
            async with asyncio.timeout(60):
                await writer.wait_closed()
    finally:
        if idle:
            writer.transport.abort()
        else:
            asyncio.get_running_loop().call_later(1, writer.transport.abort)


async def _too_many_values(target: _Target, number: int) -> None:
    path = (PATH, WORKLOADS_PATH)[number % 2]
    await _ask(target, post(path, _TOO_MANY_VALUES, _NAME))


async def _scrapes(target: _Target, _number: int) -> None:
    reader, writer = await asyncio.open_connection(target.address, HEALTH_PORT)
    try:
        async with asyncio.timeout(5):
            while True:
                writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().split(b"content-length:")[1].split()[0]))
    finally:
        writer.transport.abort()


async def _table(target: _Target, number: int) -> None:
    chance = random.Random(number)
    hostile = chance.choice(REQUESTS) if number >= len(REQUESTS) else REQUESTS[number]
    async with target.connected(tls=hostile.tls) as writer:
        writer.write(hostile.sent)
        async with asyncio.timeout(0.5):
            await writer.drain()
            await writer.wait_closed()


# Each with how many do it at one time.
_ATTACKS: Final[dict[str, tuple[_Attack, int]]] = {
    "large reviews whose answers nobody reads": (_deaf, 33),
    "three requests at once, and no answer read": (
        partial(_deaf, sent=_LARGE + _LARGE + _SMALL),
        12,
    ),
    "trailers without an end": (_trailers, 4),
    "bodies without an end": (_bodies, 33),
    "1,500 silent connections": (_silent, 1500),
    "pods with 1,024 and with 20,000 terms": (_heavy, 4),
    "large reviews of unknown namespaces": (_unknown_namespace, 8),
    "1,000 answered connections, and others that say nothing": (_idle_and_bare, _IDLE_AND_BARE),
    "reviews with two million values": (_too_many_values, 5),
    "scrapes over 100 connections": (_scrapes, 100),
    "the table of hostile requests": (_table, 8),
}


def play(stage: Stage) -> Tally:
    """Each attack for its share of as many seconds as there are rounds."""
    tally = Tally()
    stage = replace(stage, terms=replace(stage.terms, rate=_RATE))
    with served(stage, count=1) as place:
        [replica] = place.replicas
        target = _Target(
            replica.address, ssl.create_default_context(cadata=place.authority.decode())
        )
        with place.loaded() as ledger, watched(replica) as peak, _probed(replica, tally):
            share = stage.rounds / len(_ATTACKS)
            for name, (attack, at_once) in _ATTACKS.items():
                began = time.monotonic()
                made = asyncio.run(_attack(target, attack, at_once, share))
                tally.count(ATTACKS, made)
                _measure(tally, name, ledger, began, time.monotonic())
                stage.say(f"{name}: {made} connections, {replica.memory():.0f} MiB")
        tally.measure(PEAK, max(peak))
        tally.count(SECONDS, stage.rounds)
        tally.count(DEAD, replica.process.exit_code is not None)
        tally.add(ledger.tally())
    return tally


async def _attack(target: _Target, attack: _Attack, at_once: int, seconds: float) -> int:
    """How many times it was done."""
    over = time.monotonic() + seconds
    done = 0

    async def go_on(number: int) -> None:
        nonlocal done
        while time.monotonic() < over:
            with suppress(OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
                await attack(target, number)
            number += at_once
            done += 1
            await asyncio.sleep(_BACK)

    tasks = [asyncio.create_task(go_on(number)) for number in range(at_once)]
    await asyncio.wait(tasks, timeout=seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return done


def _measure(tally: Tally, name: str, ledger: Ledger, began: float, ended: float) -> None:
    took = [
        1000 * (each.answered - each.sent)
        for each in list(ledger.creations)
        if each.matched and each.answered and began <= each.sent <= ended
    ]
    if len(took) > 1:
        tally.measure(f"{P99} {name}", statistics.quantiles(took, n=100)[98])


@contextmanager
def _probed(replica: Replica, tally: Tally) -> Iterator[None]:
    """Look at its readiness as a kubelet does, more often."""
    seen: list[bool] = []
    with meanwhile(lambda: seen.append(replica.ready), 0.5):
        yield
    tally.count(LOOKS, len(seen))
    tally.count(NOT_READY, seen.count(False))


SCENARIO: Final = Scenario(
    name="attacked",
    does="strangers attack one replica, for ten minutes",
    unit=SECONDS,
    long=(600,),
    short=33,
    play=play,
    none=(FAILED, *NEVER, DEAD, NOT_READY),
    more=too_much_memory,
)
