"""The process shakes hands with itself, as the API server would, and knows what is wrong."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from certs.issue import issue_server, service_names
from tests.eventually import eventually_async
from tests.server.serving import HOST, Running, authority, running
from tests.wording import Wording, mentions
from webhook.server.handshake import BUSY_PATIENCE, SelfHandshake, reached_by
from webhook.server.listener import bind
from webhook.server.tls import load_pair
from webhook.server.webhook_entries import Published, Service

SERVICE = Service("ns", "webhook")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, no handshake is given up that will be made."""
    monkeypatch.setattr("webhook.server.handshake._SECONDS", 120.0)


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    """A server with a certificate for the Service, which wants one of its clients besides."""
    with running(clients=authority()) as started:
        serve(started, SERVICE)
        yield started


def serve(server: Running, service: Service) -> None:
    names = service_names(service.name, service.namespace)
    pair = issue_server(server.trust, "webhook", names, datetime.now(UTC))
    server.tls.swap(pair.certificate, pair.private_key)


class Shaken:
    """Handshakes with a server, under what the test publishes, at times that it sets."""

    def __init__(self, port: int, *trusted: Published) -> None:
        self.trusted = trusted
        self.now = 0.0
        self.hindrance = ""
        self.results: list[bool] = []
        self.due = asyncio.Event()
        self.handshake = SelfHandshake(
            (HOST, port),
            SERVICE.host,
            lambda: self.trusted,
            due=self.due,
            hindered=lambda: self.hindrance,
            interval=3600,
            patience=10,
            clock=lambda: self.now,
            on_result=self.results.append,
        )

    def check(self) -> tuple[bool, str]:
        asyncio.run(self.handshake.check())
        condition = self.handshake.condition()
        return condition.ready, condition.reason


def test_a_certificate_that_verifies_under_every_bundle_is_ready(
    server: Running, wording: Wording
) -> None:
    """By the Service's name, though the own port is reached by an address and wants a client's."""
    shaken = Shaken(
        server.https_port,
        Published("a", server.trust.certificate),
        Published("b", authority().certificate + server.trust.certificate),
    )
    assert not shaken.handshake.condition().ready
    ready, reason = shaken.check()
    assert ready
    mentions(reason, "webhook.ns.svc verified", "a and b")
    wording(reason)
    assert shaken.results == [True]


@pytest.mark.parametrize(
    ("bundle", "facts"),
    [
        (b"", ("b has no certificate", "`fairlead controller --certificates`")),
        (b"garbled", ("b has no certificate", "`fairlead controller --certificates`")),
        (authority().certificate, ("webhook.ns.svc is not verified", "under b:", "unable to get")),
    ],
    ids=["wiped", "garbled", "another authority's"],
)
def test_one_bundle_that_does_not_verify_is_not_ready(
    server: Running, bundle: bytes, facts: tuple[str, ...], wording: Wording
) -> None:
    """However good the others are: pods of that entry would fail."""
    shaken = Shaken(
        server.https_port, Published("a", server.trust.certificate), Published("b", bundle)
    )
    ready, reason = shaken.check()
    assert not ready
    mentions(reason, *facts)
    wording(reason)
    assert shaken.results == [False]


def test_a_certificate_for_another_name_is_not_ready() -> None:
    """The API server would refuse it."""
    with running() as server:
        serve(server, Service("elsewhere", "webhook"))
        shaken = Shaken(server.https_port, Published("a", server.trust.certificate))
        ready, reason = shaken.check()
    assert not ready
    mentions(reason, "webhook.ns.svc is not verified", "under a:", "Hostname mismatch")


def test_the_leaf_itself_may_be_what_is_published(server: Running) -> None:
    """Go trusts whatever is in the bundle, and so do we."""
    names = service_names(SERVICE.name, SERVICE.namespace)
    pair = issue_server(server.trust, "webhook", names, datetime.now(UTC))
    server.tls.swap(pair.certificate, pair.private_key)
    shaken = Shaken(server.https_port, Published("a", pair.certificate))
    assert shaken.check()[0]


