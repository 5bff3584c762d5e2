"""Measures the webhook layer by layer, in this process: where a request's time goes."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from tests.bench import engine, reviews
from tests.bench.policies import files
from webhook.admission import review
from webhook.admission.app import admission_app
from webhook.admission.handler import Handler
from webhook.decision.arrival import DEFAULT_TOLERATION_SECONDS, Arrival, Cluster, DecisionInputs
from webhook.decision.engine import decide
from webhook.interception import PATH
from webhook.policy.load import load
from webhook.server.drain import ClosingConnections, Drain
from webhook.server.limit import InFlightLimit
from webhook.server.webhook_metrics import Metrics

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Scope

# As in the runs against the API server.
POLICIES: Final = 20
MATCHING: Final = 3
SIZE: Final = 10_000


class _Namespaces:
    """One namespace, whose labels are known."""

    def peek(self, name: str) -> Mapping[str, str]:  # noqa: ARG002
        """The labels."""
        return reviews.NAMESPACE_LABELS

    async def labels(self, name: str) -> Mapping[str, str]:
        """The labels."""
        return self.peek(name)

    async def live(self, name: str, *, fresh: bool = False) -> Mapping[str, str]:  # noqa: ARG002
        """The labels."""
        return self.peek(name)


def measure(rounds: int, calls: int) -> dict[str, list[float]]:
    """Medians in microseconds, one a round, by layer: each includes those named before it."""
    with engine.frozen():
        return asyncio.run(_measure(rounds, calls))


async def _measure(rounds: int, calls: int) -> dict[str, list[float]]:
    policies = load(files(POLICIES, MATCHING)).policies
    body = engine.body_of(SIZE)
    request = review.parse(body)
    arrival = Arrival(request.pod, request.namespace, reviews.NAMESPACE_LABELS, request.user)
    cluster = Cluster("", DEFAULT_TOLERATION_SECONDS)
    metrics = Metrics()
    handler = Handler(DecisionInputs(lambda: policies, _Namespaces(), lambda: None), metrics)
    app = ClosingConnections(
        InFlightLimit(admission_app({PATH: handler.handle}, metrics), 600, waiting=int), Drain(10)
    )
    result: dict[str, list[float]] = {
        "decode": [],
        "decide": [],
        "decode, decide, encode": [],
        "… with metrics and log (handler)": [],
        "… with routing, limits and reading the body (app)": [],
    }
    for at in range(rounds + 1):
        figures = (
            engine.timed(lambda: review.parse(body), calls),
            engine.timed(lambda: decide(arrival, policies, cluster), calls),
            engine.timed(lambda: engine.answer(body, policies), calls),
            await _timed(lambda: handler.handle(body), calls),
            await _timed(lambda: _call(app, body), calls),
        )
        if at:
            for values, figure in zip(result.values(), figures, strict=True):
                values.append(figure)
    return result


async def _timed(call: Callable[[], Awaitable[object]], calls: int) -> float:
    clock = time.perf_counter_ns
    durations = []
    for _ in range(calls):
        began = clock()
        await call()
        durations.append(clock() - began)
    return statistics.median(durations) / 1000


async def _call(app: ASGIApp, body: bytes) -> None:
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "https",
        "path": PATH,
        "raw_path": PATH.encode(),
        "query_string": b"timeout=3s",
        "root_path": "",
        "headers": [
            (b"host", b"127.0.0.1"),
            (b"user-agent", b"kube-apiserver-admission"),
            (b"content-length", str(len(body)).encode()),
            (b"accept", b"application/json, */*"),
            (b"content-type", b"application/json"),
            (b"accept-encoding", b"gzip"),
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 2),
        "state": {},
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        if message.get("status", 200) != 200:
            raise RuntimeError(f"the app answered {message}")

    await app(scope, receive, send)
