"""As whom the API server is called, that nobody learns it, and what a client leaves behind."""

from __future__ import annotations

import asyncio
import datetime
import gc
import json
import logging
import socket
import ssl
import threading
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kubernetes.aio.config import incluster_config

from tests.kube.fake_api import (
    THINGS,
    Answer,
    FakeApi,
    Request,
    client_of,
    fake_api,
    write_kubeconfig,
)
from tests.server.serving import HOST, authority, leaf
from webhook.api_paths import ApiPath
from webhook.errors import ClusterError
from webhook.kube.client import Client
from webhook.kube.config import load

SECRET = "s3cret-token-of-nobody"


async def welcome(_: Request, answer: Answer) -> None:
    await answer.json({"kind": "Thing"})


class Door:
    """Lets in who has the token of the day."""

    def __init__(self, token: str) -> None:
        self.token = token

    async def __call__(self, request: Request, answer: Answer) -> None:
        if request.headers.get("authorization", "").casefold() == f"bearer {self.token}":
            await answer.json({"kind": "Thing"})
        else:
            await answer.status(401, "Unauthorized", "Unauthorized")


async def test_a_token_that_expired_is_read_again(tmp_path: Path) -> None:
    """After a 401 the credentials are read again, once, and the call repeated with them."""
    door = Door("first")
    async with fake_api(door) as api, client_of(api, tmp_path, token="first") as client:
        await client.get(THINGS)
        door.token = "second"
        write_kubeconfig(tmp_path, api.url, token="second")
        await asyncio.gather(*(client.get(THINGS) for _ in range(5)))
        await client.get(THINGS)
        refused = [x for x in api.requests if x.headers["authorization"] == "Bearer first"]
        assert 1 + 1 <= len(refused) <= 1 + 5
        assert len(api.requests) == len(refused) + 5 + 1


async def test_an_exec_plugin_is_asked_again_after_a_401(tmp_path: Path) -> None:
    """Tokens of cloud providers' plugins last for minutes; the plugin knows the next."""
    credential = tmp_path / "credential"

    def say(token: str) -> None:
        version = "client.authentication.k8s.io/v1"
        answer = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}}
        credential.write_text(json.dumps(answer))

    door = Door("first")
    say("first")
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "cat",
        "args": [str(credential)],
    }
    async with fake_api(door) as api, client_of(api, tmp_path, exec=plugin) as client:
        await client.get(THINGS)
        door.token = "second"
        say("second")
        await client.get(THINGS)
        await client.get(THINGS)
        assert len(api.requests) == 4


async def test_a_credential_that_did_not_change_is_not_tried_twice(tmp_path: Path) -> None:
    async with (
        fake_api(Door("right")) as api,
        client_of(api, tmp_path, token="wrong") as client,
    ):
        with pytest.raises(ClusterError) as caught:
            await client.get(THINGS)
        assert caught.value.status == 401
        assert len(api.requests) == 1


def inside(api: FakeApi, mount: Path) -> Client:
    """A client as in a pod, but that it speaks plain HTTP to the fake server."""
    port = api.url.rpartition(":")[2]
    environ = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": port}

    async def credentials() -> Any:
        configuration: Any = await load(None, environ=environ, service_account=mount)
        configuration.ssl_ca_cert = None
        renew = configuration.refresh_api_key_hook

        def in_plain(target: Any) -> None:
            renew(target)
            target.host, target.refresh_api_key_hook = api.url, in_plain

        configuration.refresh_api_key_hook = in_plain
        configuration.host = api.url
        return configuration

    return Client(credentials)


async def test_a_pods_token_that_was_rotated_is_used_after_a_401(tmp_path: Path) -> None:
    """The mounted file changes while the pod runs; a newline at its end does no harm."""
    door = Door("first")
    (tmp_path / "ca.crt").write_text("a certificate\n")
    (tmp_path / "token").write_text("first\n")
    async with fake_api(door) as api, inside(api, tmp_path) as client:
        await client.get(THINGS)
        (tmp_path / "token").write_text("second")
        door.token = "second"
        await client.get(THINGS)


async def test_a_pods_token_is_read_again_each_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the old one expires, and without a 401."""
    now = [datetime.datetime(2030, 1, 1, tzinfo=datetime.UTC)]
    clock = SimpleNamespace(
        datetime=SimpleNamespace(now=lambda: now[0]), timedelta=datetime.timedelta
    )
    monkeypatch.setattr(incluster_config, "datetime", clock)

    (tmp_path / "ca.crt").write_text("a certificate\n")
    (tmp_path / "token").write_text("first")
    async with fake_api(welcome) as api, inside(api, tmp_path) as client:
        await client.get(THINGS)
        (tmp_path / "token").write_text("second")
        await client.get(THINGS)
        now[0] += datetime.timedelta(seconds=61)
        await client.get(THINGS)
        result = [request.headers["authorization"] for request in api.requests]
    assert result == ["bearer first", "bearer first", "bearer second"]


async def test_a_token_is_never_printed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Neither errors nor logs at their most talkative hold a credential."""
    caplog.set_level(logging.DEBUG)

    async def misbehave(request: Request, answer: Answer) -> None:
        match request.path:
            case "/refused":
                await answer.status(403, "Forbidden", "no")
            case "/html":
                await answer.raw(b"<html>")
            case "/loop":
                await answer.raw(b"", 302, Location="/loop")
            case "/cut":
                await answer.begin()
            case _:
                await answer.raw(b"", 200, Content_Length="x")

    errors = []
    async with fake_api(misbehave) as api, client_of(api, tmp_path, token=SECRET) as client:
        for path in ("refused", "html", "loop", "cut", "nonsense"):
            with pytest.raises(ClusterError) as caught:
                await client.get(ApiPath(path))
            errors.append(caught.value)
    for error in errors:
        assert SECRET not in str(error)
        assert error.__cause__ is None
    assert SECRET not in caplog.text


async def test_a_netrc_file_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry there for the API server's host is not ours."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password something\n")
    monkeypatch.setenv("NETRC", str(netrc))

    async with fake_api(Door("mine")) as api, client_of(api, tmp_path, token="mine") as client:
        await client.get(THINGS)


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
    return await client.get(THINGS)


async def _watch(client: Client) -> None:
    async with client.stream(THINGS, query={"watch": "1"}, silence=None) as read:
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
