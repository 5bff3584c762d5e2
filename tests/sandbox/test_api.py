"""Calls to the sandbox's API server go over a connection that is kept."""

from __future__ import annotations

import datetime
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from webhook.errors import SandboxError
from webhook.kube.throttling import TRIES
from webhook.sandbox.api import Api, NoAnswer
from webhook.sandbox.credentials import write_credentials

ANSWERED = {"kind": "Answer"}


class Server(ThreadingHTTPServer):
    """Answers every request, and hangs up instead as often as it is told to."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.requests: list[tuple[str, str, Any]] = []
        self.connections: list[Any] = []
        self.hang_up = 0
        self.busy = 0
        self.leave = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that are gone."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.connections.append(self.connection)

    def do_GET(self) -> None:
        """Note the request, and answer or hang up."""
        server = self.server
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server.requests.append(
            (self.command, self.headers["Content-Type"], json.loads(body or "null"))
        )
        if server.hang_up:
            server.hang_up -= 1
            self.close_connection = True
            return
        text = json.dumps(ANSWERED).encode()
        status = {"/gone": 404, "/refused": 422}.get(self.path, 200)
        if server.busy:
            server.busy -= 1
            status = 429
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        # Without a word, as a server that restarts.
        self.close_connection = server.leave

    do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815  (what its base calls)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """It serves with the sandbox's certificate."""
    write_credentials(tmp_path, datetime.datetime.now(datetime.UTC))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "serving.crt", tmp_path / "serving.key")
    with Server(context) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def api(server: Server, tmp_path: Path) -> Iterator[Api]:
    with closing(Api(server.server_address[1], tmp_path)) as api:
        yield api


def test_all_calls_of_a_thread_share_a_connection(server: Server, api: Api) -> None:
    """Also those that were refused, and another thread has another."""
    assert api.get("/a") == ANSWERED
    assert api.get("/gone") is None
    with pytest.raises(SandboxError, match="refused POST /refused"):
        api.create("/refused", {})
    assert api.patch("/a", {"spec": {"x": 1}}) == ANSWERED
    assert server.requests[-1] == ("PATCH", "application/merge-patch+json", {"spec": {"x": 1}})
    assert len(server.connections) == 1
    thread = threading.Thread(target=lambda: api.get("/a"))
    thread.start()
    thread.join()
    assert len(server.connections) == 2


def test_a_connection_that_the_server_has_closed_is_not_used_again(
    server: Server, api: Api
) -> None:
    """So that a request that must not be sent twice does not fail for it."""
    server.leave = True
    for count in range(1, 4):
        assert api.get("/a") == ANSWERED
        assert len(server.connections) == count
    server.leave = False
    api.get("/a")
    assert api.create("/a", {}) == ANSWERED
    assert len(server.connections) == 4


def test_what_a_busy_server_did_not_take_is_sent_again(
    server: Server, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every method: 429 says that nothing happened. A server that stays busy is an error.

    The pauses are those that it asks for, as of every client of ours.
    """
    pauses: list[float] = []
    monkeypatch.setattr("webhook.sandbox.api.time.sleep", pauses.append)
    server.busy = 2
    assert api.create("/a", {"n": 1}) == ANSWERED
    assert [sent for method, _, sent in server.requests if method == "POST"] == [{"n": 1}] * 3
    assert pauses == [1, 1]
    server.busy = 100
    with pytest.raises(SandboxError, match="refused GET /a"):
        api.get("/a")
    assert pauses == [1] * (TRIES + 1)


def test_only_what_changes_nothing_is_sent_twice(server: Server, api: Api) -> None:
    """A kept connection that ends without an answer: a GET is sent again, once, by another."""
    api.get("/a")
    server.hang_up = 1
    assert api.get("/a") == ANSWERED
    assert [method for method, *_ in server.requests] == ["GET"] * 3
    server.hang_up = 1
    with pytest.raises(NoAnswer, match="does not answer"):
        api.create("/a", {"once": True})
    assert [sent for method, _, sent in server.requests if method == "POST"] == [{"once": True}]
    # The next is a new one, and a new one is not tried twice.
    server.hang_up = 1
    with pytest.raises(NoAnswer, match="does not answer"):
        api.get("/a")
