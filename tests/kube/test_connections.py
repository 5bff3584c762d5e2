"""What a client leaves behind when it goes: no connection, whatever its calls waited for."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import threading
import warnings
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pytest

from tests.kube.fake_api import write_kubeconfig
from tests.server.serving import HOST, authority, leaf
from webhook.kube.client import Client
from webhook.kube.config import load

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"


@contextmanager
def silent_server(folder: Path, said: bytes) -> Iterator[tuple[str, threading.Event]]:
    """Takes one request over TLS, says `said`, and then nothing more, not even a farewell.

    Gives its address, and an event for when it has said that.
    """
    pair = leaf(authority())
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.private_key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    asked, over = threading.Event(), threading.Event()

    def answer(listening: socket.socket) -> None:
        accepted, _ = listening.accept()
        with context.wrap_socket(accepted, server_side=True) as connection:
            connection.recv(65536)
            connection.sendall(said)
            asked.set()
            over.wait()

    with socket.create_server((HOST, 0)) as listening:
        thread = threading.Thread(target=answer, args=(listening,))
        thread.start()
        try:
            yield f"https://{HOST}:{listening.getsockname()[1]}", asked
        finally:
            over.set()
            thread.join()


async def _get(client: Client) -> object:
    return await client.get("/a")


async def _watch(client: Client) -> None:
    async with client.stream("/a", query={"watch": "1"}, silence=None) as read:
        while await read():
            pass


@pytest.mark.parametrize("call", [_get, _watch])
@pytest.mark.parametrize("said", [b"", _HEAD], ids=["no-answer", "half-an-answer"])
def test_a_call_that_is_given_up_leaves_no_connection(
    tmp_path: Path, call: Callable[[Client], Awaitable[Any]], said: bytes
) -> None:
    """A polite end of TLS would wait for the server's, beyond the life of the client."""

    async def run(url: str, asked: threading.Event) -> None:
        file = write_kubeconfig(tmp_path, url)

        async def credentials() -> Any:
            configuration = await load(file, environ={})
            configuration.verify_ssl = False
            return configuration

        async with Client(credentials) as client:
            waiting = asyncio.ensure_future(call(client))
            await asyncio.to_thread(asked.wait)
            await asyncio.sleep(0.05)  # what was said arrives
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting

    with (
        silent_server(tmp_path, said) as (url, asked),
        warnings.catch_warnings(record=True) as seen,
    ):
        warnings.simplefilter("always")
        asyncio.run(run(url, asked))
        gc.collect()
    assert [str(each.message) for each in seen] == []
