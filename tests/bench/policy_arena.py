"""An API server that holds policies, and serving processes that take theirs from it."""

from __future__ import annotations

import contextlib
import http.client
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import orjson

from tests.bench import arena, pods, reviews
from tests.bench.client import Connection, post
from tests.bench.policies import files
from webhook import names
from webhook.interception import PATH
from webhook.policy.crd.definitions import custom_resource_definitions
from webhook.progress import Progress
from webhook.sandbox.api import install_definitions, wait_until
from webhook.sandbox.binaries import obtain_binaries
from webhook.sandbox.control_plane import ControlPlane, Settings
from webhook.sandbox.processes import Process, free_ports
from webhook.sandbox.rights import account

Json = dict[str, Any]

COMPONENTS: Final = ("etcd", "kube-apiserver")
MATCHING: Final = 2
_PATIENCE: Final = 120.0
_UID: Final = "0df28fbd-5f0a-4c3c-9d43-9a3c1f9a0f11"


@dataclass(frozen=True)
class Replica:
    """A `fairlead serve` that runs."""

    process: Process
    port: int
    health_port: int
    authority: Path

    @property
    def ready(self) -> bool:
        """Whether it says so itself, as a kubelet asks, and has listed all that it watches."""
        connection = http.client.HTTPConnection("127.0.0.1", self.health_port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            # Nodes are no reason to be not ready: nothing waits for them.
            return answer.status == HTTPStatus.OK and b"not listed yet" not in answer.read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def connect(self) -> Connection:
        """A connection to it, as the API server's."""
        return arena.to_webhook(self.port, self.authority)


def collection(kind: str) -> str:
    """The path of the objects of a kind of policy."""
    return f"/apis/{names.API_VERSION}/{names.POLICY_RESOURCES[kind]}"


def documents(count: int) -> list[Json]:
    """Classes first, then `count` policies, of which MATCHING are for the pods of reviews."""
    found = [orjson.loads(text) for text in files(count, MATCHING).values()]
    return sorted(found, key=lambda each: each["kind"] != names.CLASS_KIND)


@contextlib.contextmanager
def api_server(progress: Progress) -> Iterator[ControlPlane]:
    """An API server that knows the kinds of policies, and has none."""
    binaries = obtain_binaries(COMPONENTS, progress)
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
        with progress.step("starting an API server", about=6):
            state = Path(directory) / "state"
            plane = stack.enter_context(
                ControlPlane(state, binaries, Settings(components=COMPONENTS))
            )
            for definition in custom_resource_definitions().values():
                install_definitions(plane.api, [definition])
            plane.create_namespace(reviews.NAMESPACE, reviews.NAMESPACE_LABELS)
        yield plane


def create(connection: Connection, path: str, objects: Sequence[Json]) -> None:
    """Create the objects, one after the other. Raises RuntimeError if one is refused."""
    for each in objects:
        connection.must(post(path, orjson.dumps(each), arena.AGENT), HTTPStatus.CREATED)


def store(plane: ControlPlane, count: int) -> None:
    """Give the API server the classes and so many policies."""
    with arena.to_api_server(plane) as connection:
        for each in documents(count):
            create(connection, collection(each["kind"]), [each])


def replica(plane: ControlPlane, name: str, policies: Path | None, *options: str) -> Replica:
    """Run `fairlead serve` over the folder, or over the API server's policies; return once ready.

    No pod is sent to it but by who connects to it.
    """
    ports = free_ports(["https", "health"])
    authority = plane.layout.directory / f"{name}-ca.crt"
    process = plane.start_process(
        name,
        [
            *(sys.executable, "-c", "from webhook.cli import main; main()", "serve"),
            *(("--policies", policies) if policies else ("--policies-from-cluster",)),
            *("--kubeconfig", account(plane, names.WEBHOOK, options)),
            *("--host", "127.0.0.1", "--grace", "0"),
            *("--port", str(ports["https"]), "--health-port", str(ports["health"])),
            *("--self-signed", "--ca-out", authority),
            *options,
        ],
    )
    started = Replica(process, ports["https"], ports["health"], authority)
    wait_until(
        f"{name} to be ready",
        lambda: started.ready,
        process.check,
        time.monotonic() + _PATIENCE,
        process.log_tail,
    )
    return started


def review(size: int) -> bytes:
    """The bytes of a POST of the review of a pod of about `size` bytes."""
    body = reviews.review(reviews.as_sent(pods.manifest(size)), _UID)
    return post(f"{PATH}?timeout=3s", body, arena.AGENT)
