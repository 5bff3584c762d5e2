"""The pages listen on all of loopback, and nobody without the token keeps their user out."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.eventually import eventually
from tests.ui.served_pages import Page, page
from webhook.errors import ServingError
from webhook.ui.serving import MOST_CONNECTIONS, listen

# What a stranger begins and does not end.
UNENDED = {
    "nothing": b"",
    "half of a head": b"GET / HTT",
    "half of a form": b"POST /enter HTTP/1.1\r\nhost: {host}\r\ncontent-length: 99\r\n\r\ntoken=",
    "a whole request without a token": b"GET / HTTP/1.1\r\nhost: {host}\r\n\r\n",
}


@pytest.fixture(scope="module")
def served() -> Iterator[Page]:
    """The pages, entered once."""
    with page() as found:
        found.enter()
        yield found


@pytest.mark.parametrize("begun", UNENDED.values(), ids=UNENDED)
def test_connections_without_the_token_do_not_keep_the_user_out(served: Page, begun: bytes) -> None:
    """However many there are: those that wait longest are closed for the next."""
    sent = begun.replace(b"{host}", served.host.encode())
    with ExitStack() as stack:
        for _ in range(3 * MOST_CONNECTIONS):
            stranger = stack.enter_context(socket.create_connection(("127.0.0.1", served.port)))
            stranger.sendall(sent)
        for _ in range(5):
            assert served.ask("GET", "/playground").status == 200


def test_a_connection_without_a_first_byte_is_closed(served: Page) -> None:
    """After some seconds, though nobody else wants its place."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=1) as silent:

        def closed() -> bool:
            try:
                return silent.recv(1) == b""
            except TimeoutError:
                return False

        eventually("it is closed", closed)


def test_the_port_is_taken_on_both_addresses_of_loopback(served: Page) -> None:
    """A browser tries both for a name in .localhost, and the cookie goes to who listens there."""
    with socket.create_connection(("::1", served.port)) as connection:
        connection.sendall(f"GET / HTTP/1.0\r\nhost: {served.host}\r\n\r\n".encode())
        assert connection.recv(1024).startswith(b"HTTP/1.1 401")


def test_a_port_that_another_has_on_one_address_is_not_taken() -> None:
    """A given one is an error that names the address; else another port is."""
    with socket.socket(socket.AF_INET6) as other:
        other.bind(("::1", 0))
        other.listen()
        taken = other.getsockname()[1]
        with pytest.raises(ServingError, match=f"::1 port {taken}"):
            listen(taken)
        sockets = listen(0)
        ports = {each.getsockname()[1] for each in sockets}
        for each in sockets:
            each.close()
        assert len(sockets) == 2
        assert len(ports) == 1
