"""Two listeners serve in one loop, for as long as all that they need goes on."""

from __future__ import annotations

import asyncio
import resource
import socket
from email.utils import parsedate_to_datetime

import pytest

from tests.server.serving import HOST, begin, post, running
from webhook.errors import ServingError
from webhook.server.drain import Drain
from webhook.server.health import Exposition, health_app
from webhook.server.listener import bind, serve_plain
from webhook.server.protocol import KEEP_ALIVE_SECONDS


def test_an_address_in_use_is_an_error_that_names_it() -> None:
    """The error has the address, the system's reason, and what to do."""
    with bind(HOST, 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ServingError, match=rf"127\.0\.0\.1 port {port}: Address already"):
            bind(HOST, port)


@pytest.mark.parametrize(("host", "port"), [(HOST, 70000), (HOST, -1), ("192.0.2.1", 0)])
def test_an_address_that_is_none_is_an_error(host: str, port: int) -> None:
    """An impossible port and an address that is not ours are told like one in use."""
    with pytest.raises(ServingError, match="cannot listen on"):
        bind(host, port)


@pytest.mark.parametrize("host", ["", "::"])
def test_every_address_means_both_versions(host: str) -> None:
    """One socket takes connections over IPv4 and, where there is IPv6, over that."""
    with bind(host, 0) as listening:
        port = listening.getsockname()[1]
        socket.create_connection((HOST, port)).close()
        if _has_ipv6():
            socket.create_connection(("::1", port)).close()


def _has_ipv6() -> bool:
    # A kernel may have IPv6, and no address of it: net.ipv6.conf.all.disable_ipv6.
    try:
        with socket.socket(socket.AF_INET6) as tried:
            tried.bind(("::1", 0))
    except OSError:
        return False
    return True


async def test_answers_are_not_held_back() -> None:
    """Accepted connections have Nagle's algorithm off, or each answer would wait for 40 ms."""
    options: asyncio.Queue[int] = asyncio.Queue()

    def came(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        option = writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        options.put_nowait(option)
        writer.close()

    listening = bind(HOST, 0)
    async with await asyncio.start_server(came, sock=listening):
        _, writer = await asyncio.open_connection(*listening.getsockname())
        option = await options.get()
        writer.close()
        await writer.wait_closed()
        result = option
    assert result == 1


def test_the_kernel_buffers_little_of_an_unread_answer() -> None:
    """It is memory of the pod, and grows to megabytes for each connection where it may."""
    with bind(HOST, 0) as listening:
        client = socket.create_connection((HOST, listening.getsockname()[1]))
        accepted, _ = listening.accept()
        with client, accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) <= 256 * 1024


def test_a_connection_outlives_the_api_servers_idle_time() -> None:
    """The API server closes after 90 idle seconds, so ours is longer, and it closes first."""
    assert KEEP_ALIVE_SECONDS > 90


def test_connections_are_kept_and_headers_tell_nothing_of_the_server() -> None:
    """Many requests go over one connection, and no answer names the software."""
    with running() as server:
        connection = server.connect()
        for number in range(20):
            response = post(connection, b"%d" % number)
            assert response.read() == b"%d" % number
            assert response.headers["Server"] is None
            assert parsedate_to_datetime(response.headers["Date"]).tzinfo
        assert connection.sock is not None
        connection.close()


def test_a_process_of_health_alone_may_open_as_many_files_as_its_port_needs() -> None:
    """The controller, whose port takes hundreds beside its watches: many runtimes give 1,024."""

    async def serve_and_stop() -> None:
        drain = Drain(0)
        drain.begin()
        with bind(HOST, 0) as plain:
            await serve_plain(health_app({}, Exposition()), plain=plain, drain=drain)

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, before[1]))
        asyncio.run(serve_and_stop())
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 1024
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_background_work_runs_until_requests_are_done() -> None:
    """It is started with the listeners and cancelled after the drain."""
    seen: list[str] = []

    async def work() -> None:
        seen.append("started")
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("cancelled")

    with running(background=[work]) as server:
        assert server.get("/livez")[0] == 200
        assert seen == ["started"]
    assert seen == ["started", "cancelled"]


def test_background_work_that_fails_ends_everything() -> None:
    """A watcher that died would leave stale caches behind: the process goes, and is restarted."""

    async def failing() -> None:
        raise ZeroDivisionError("a bug")

    with (
        pytest.raises(ExceptionGroup) as caught,
        running(background=[failing]),
    ):
        pass
    assert caught.group_contains(ZeroDivisionError, match="a bug")


def test_background_work_that_comes_to_its_end_ends_nothing() -> None:
    async def done() -> None:
        await asyncio.sleep(0)

    with running(background=[done]) as server:
        assert server.get("/livez")[0] == 200
        assert server.get("/livez")[0] == 200


# Longer than any test takes, where the grace time must not end by itself.
NEVER = 3600.0


def test_a_request_that_never_ends_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    """A client that stalls holds the end for so long and no longer, and the log tells of it."""
    with running(finish_seconds=0) as server:
        idle, stalled = server.connect(), server.connect()
        assert post(idle, b"idle").read() == b"idle"
        begin(stalled, b"o")
        assert post(idle, b"again").read() == b"again"
    idle.close()
    stalled.close()
    assert "requests cut off" in caplog.messages


def test_answers_keep_their_own_connection_header_until_draining() -> None:
    """Before the drain an answer's headers are the app's, and the connection serves on."""
    with running(grace=NEVER) as server:
        connection = server.connect()
        for body in (b"one", b"two"):
            response = post(connection, body)
            assert response.read() == body
            assert response.headers["Connection"] is None
        connection.close()
        server.begin_drain()
        server.begin_drain()
