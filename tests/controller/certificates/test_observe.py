"""What is seen of an installation, in one look."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from certs.authority import new_authority
from certs.issue import Names, issue_server
from certs.kept import Authority, Serving
from certs.rotation import Observed
from tests.controller.certificates.memory import (
    AUTHORITY,
    CONFIGURATION,
    INSTALLATION,
    SERVING,
    SLICES,
    START,
    TERMS,
    Memory,
    entry,
    refused,
)
from webhook import names
from webhook.controller.certificates.observe import (
    CONCURRENT_HANDSHAKES,
    Address,
    ObservedCertificates,
    Observer,
    serial_number,
    serial_numbers,
    serving_addresses,
)
from webhook.errors import ClusterError

SIGNING = new_authority("fairlead", START)
KEPT = Authority(SIGNING)
LEAF = Serving(issue_server(SIGNING, "leaf", TERMS.names, START), KEPT.bundle)
HTTPS = {"name": "https", "port": 8443}
HEALTH = {"name": "health", "port": 8081}
NAME = "fairlead-webhook.fairlead-system.svc"


async def port(address: Address) -> int | None:
    """A replica that presents its own port's number."""
    return address.port


def look(memory: Memory) -> ObservedCertificates:
    return asyncio.run(Observer(memory.client, INSTALLATION, ask=port).observe())


def secret(memory: Memory, path: str, data: dict[str, bytes], **annotations: str) -> None:
    encoded = {key: b64encode(value).decode() for key, value in data.items()}
    memory.put(path, metadata={"annotations": annotations}, data=encoded)


def test_an_empty_cluster_gives_an_empty_observation() -> None:
    """Not even a configuration: there is no place that clients read."""
    seen = look(Memory())
    assert seen.observed == Observed(None, None)
    assert (seen.authority, seen.serving, seen.configurations) == (None, None, ())


def test_the_observation_has_the_objects_as_they_were_read() -> None:
    memory = Memory()
    secret(memory, AUTHORITY, KEPT.data())
    secret(memory, SERVING, LEAF.data())
    bundle = b64encode(KEPT.bundle).decode()
    memory.put(CONFIGURATION, webhooks=[entry("one", bundle), entry("two"), {"name": "three"}])
    ports = [{"name": "https", "port": 8443}]
    memory.slices = [{"endpoints": [{"addresses": ["198.18.0.1"]}], "ports": ports}]
    seen = look(memory)
    assert seen.observed == Observed(KEPT, LEAF, (KEPT.bundle, b""), (8443,))
    assert seen.authority == memory.objects[AUTHORITY]
    assert seen.serving == memory.objects[SERVING]
    assert seen.configurations == ((INSTALLATION.places[0], memory.objects[CONFIGURATION]),)


def test_requests_and_garbage_are_distinguished() -> None:
    memory = Memory()
    secret(memory, AUTHORITY, {"tls.crt": b"garbage"}, **{names.ROTATE: "now"})
    secret(memory, SERVING, {"tls.crt": b"garbage"})
    observed = look(memory).observed
    assert (observed.authority, observed.serving) == (None, None)
    assert (observed.renew_authority, observed.renew_leaf) == (True, False)


@pytest.mark.parametrize("path", [CONFIGURATION, SLICES, SERVING, AUTHORITY])
def test_what_cannot_be_read_is_not_taken_for_absent(path: str) -> None:
    """An authority that is there, and that nobody may read, must not be made again."""
    memory = Memory()

    def before(_verb: str, at: str) -> None:
        if at == path:
            raise refused(403, "no right")

    memory.before = before
    with pytest.raises(ClusterError, match="no right"):
        look(memory)


def test_of_two_errors_the_first_is_reported() -> None:
    """Always the same one, so that it is said once, and a pause grows."""
    memory = Memory()

    def before(_verb: str, at: str) -> None:
        raise refused(403, at)

    memory.before = before
    for _ in range(5):
        with pytest.raises(ClusterError, match=CONFIGURATION):
            look(memory)


def piece(*endpoints: dict[str, Any], ports: Any = (HTTPS,)) -> dict[str, Any]:
    return {"addressType": "IPv4", "endpoints": list(endpoints), "ports": ports}


def endpoint(address: str, **conditions: bool | None) -> dict[str, Any]:
    return {"addresses": [address], "conditions": conditions}


def test_those_that_serve_are_asked_ready_or_not() -> None:
    """One that is about to end serves still; where nothing is said it serves."""
    slices = [
        piece(endpoint("198.18.0.1", ready=True, serving=True)),
        piece(
            endpoint("198.18.0.2", ready=False, serving=True, terminating=True),
            endpoint("198.18.0.3", ready=False, serving=False),
            endpoint("198.18.0.4", serving=None),
            {"addresses": ["198.18.0.5"]},
        ),
    ]
    hosts = [each.host for each in serving_addresses(slices, "https") if each]
    assert hosts == ["198.18.0.1", "198.18.0.2", "198.18.0.4", "198.18.0.5"]


@pytest.mark.parametrize(
    ("ports", "found"),
    [
        ([HEALTH, HTTPS], 8443),
        ([{"name": "", "port": 9443}], 9443),
        ([{"name": "", "port": None}], None),
        ([HEALTH, {"name": "metrics", "port": 9090}], None),
        (None, None),
    ],
)
def test_the_port_is_the_named_one_or_the_only_one(ports: Any, found: int | None) -> None:
    """A replica whose port nobody can tell is one that cannot be asked, and not left out."""
    expected = Address("198.18.0.1", found) if found else None
    assert serving_addresses([piece(endpoint("198.18.0.1"), ports=ports)], "https") == (expected,)


def test_without_endpoints_no_replica_is_asked() -> None:
    """Their list is null then."""
    assert serving_addresses([{"endpoints": None, "ports": None}], "https") == ()


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
async def test_the_leaf_is_shown_for_any_issuer(tmp_path: Path, wants_certificate: bool) -> None:
    """It is compared and not trusted; a server that wants to know its clients tells it too."""
    context, number = serving(tmp_path, wants_certificate=wants_certificate)

    async with server(context) as address:
        result = await serial_number(address, NAME)
    assert result == number


async def test_the_name_that_the_api_server_asks_for_is_asked_for(tmp_path: Path) -> None:
    context, _ = serving(tmp_path)
    asked: list[str | None] = []

    def note(_session: object, name: str | None, _context: object) -> None:
        asked.append(name)

    context.sni_callback = note

    async with server(context) as address:
        await serial_number(address, NAME)
    assert asked == [NAME]


async def test_who_does_not_answer_presents_nothing() -> None:
    """Nobody there; somebody who is silent; an address that is none."""
    async with server(None) as address:
        assert await serial_number(address, NAME, patience=0.05) is None
    assert await serial_number(address, NAME) is None
    assert await serial_number(Address("no address at all", 1), NAME) is None


def test_all_are_asked_some_at_once() -> None:
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
    assert most == CONCURRENT_HANDSHAKES
