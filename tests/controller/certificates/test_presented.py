"""Which leaf a replica presents, by real handshakes on loopback."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from certs.authority import new_authority
from certs.issue import Names, issue_server
from webhook.controller.certificates.observe import AT_ONCE, Address, serial_number, serial_numbers

NAME = "fairlead-webhook.fairlead-system.svc"


@asynccontextmanager
async def server(context: ssl.SSLContext | None) -> AsyncIterator[Address]:
    """Listens, by TLS if there is a context; without one it says nothing at all."""
    silent: list[asyncio.StreamWriter] = []
    listening = await asyncio.start_server(
        lambda _, writer: silent.append(writer), "127.0.0.1", 0, ssl=context
    )
    try:
        yield Address(*listening.sockets[0].getsockname())
    finally:
        listening.close()
        for writer in silent:
            writer.transport.abort()
        await listening.wait_closed()
        await asyncio.sleep(0)


def serving(folder: Path, *, wants_certificate: bool = False) -> tuple[ssl.SSLContext, int]:
    """A server's context, and its leaf's serial number. It is by nobody whom the asker knows."""
    now = datetime.now(UTC)
    leaf = issue_server(new_authority("Nobody", now), "test", Names(dns=("elsewhere",)), now)
    (folder / "crt").write_bytes(leaf.certificate)
    (folder / "key").write_bytes(leaf.private_key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "crt", folder / "key")
    if wants_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(folder / "crt")
    return context, leaf.check().serial_number


@pytest.mark.parametrize("wants_certificate", [False, True])
def test_the_leaf_is_told_whoever_it_is_by(tmp_path: Path, wants_certificate: bool) -> None:
    """It is compared and not trusted; a server that wants to know its clients tells it too."""
    context, number = serving(tmp_path, wants_certificate=wants_certificate)

    async def ask() -> int | None:
        async with server(context) as address:
            return await serial_number(address, NAME)

    assert asyncio.run(ask()) == number


def test_the_name_that_the_api_server_asks_for_is_asked_for(tmp_path: Path) -> None:
    """A server may have several leaves."""
    context, _ = serving(tmp_path)
    asked: list[str | None] = []

    def note(_session: object, name: str | None, _context: object) -> None:
        asked.append(name)

    context.sni_callback = note

    async def ask() -> None:
        async with server(context) as address:
            await serial_number(address, NAME)

    asyncio.run(ask())
    assert asked == [NAME]


def test_who_does_not_answer_presents_nothing() -> None:
    """Nobody there; somebody who is silent; an address that is none."""

    async def ask() -> None:
        async with server(None) as address:
            assert await serial_number(address, NAME, patience=0.05) is None
        assert await serial_number(address, NAME) is None
        assert await serial_number(Address("no address at all", 1), NAME) is None

    asyncio.run(ask())


def test_all_are_asked_some_at_once() -> None:
    """In order, and no more than AT_ONCE at a time."""
    busy, most = 0, 0

    async def ask(address: Address) -> int | None:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(0)
        busy -= 1
        return address.port if address.port % 2 else None

    addresses = [Address("198.18.0.1", port) for port in range(30)]
    found = asyncio.run(serial_numbers([None, *addresses], ask))
    assert found == (None, *(port if port % 2 else None for port in range(30)))
    assert most == AT_ONCE
