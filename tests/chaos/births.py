"""Every pod that is ever created, by etcd's own events, whoever else is down meanwhile."""

from __future__ import annotations

import base64
import http.client
import json
import threading
from typing import Any, Self

from tests.cluster import etcd
from tests.eventually import eventually
from webhook.errors import SandboxError
from webhook.sandbox.control_plane import ControlPlane


class Births:
    """Watches the store from now on; a compaction takes nothing from what was seen."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._root = f"/registry/pods/{namespace}/".encode()
        self._names: list[str] = []
        self._revision = 0
        self._connection = http.client.HTTPConnection(
            "127.0.0.1", plane.layout.ports["etcd"], timeout=None
        )
        # Of everything, since only then does an event tell how far it has come.
        watch = {"create_request": {"key": "AA==", "range_end": "AA=="}}
        self._connection.request("POST", "/v3/watch", json.dumps(watch))
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection.sock:
            self._connection.sock.close()

    def of(self, prefix: str) -> list[str]:
        """The names of pods that begin so and were created, as often as each was, until now."""
        last = etcd.revision(self._plane)
        eventually(f"etcd tells of revision {last}", lambda: self._told(last))
        return [name for name in self._names if name.startswith(prefix)]

    def _told(self, last: int) -> bool:
        if not self._thread.is_alive():
            raise SandboxError(f"etcd told of revision {self._revision}, and not of {last}")
        return self._revision >= last

    def _listen(self) -> None:
        try:
            response = self._connection.getresponse()
            while line := response.readline():
                for event in json.loads(line).get("result", {}).get("events", ()):
                    self._see(event)
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            # It was closed; of() says so to whoever asks afterwards.
            return

    def _see(self, event: dict[str, Any]) -> None:
        entry = event["kv"]
        key = base64.b64decode(entry["key"])
        born = event.get("type", "PUT") == "PUT" and entry["version"] == "1"
        if born and key.startswith(self._root):
            self._names.append(key.removeprefix(self._root).decode())
        self._revision = max(self._revision, int(entry["mod_revision"]))
