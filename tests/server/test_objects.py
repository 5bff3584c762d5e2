"""Objects that make pods are read once, however many pods ask."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from webhook.errors import ClusterError
from webhook.server.objects import MakingObjects
from webhook.sources import SHIPPED
from webhook.sources.marks import ObjectRef

Json = dict[str, Any]
PADDLE = ObjectRef("kubeflow.org/v1", "PaddleJob", "any")
PATH = "/apis/kubeflow.org/v1/namespaces/ml/paddlejobs/train"
TEMPLATE = {"spec": {"containers": [{"name": "paddle", "image": "i"}]}}


def paddle_job(*roles: str) -> Json:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "train", "namespace": "ml"},
        "spec": {"paddleReplicaSpecs": {each: {"template": TEMPLATE} for each in roles}},
    }


class Server:
    """Has one object, or an error; `read` are the paths that were asked for."""

    def __init__(self, found: Json | Exception) -> None:
        self.found = found
        self.read: list[str] = []
        self.clock = 0.0
        self.seconds = 0.0

    async def get(self, path: str) -> Json:
        self.read.append(path)
        await asyncio.sleep(self.seconds)
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def objects(server: Server) -> MakingObjects:
    return MakingObjects(cast(Any, server), clock=lambda: server.clock)


@pytest.mark.parametrize(
    ("roles", "led"), [(("Worker",), False), (("Master", "Worker"), True), ((), False)]
)
async def test_an_object_leads_by_its_roles(roles: tuple[str, ...], led: bool) -> None:
    """The reader is that of explain, so both agree."""
    server = Server(paddle_job(*roles))
    assert await objects(server).led("ml", PADDLE, "train", SHIPPED) is led
    assert server.read == [PATH]


async def test_an_answer_holds_for_a_minute_and_callers_share_a_read() -> None:
    """A run of many pods costs one read."""
    server = Server(paddle_job("Master", "Worker"))
    it = objects(server)
    asks = [it.led("ml", PADDLE, "train", SHIPPED) for _ in range(9)]
    assert await asyncio.gather(*asks) == [True] * 9
    server.clock = 59.0
    assert await it.led("ml", PADDLE, "train", SHIPPED)
    assert len(server.read) == 1
    server.clock = 61.0
    assert await it.led("ml", PADDLE, "train", SHIPPED)
    assert len(server.read) == 2


async def test_a_failure_holds_for_some_seconds() -> None:
    """So pods do not wait one after the other for an API server that is away."""
    server = Server(ClusterError("away", status=503))
    it = objects(server)
    for clock in (0.0, 4.0):
        server.clock = clock
        with pytest.raises(ClusterError, match="away"):
            await it.led("ml", PADDLE, "train", SHIPPED)
    assert len(server.read) == 1
    server.clock, server.found = 6.0, paddle_job("Worker")
    assert await it.led("ml", PADDLE, "train", SHIPPED) is False


async def test_a_pod_waits_for_half_a_second_at_most() -> None:
    """The API server waits three seconds for the webhook."""
    server = Server(paddle_job("Worker"))
    server.seconds = 60.0
    with pytest.raises(ClusterError, match=r"no answer in 0\.5 s"):
        await objects(server).led("ml", PADDLE, "train", SHIPPED)


@pytest.mark.parametrize(
    ("namespace", "ref", "name"),
    [
        ("ml", PADDLE, "../secrets/x"),
        ("ml", PADDLE, ""),
        ("a/b", PADDLE, "train"),
        ("ml", ObjectRef("v1", "Secret", "any"), "train"),
    ],
)
async def test_only_a_name_becomes_part_of_a_path(
    namespace: str, ref: ObjectRef, name: str
) -> None:
    """Anyone may write a label."""
    server = Server(paddle_job("Worker"))
    with pytest.raises(ClusterError):
        await objects(server).led(namespace, ref, name, SHIPPED)
    assert server.read == []


async def test_no_author_makes_the_webhook_read_without_end() -> None:
    """Labels with ever new names are judged alone after a while."""
    server = Server(paddle_job("Worker"))
    it = objects(server)
    for number in range(100):
        try:
            await it.led("ml", PADDLE, f"n{number}", SHIPPED)
        except ClusterError as error:
            assert "too many" in str(error)  # noqa: PT017 (the first ones pass)
    assert len(server.read) == 40
