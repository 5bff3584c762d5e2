"""A watch of some pods, as lean as Python allows: when each was created, and under which name."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple, Self
from urllib.parse import quote

import orjson

from tests.bench.arena import administrator
from webhook.kube.watch_stream import Lines
from webhook.sandbox.control_plane import ControlPlane

# Metadata alone: whole pods would cost the API server and us more, in all arms alike.
_ACCEPT: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


class Created(NamedTuple):
    """A pod that was created, and when its event came, by time.perf_counter()."""

    name: str
    uid: str
    at: float


class PodWatch:
    """The pods of a namespace that a label selector selects, from now on.

    `patience` is how many seconds may pass without any event: the training operator has been seen
    to make no pod for more than a minute.
    """

    def __init__(
        self, plane: ControlPlane, namespace: str, selector: str, patience: float = 400
    ) -> None:
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._selector = quote(selector)
        self._version = plane.api.get(f"{self._path}?limit=1")["metadata"]["resourceVersion"]
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1",
            plane.layout.ports["kube-apiserver"],
            timeout=patience,
            context=administrator(plane),
        )
        self._response = self._watch()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def created(self, count: int) -> list[Created]:
        """The next `count` pods that are created, in order; returns once all are there.

        Raises TimeoutError if nothing happens for too long.
        """
        return list(islice(self._created(), count))

    def _created(self) -> Iterator[Created]:
        while True:
            lines = Lines()
            while chunk := self._response.read1(65536):
                at = time.perf_counter()
                for line in lines.feed(chunk):
                    event = orjson.loads(line)
                    if event["type"] == "ERROR":
                        raise ConnectionError(f"the watch broke: {line[:500]!r}")
                    metadata = event["object"]["metadata"]
                    self._version = metadata["resourceVersion"]
                    if event["type"] == "ADDED":
                        yield Created(metadata["name"], metadata["uid"], at)
            # On a busy machine the API server ends a watch that it finds slow.
            self._connection.close()
            self._response = self._watch()

    def _watch(self) -> http.client.HTTPResponse:
        """Begin to watch where the last one ended. Only when the headers are there it counts."""
        query = f"watch=1&timeoutSeconds=3600&resourceVersion={self._version}"
        self._connection.request(
            "GET",
            f"{self._path}?{query}&labelSelector={self._selector}",
            headers={"Accept": _ACCEPT},
        )
        response = self._connection.getresponse()
        if response.status != http.HTTPStatus.OK:
            raise ConnectionError(f"the watch was refused: {response.read()[:500]!r}")
        return response
