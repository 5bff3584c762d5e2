"""Says of pods what a kubelet would: there are no nodes where their creation is measured."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from tests.bench.arena import AGENT
from tests.bench.client import Connection, patch
from tests.bench.reviews import NAMESPACE

Json = dict[str, Any]

_AT_ONCE: Final = 8
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
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/status"
    code, body = connection.ask(patch(path, status, AGENT))
    if code != 200:
        raise RuntimeError(f"{pod}: answered {code}: {body[:500].decode(errors='replace')}")


def say_to_all(connect: Callable[[], Connection], pods: Sequence[str], status: bytes) -> None:
    """Give all these pods this status, eight at a time."""
    failed: list[Exception] = []

    def part(first: int) -> None:
        try:
            with connect() as connection:
                for pod in pods[first::_AT_ONCE]:
                    say(connection, pod, status)
        except (OSError, RuntimeError) as error:
            failed.append(error)

    threads = [threading.Thread(target=part, args=(first,)) for first in range(_AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


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
