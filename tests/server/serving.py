"""Runs the listeners in a thread on loopback, and talks to them as a client."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from certs.authority import new_authority
from certs.issue import Names, issue_server
from certs.pair import Pair
from webhook.server.connection_limiter import ConnectionLimiter
from webhook.server.drain import ClosingConnections, Drain
from webhook.server.health import health_app
from webhook.server.listener import bind, serve
from webhook.server.tls import ServerTls
from webhook.server.webhook_metrics import Metrics

HOST = "127.0.0.1"
NAMES = Names(dns=("localhost",), addresses=(HOST,))


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the request's whole body."""
    assert scope["type"] == "http"
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def authority() -> Pair:
    """Make an authority that is valid now."""
    return new_authority("Test", datetime.now(UTC))


def leaf(signer: Pair) -> Pair:
    """Make a certificate for loopback that is valid now."""
    return issue_server(signer, "test", NAMES, datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class Running:
    """Listeners that serve, and what a test needs to reach into them."""

    https_port: int
    plain_port: int
    trust: Pair
    tls: ServerTls
    metrics: Metrics
    drain: Drain
    loop: asyncio.AbstractEventLoop

    def begin_drain(self) -> None:
        """Begin the drain, on the loop's thread as a signal would."""
        self.loop.call_soon_threadsafe(self.drain.begin)

    def connect(self) -> http.client.HTTPSConnection:
        """Return a connection that trusts the authority alone."""
        return connect(self.https_port, self.trust)

    def open(
        self, sent: bytes = b"", *, tls: bool = True, shakes_hands: bool = True
    ) -> socket.socket:
        """Return a connection that has sent this, by TLS or instead of it."""
        connection = socket.create_connection((HOST, self.https_port))
        if tls:
            context = ssl.create_default_context(cadata=self.trust.certificate.decode())
            connection = context.wrap_socket(
                connection, server_hostname=HOST, do_handshake_on_connect=shakes_hands
            )
        if sent:
            connection.sendall(sent)
        return connection

    def serial_number(self) -> int:
        """Return the serial number of the certificate that a new handshake gets."""
        connection = self.connect()
        try:
            connection.connect()
            return serial_number(connection)
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, bytes]:
        """Return status and body of a GET at the plain port."""
        return get(self.plain_port, path)


def connect(port: int, trust: Pair) -> http.client.HTTPSConnection:
    """Return a connection to loopback that trusts one authority alone."""
    context = ssl.create_default_context(cadata=trust.certificate.decode())
    return http.client.HTTPSConnection(HOST, port, context=context)


def serial_number(connection: http.client.HTTPSConnection) -> int:
    """Return the serial number of the certificate that a connection was made with."""
    assert isinstance(connection.sock, ssl.SSLSocket)
    certificate: dict[str, Any] = connection.sock.getpeercert() or {}
    return int(certificate["serialNumber"], 16)


def post(connection: http.client.HTTPConnection, body: bytes) -> http.client.HTTPResponse:
    """Send a body and return the answer, read to its end into `response.body`."""
    connection.request("POST", "/", body=body)
    return connection.getresponse()


def begin(connection: http.client.HTTPConnection, body: bytes) -> None:
    """Send a request with a body of two bytes, or a part of it; do not wait for the answer."""
    connection.putrequest("POST", "/")
    connection.putheader("Content-Length", "2")
    connection.endheaders(body)


def get(port: int, path: str) -> tuple[int, bytes]:
    """Return status and body of a GET at a plain port of loopback."""
    connection = http.client.HTTPConnection(HOST, port)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def readiness(port: int) -> tuple[int, dict[str, Any]]:
    """Return status and parsed body of /readyz."""
    status, body = get(port, "/readyz")
    return status, json.loads(body)


@contextmanager
def running(
    app: ASGIApp = echo,
    *,
    grace: float = 0,
    finish_seconds: float = 30,
    background: Sequence[Callable[[], Coroutine[Any, Any, object]]] = (),
    certificate: bool = True,
    minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    ask_clients: bool = False,
    clients: Pair | None = None,
    callers: frozenset[str] = frozenset(),
    limiter: ConnectionLimiter | None = None,
) -> Iterator[Running]:
    """Serve in a thread; in the end drain, and raise what serving raised.

    With `clients`, an authority, TLS asks clients for a certificate by it.
    """
    trust = authority()
    tls, metrics = (
        ServerTls(minimum=minimum, ask_clients=ask_clients or clients is not None),
        Metrics(),
    )
    if clients:
        tls.trust_clients(clients.certificate)
    if certificate:
        pair = leaf(trust)
        tls.swap(pair.certificate, pair.private_key)
    https, plain = bind(HOST, 0), bind(HOST, 0)
    ports = [where.getsockname()[1] for where in (https, plain)]
    started = threading.Event()
    handed: list[tuple[asyncio.AbstractEventLoop, Drain]] = []
    raised: list[BaseException] = []

    async def main() -> None:
        drain = Drain(grace)
        handed.append((asyncio.get_running_loop(), drain))
        started.set()
        conditions = {"tls": tls.condition, "drain": drain.condition}
        await serve(
            ClosingConnections(app, drain),
            health_app(conditions, metrics),
            https=https,
            plain=plain,
            tls=tls,
            drain=drain,
            finish_seconds=finish_seconds,
            limiter=limiter or ConnectionLimiter(1000),
            callers=callers,
            background=background,
        )

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # handed to the test's thread
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    started.wait()
    loop, drain = handed[0]
    server = Running(ports[0], ports[1], trust, tls, metrics, drain, loop)
    try:
        yield server
    finally:
        if not drain.draining:
            with suppress(RuntimeError):  # its loop is closed: it has ended by itself
                server.begin_drain()
        thread.join()
    if raised:
        raise raised[0]
