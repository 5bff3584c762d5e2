"""`fairlead serve` as a process, and a client that trusts it."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.eventually import eventually
from tests.server.serving import get, readiness

Json = dict[str, Any]
COMMAND = [sys.executable, "-c", "from webhook.cli import main; main()", "serve"]
NAMESPACES = """
apiVersion: v1
kind: Namespace
metadata: {name: ml-team, labels: {tier: batch}}
"""


def pool_policy(pool: str, name: str = "pool") -> str:
    """A policy that gives every pod this pool."""
    return f"""
apiVersion: fairlead.dev/v1alpha1
kind: PlacementPolicy
metadata: {{name: {name}}}
spec: {{defaults: {{nodeSelector: {{pool: {pool}}}}}}}
"""


class Served:
    """A process that serves, or tries to."""

    def __init__(self, process: subprocess.Popen[str], authority: Path) -> None:
        self.process = process
        self._authority = authority
        self._changed = threading.Condition()
        self._lines: list[Json] = []
        self._connections: list[http.client.HTTPSConnection] = []
        self._ended = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for text in self.process.stderr:
            with self._changed:
                self._lines.append(
                    json.loads(text) if text.startswith("{") else {"message": text.strip()}
                )
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def line(self, message: str, count: int = 1) -> Json:
        """Wait for the log line with this message, the nth of them, and return it."""

        def found() -> list[Json]:
            return [line for line in self._lines if line["message"] == message]

        with self._changed:
            self._changed.wait_for(lambda: len(found()) >= count or self._ended)
            lines = found()
        assert len(lines) >= count, self._lines
        return lines[count - 1]

    @property
    def port(self) -> int:
        """Its HTTPS port."""
        return int(self.line("serving")["port"])

    @property
    def health_port(self) -> int:
        """Its plain port."""
        return int(self.line("serving")["health_port"])

    def connect(
        self, authority: Path | None = None, caller: Path | None = None
    ) -> http.client.HTTPSConnection:
        """A connection that trusts its authority alone; closed when the process ends.

        `caller` has the certificate and the key of the client.
        """
        # The port is read first, because the authority's file is written before it is known.
        port = self.port
        context = ssl.create_default_context(cafile=str(authority or self._authority))
        if caller is not None:
            context.load_cert_chain(caller)
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context)
        self._connections.append(connection)
        return connection

    def readiness(self) -> tuple[int, Json]:
        """Status of /readyz, and its conditions."""
        status, detail = readiness(self.health_port)
        return status, detail["conditions"]

    def wait_ready(self, *, ready: bool = True) -> Json:
        """Wait until it is ready, or not any more, and return the conditions."""

        def so() -> Json | None:
            status, conditions = self.readiness()
            return conditions if (status == 200) == ready else None

        what = "it is ready" if ready else "it is not ready any more"
        return eventually(what, so, explain=self.readiness)

    def metrics(self) -> str:
        return get(self.health_port, "/metrics")[1].decode()

    def end(self) -> tuple[int, list[str]]:
        """Wait for its end; the exit code, and the messages on stderr."""
        code = self.process.wait()
        for connection in self._connections:
            connection.close()
        self._reader.join()
        return code, [line["message"] for line in self._lines]


def ask(
    connection: http.client.HTTPConnection, body: bytes | Json, *, path: str = "/mutate"
) -> tuple[http.client.HTTPResponse, bytes]:
    """POST a review, and return the answer, and its body."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, content, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response, response.read()


def patch_of(body: bytes) -> list[Json]:
    patch: list[Json] = json.loads(base64.b64decode(json.loads(body)["response"]["patch"]))
    return patch


def pool_in(body: bytes) -> str:
    """The pool that an answer gives the pod."""
    (selector,) = (op["value"] for op in patch_of(body) if op["path"] == "/spec/nodeSelector")
    return str(selector["pool"])


@contextmanager
def served(
    folder: Path,
    *options: str,
    certificate: Sequence[str] | None = None,
    cluster: Sequence[str] | None = None,
    policies: Sequence[str] | None = None,
) -> Iterator[Served]:
    """Serve the policies of `folder`/policies, and kill the process if the test leaves it.

    Unless told otherwise, self-signed, and with the namespace ml-team alone.
    """
    if policies is None:
        policies = ("--policies", str(folder / "policies"))
    authority = folder / "ca.crt"
    if cluster is None:
        file = folder / "namespaces.yaml"
        file.write_text(NAMESPACES)
        cluster = ("--namespaces", str(file))
    if certificate is None:
        certificate = ("--self-signed", "--ca-out", str(authority))
    process = subprocess.Popen(
        [
            *COMMAND,
            *policies,
            *("--host", "127.0.0.1", "--port", "0", "--health-port", "0"),
            *("--poll-interval", "0.1"),
            *certificate,
            *cluster,
            *options,
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    server = Served(process, authority)
    try:
        yield server
    finally:
        process.kill()
        server.end()
        assert process.stderr is not None
        process.stderr.close()
