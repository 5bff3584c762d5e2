"""A watch of some pods, as lean as Python allows: when each was created, and under which name."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Final, NamedTuple, Self
from urllib.parse import quote

import orjson

from tests.bench.arena import administrator
from webhook.kube.lines import Lines
from webhook.sandbox.control_plane import ControlPlane

# Metadata alone: whole pods would cost the API server and us more, in all arms alike.
_ACCEPT: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_ADDED: Final = b'{"type":"ADDED"'


class Created(NamedTuple):
    """A pod that was created, and when its event came, by time.perf_counter()."""

    name: str
    uid: str
    at: float


class PodWatch:
    """The pods of a namespace that a label selector selects, from now on.

    `patience` is how many seconds may pass without any event.
    """

    def __init__(
        self, plane: ControlPlane, namespace: str, selector: str, patience: float = 60
    ) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods"
        listed = plane.api.get(f"{path}?limit=1")
        version = listed["metadata"]["resourceVersion"]
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1",
            plane.layout.ports["kube-apiserver"],
            timeout=patience,
            context=administrator(plane),
        )
        query = f"watch=1&resourceVersion={version}&labelSelector={quote(selector)}"
        self._connection.request("GET", f"{path}?{query}", headers={"Accept": _ACCEPT})
        # Only when the headers are there does the watch count.
        self._response = self._connection.getresponse()
        if self._response.status != http.HTTPStatus.OK:
            raise ConnectionError(f"the watch was refused: {self._response.read()[:500]!r}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._connection.close()

    def arrivals(self, count: int) -> list[float]:
        """When each of the next `count` pods' creations came, by time.perf_counter().

        Raises TimeoutError if nothing happens for too long.
        """
        times: list[float] = []
        for line in self._lines():
            if line.startswith(_ADDED):
                times.append(time.perf_counter())
                if len(times) == count:
                    break
        return times

    def created(self) -> Iterator[Created]:
        """The pods that are created, one after the other, for as long as the caller asks."""
        for line in self._lines():
            at = time.perf_counter()
            if line.startswith(_ADDED):
                metadata = orjson.loads(line)["object"]["metadata"]
                yield Created(metadata["name"], metadata["uid"], at)

    def _lines(self) -> Iterator[bytes]:
        lines = Lines()
        while chunk := self._response.read1(65536):
            yield from lines.feed(chunk)
        raise ConnectionError("the API server ended the watch")
