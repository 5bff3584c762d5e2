"""Says of pods what a kubelet would: there are no nodes where their creation is measured."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from tests.bench.arena import AGENT
from tests.bench.client import Connection, ask_all, patch
from tests.bench.reviews import NAMESPACE

Json = dict[str, Any]

_CONTAINER: Final = "pytorch"


def running(*, ready: bool = True) -> bytes:
    """A pod's status once its container runs."""
    return _status("Running", {"running": {"startedAt": _now()}}, ready=ready)


def ended(code: int) -> bytes:
    """A pod's status once its container has exited with `code`."""
    reason = "Error" if code else "Completed"
    state = {"exitCode": code, "reason": reason, "startedAt": _now(), "finishedAt": _now()}
    return _status("Failed" if code else "Succeeded", {"terminated": state}, ready=False)


def say(connection: Connection, pod: str, status: bytes) -> None:
    """Give the pod this status. Raises RuntimeError if the API server refuses."""
    connection.must(_request(pod, status))


def say_to_all(connect: Callable[[], Connection], pods: Sequence[str], status: bytes) -> None:
    """Give all these pods this status, eight at a time."""
    ask_all(connect, [_request(pod, status) for pod in pods])


def _request(pod: str, status: bytes) -> bytes:
    return patch(f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/status", status, AGENT)


def _status(phase: str, state: Json, *, ready: bool) -> bytes:
    condition = {"status": "True" if ready else "False", "lastTransitionTime": _now()}
    return orjson.dumps(
        {
            "status": {
                "phase": phase,
                "startTime": _now(),
                "conditions": [
                    {"type": kind, **condition} for kind in ("Ready", "ContainersReady")
                ],
                "containerStatuses": [
                    {
                        "name": _CONTAINER,
                        "image": "example.invalid/train:1",
                        "imageID": "",
                        "ready": ready,
                        "restartCount": 0,
                        "started": ready,
                        "state": state,
                    }
                ],
            }
        }
    )


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