def test_a_failure_is_forgiven_for_a_while_once_a_handshake_was_good(
    server: Running, wording: Wording
) -> None:
    """A bundle that is wiped is wrong for all replicas at once, and repaired in seconds."""
    good = Published("a", server.trust.certificate)
    shaken = Shaken(server.https_port, good)
    assert shaken.check()[0]
    shaken.trusted = (Published("a", b""),)
    shaken.now = 9
    ready, reason = shaken.check()
    assert ready
    mentions(reason, "not verified for 9 s", "a has no certificate")
    wording(reason)
    shaken.now = 11
    assert not shaken.check()[0]
    shaken.trusted = (good,)
    assert shaken.check()[0]


def test_a_port_that_does_not_answer_is_not_ready() -> None:
    with socket.create_server((HOST, 0)) as closed:
        port = closed.getsockname()[1]
    ready, reason = Shaken(port, Published("a", authority().certificate)).check()
    assert not ready
    assert f"no handshake at 127.0.0.1 port {port}: ConnectionRefusedError" in reason


def test_a_port_that_has_too_much_to_do_stays_ready_for_a_while() -> None:
    """Else overload would take away one replica after the other; but at first it is not ready.

    Nor is it where nobody gets in for longer: that is no overload any more, it serves nobody.
    """
    trust = authority()
    names = service_names(SERVICE.name, SERVICE.namespace)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, issue_server(trust, "webhook", names, datetime.now(UTC)))
    hang_up = threading.Event()

    def serve_until_it_is_busy(listening: socket.socket) -> None:
        while True:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                if hang_up.is_set():
                    return
                context.wrap_socket(connection, server_side=True).close()

    def shaken_once(shaken: Shaken) -> tuple[bool, str]:
        thread = threading.Thread(target=serve_until_it_is_busy, args=(listening,))
        thread.start()
        hang_up.set()
        condition = shaken.check()
        thread.join()
        return condition

    with socket.create_server((HOST, 0)) as listening:
        port = listening.getsockname()[1]
        stranger, known = (Shaken(port, Published("a", trust.certificate)) for _ in range(2))
        thread = threading.Thread(target=serve_until_it_is_busy, args=(listening,))
        thread.start()
        verified = known.check()
        assert verified[0]
        mentions(verified[1], "webhook.ns.svc verified", "under a")
        hang_up.set()
        known.now = BUSY_PATIENCE
        assert known.check() == verified
        thread.join()
        for each in (known, stranger):
            known.now = BUSY_PATIENCE + 1
            ready, reason = shaken_once(each)
            assert not ready
            assert "no handshake at 127.0.0.1" in reason
    assert known.results == [True, False]


def test_nothing_published_is_nothing_wrong(server: Running, wording: Wording) -> None:
    """The configuration may come after the webhook."""
    ready, reason = Shaken(server.https_port).check()
    assert ready
    mentions(reason, "no bundle")
    wording(reason)


def test_no_handshake_is_tried_without_a_certificate(server: Running) -> None:
    shaken = Shaken(server.https_port, Published("a", server.trust.certificate))
    shaken.hindrance = "no certificate yet"
    assert shaken.check() == (False, "no certificate yet")
    assert shaken.results == []


async def test_a_change_has_the_next_handshake_made_at_once(server: Running) -> None:
    """Not only when its time comes, which here is in an hour."""
    shaken = Shaken(server.https_port, Published("a", b""))
    running_on = asyncio.create_task(shaken.handshake.run())
    await eventually_async("there is a handshake", lambda: shaken.results)
    shaken.trusted = (Published("a", server.trust.certificate),)
    shaken.due.set()
    await eventually_async("there is another", lambda: len(shaken.results) > 1)
    running_on.cancel()
    assert shaken.results == [False, True]


@pytest.mark.parametrize(("host", "address"), [("127.0.0.1", "127.0.0.1"), ("", "127.0.0.1")])
def test_a_port_on_every_address_is_reached_by_loopback(host: str, address: str) -> None:
    with bind(host, 0) as listening:
        assert reached_by(listening) == (address, listening.getsockname()[1])
