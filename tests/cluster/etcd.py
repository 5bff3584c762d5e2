"""etcd itself, by its JSON gateway: what the API server's log cannot tell once it was killed."""

from __future__ import annotations

import base64
import http.client
import json
from typing import Any, Final

from webhook.errors import SandboxError
from webhook.sandbox.control_plane import ControlPlane

# With this flag the API server leaves etcd's history alone, which it else forgets after 5 minutes.
KEEP_HISTORY: Final = {"kube-apiserver": ("--etcd-compaction-interval=0",)}


def compact(plane: ControlPlane) -> None:
    """Have etcd forget everything but the present."""
    _call(plane, "/v3/kv/compaction", {"revision": str(revision(plane)), "physical": True})


def pods_created(plane: ControlPlane, namespace: str, prefix: str, *, since: int) -> int:
    """How many pods whose names begin so were created after a revision, also those gone again.

    Whoever asks keeps the history from there: see KEEP_HISTORY.
    """
    last = revision(plane)
    begin = f"/registry/pods/{namespace}/{prefix}".encode()
    # Of everything, since only then does an event tell that the end is reached.
    watch = {
        "create_request": {"key": "AA==", "range_end": "AA==", "start_revision": f"{since + 1}"}
    }
    connection = http.client.HTTPConnection("127.0.0.1", plane.layout.ports["etcd"], timeout=30)
    created = 0
    try:
        connection.request("POST", "/v3/watch", json.dumps(watch))
        response = connection.getresponse()
        while line := response.readline():
            for event in _events(json.loads(line)):
                entry = event["kv"]
                born = event.get("type", "PUT") == "PUT" and entry["version"] == "1"
                created += born and base64.b64decode(entry["key"]).startswith(begin)
                if int(entry["mod_revision"]) >= last:
                    return created
    finally:
        connection.close()
    raise SandboxError("etcd ended its history early")


def read(plane: ControlPlane, begin: str, end: str, *, limit: int) -> list[dict[str, Any]]:
    """The first entries whose keys are in [begin, end): key and value are in base64."""
    body = {"key": _encoded(begin), "range_end": _encoded(end), "limit": str(limit)}
    entries: list[dict[str, Any]] = _call(plane, "/v3/kv/range", body).get("kvs", [])
    return entries


def erase(plane: ControlPlane, begin: str, end: str) -> None:
    """Delete every entry whose key is in [begin, end), past the API server."""
    body = {"key": _encoded(begin), "range_end": _encoded(end)}
    _call(plane, "/v3/kv/deleterange", body)


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()


def _events(answer: dict[str, Any]) -> list[dict[str, Any]]:
    result = answer.get("result")
    if result is None or result.get("canceled"):
        raise SandboxError(f"etcd refused its history: {answer}")
    events: list[dict[str, Any]] = result.get("events", [])
    return events


def revision(plane: ControlPlane) -> int:
    """The store's revision now."""
    return int(_call(plane, "/v3/kv/range", {"key": "AA=="})["header"]["revision"])


def _call(plane: ControlPlane, path: str, body: object) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", plane.layout.ports["etcd"], timeout=30)
    try:
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        text = response.read()
    finally:
        connection.close()
    if response.status != http.HTTPStatus.OK:
        raise SandboxError(f"etcd refused {path}: {text.decode()}")
    answer: dict[str, Any] = json.loads(text)
    return answer
