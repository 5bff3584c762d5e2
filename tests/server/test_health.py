"""The plain port tells liveness, readiness with its reasons, and metrics."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.admission.reviews import call, called
from tests.eventually import eventually
from tests.server.serving import HOST, running
from webhook.server.health import MOST_SCRAPES, RENDER_PAUSE, health_app
from webhook.server.readiness import Condition
from webhook.server.webhook_metrics import Metrics


def _ask(path: str, conditions: dict[str, Callable[[], Condition]]) -> tuple[int, str]:
    """Return status and body of a GET, without a network between."""
    answer = call(health_app(conditions, Metrics()), "GET", path)
    assert answer
    return answer.status, answer.body.decode()


def _broken() -> Condition:
    raise LookupError("nothing there")


@pytest.mark.parametrize("ready", [True, False])
def test_metrics_tell_whether_the_process_is_ready(ready: bool) -> None:
    """What /readyz says, for alerts: one condition that is not ready is enough."""
    conditions = {
        "policies": lambda: Condition(ready=True, reason="abc loaded"),
        "namespaces": lambda: Condition(ready=ready, reason="first sync"),
    }
    _, body = _ask("/metrics", conditions)
    assert f"fairlead_ready {float(ready)}" in body.splitlines()


def test_readiness_names_every_condition_with_its_reason() -> None:
    """One that is not ready is enough for 503, and the others are told as well."""
    conditions = {
        "policies": lambda: Condition(ready=True, reason="abc loaded"),
        "namespaces": lambda: Condition(ready=False, reason="first sync not done"),
    }
    status, body = _ask("/readyz", conditions)
    assert status == 503
    assert json.loads(body) == {
        "ready": False,
        "conditions": {
            "policies": {"ready": True, "reason": "abc loaded"},
            "namespaces": {"ready": False, "reason": "first sync not done"},
        },
    }


def test_all_conditions_ready_is_ready() -> None:
    ready = {"policies": lambda: Condition(ready=True, reason="abc loaded")}
    assert _ask("/readyz", ready)[0] == 200
    assert _ask("/readyz", {})[0] == 200


def test_a_condition_that_raises_is_not_ready() -> None:
    """The exception is its reason, and the answer is still a clear 503."""
    status, body = _ask("/readyz", {"broken": _broken})
    assert status == 503
    assert json.loads(body)["conditions"]["broken"] == {
        "ready": False,
        "reason": "LookupError: nothing there",
    }


def test_liveness_does_not_ask_for_readiness() -> None:
    """A process that is not ready needs no restart."""
    assert _ask("/livez", {"broken": _broken})[0] == 200


@pytest.mark.parametrize("path", ["/", "/mutate", "/metrics/x"])
def test_other_paths_are_not_found(path: str) -> None:
    """The plain port serves nothing else, above all no decisions."""
    assert _ask(path, {})[0] == 404


def test_metrics_are_scraped_over_the_plain_port() -> None:
    """What was counted is in the exposition that comes over a real connection."""
    with running() as server:
        server.metrics.request_answered("patched", 200, 0.0004)
        status, body = server.get("/metrics")
    assert status == 200
    assert b'fairlead_admission_requests_total{code="200",result="patched"} 1.0' in body


async def test_scrapes_share_a_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has what was counted before it asked; however many ask, few are made."""
    made: list[int] = []

    def encode(_registry: object) -> bytes:
        made.append(len(made))
        return b"%d" % made[-1]

    monkeypatch.setattr("webhook.server.health.choose_encoder", lambda accept: (encode, accept))

    began = time.monotonic()
    metrics = Metrics()
    together = asyncio.gather(*[metrics.render("text") for _ in range(100)])
    found = [body for body, _ in await together]
    assert [*found, (await metrics.render("text"))[0]] == [b"0"] * 100 + [b"1"]
    assert time.monotonic() - began >= RENDER_PAUSE


async def test_too_many_scrapes_are_told_to_retry() -> None:
    """Those that wait take memory, and the time of probes."""
    app = health_app({}, Metrics())
    asked = [called(app, "GET", "/metrics") for _ in range(MOST_SCRAPES + 3)]
    answers = [*await asyncio.gather(*asked), await called(app, "GET", "/metrics")]
    statuses = sorted(each.status for each in answers if each)
    assert statuses == [200] * (MOST_SCRAPES + 1) + [503] * 3


@pytest.mark.parametrize("path", ["/metrics", "/livez"])
def test_probes_are_answered_while_strangers_keep_the_plain_port_busy(path: str) -> None:
    """A replica whose liveness cannot be read three times in a row is restarted by its kubelet.

    Here the flood shares a processor with the server: one look in a row may be lost.
    """
    with running() as server, flooded(server.plain_port, path, connections=120) as answered:
        eventually("the flood is there", lambda: len(answered) > 300)
        for probe in ("/livez", "/readyz") * 5:
            try:
                status = server.get(probe)[0]
            except (OSError, http.client.HTTPException):
                status = server.get(probe)[0]
            assert status == 200


@pytest.mark.parametrize("sent", [b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", b"G"])
def test_a_probe_is_answered_in_a_rush_of_new_connections(sent: bytes) -> None:
    """Whatever they send: one that was let in goes for nobody who comes later.

    In each turn of the loop 40 come: 400 a second, if heavy reviews make it turn ten times.
    """
    made: list[socket.socket] = []
    ports: list[int] = []

    async def rush() -> None:
        while True:
            for port in ports * 40:
                connection = socket.socket()
                connection.setblocking(False)
                with suppress(OSError):
                    connection.connect_ex((HOST, port))
                    connection.send(sent)
                made.append(connection)
            while len(made) > 1000:
                made.pop(0).close()
            await asyncio.sleep(0)

    with running(background=[rush]) as server:
        ports.append(server.plain_port)
        eventually("the rush is there", lambda: len(made) > 900)
        for probe in ("/livez", "/readyz") * 5:
            assert server.get(probe)[0] == 200
        ports.clear()
        # Those before it are all answered then.
        assert server.get("/livez")[0] == 200
    for connection in made:
        connection.close()


@contextmanager
def flooded(port: int, path: str, connections: int) -> Iterator[list[int]]:
    """Connections ask for a path over and over meanwhile, and connect again once they are closed.

    Yields a list that has one more item for each answer.
    """
    answered: list[int] = []
    over = threading.Event()
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()

    async def go_on() -> None:
        while not over.is_set():
            with suppress(OSError, EOFError):
                reader, writer = await asyncio.open_connection(HOST, port)
                try:
                    while not over.is_set():
                        writer.write(request)
                        head = await reader.readuntil(b"\r\n\r\n")
                        length = int(head.lower().split(b"content-length:")[1].split()[0])
                        await reader.readexactly(length)
                        answered.append(1)
                finally:
                    writer.transport.abort()
            await asyncio.sleep(0.01)

    async def main() -> None:
        await asyncio.gather(*[go_on() for _ in range(connections)])

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        yield answered
    finally:
        over.set()
        thread.join()
