"""`fairlead ui` as a process of its own, and requests to it as a browser would send them."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

PROGRAM = (sys.executable, "-c", "from webhook.cli import main; main()")


class Answer(NamedTuple):
    """A response: status, headers with names in lower case, and text."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.text)


class Page:
    """The running command. `address` is what it printed, `cookie` what a browser then has."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.host = urlsplit(address).netloc
        self.name = urlsplit(address).hostname or ""
        self.port = urlsplit(address).port or 80
        self.origin = f"http://{self.host}"
        self.cookie = ""

    def enter(self) -> Answer:
        """Open the printed address, and keep the cookie, as a browser does."""
        parts = urlsplit(self.address)
        answer = self.ask("GET", f"{parts.path}?{parts.query}", cookie="")
        self.cookie = answer.headers.get("set-cookie", "").partition(";")[0]
        return answer

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        cookie: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request, with the cookie unless another one is given."""
        sent = {"host": self.host, **(headers or {})}
        known = self.cookie if cookie is None else cookie
        if known:
            sent["cookie"] = known
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            found = {key.lower(): value for key, value in response.getheaders()}
            return Answer(response.status, found, response.read().decode())
        finally:
            connection.close()

    def evaluate(
        self, policies: str = "", manifests: str = "", nodes: str = "", **other: Any
    ) -> Answer:
        """Ask the playground, as its page does."""
        texts = {"policies": policies, "manifests": manifests, "nodes": nodes}
        body = json.dumps({**texts, **other}).encode()
        return self.ask("POST", "/playground/answer", body, headers={"origin": self.origin})


@contextmanager
def page(
    *options: str,
    program: Sequence[str] = PROGRAM,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Iterator[Page]:
    """Run the command until the block ends."""
    with subprocess.Popen(
        [*program, "ui", "--no-browser", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=env,
        cwd=cwd,
    ) as process:
        try:
            assert process.stdout is not None
            yield Page(process.stdout.readline().strip())
        finally:
            process.terminate()
