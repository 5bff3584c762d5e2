"""The plain port tells liveness, readiness with its reasons, and metrics."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from tests.server.serving import running
from webhook.server.health import health_app
from webhook.server.metrics import Metrics
from webhook.server.readiness import Condition

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Message, Scope


def _ask(path: str, conditions: dict[str, Callable[[], Condition]]) -> tuple[int, str]:
    """Return status and body of a GET, without a network between."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [],
    }
    asyncio.run(health_app(conditions, Metrics())(scope, receive, send))
    return sent[0]["status"], sent[1]["body"].decode()


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
    """The status is 200 then, and with no conditions at all."""
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
