"""Objects that make pods are read once, however many pods ask."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, cast

import pytest

from tests.objects import an_object
from webhook.decision.notice import Owner
from webhook.errors import ClusterError
from webhook.placement.owner_selector import SELECTING, CountedPods
from webhook.placement.shapes import Requirement
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


OWNER = Owner("apps/v1", "ReplicaSet", "web-1", "u1")
SELECTORS = "/apis/apps/v1/namespaces/ml/replicasets/web-1"
BROKEN: Requirement = {"key": "team", "operator": "DoesNotExist", "values": []}


def replica_set(uid: str = "u1") -> Json:
    asks = {"key": "app", "operator": "In", "values": ["web"]}
    team = {"key": "team", "operator": "DoesNotExist"}
    spec = {"selector": {"matchExpressions": [asks, team]}}
    return an_object("apps/v1", "ReplicaSet", {"name": "web-1", "uid": uid}, spec)


async def test_a_selector_is_read_once_for_all_pods_of_an_owner() -> None:
    """It never changes; only what a further label may break is kept."""
    server = Server(replica_set())
    it = objects(server)
    asks = [it.counted("ml", OWNER) for _ in range(9)]
    assert await asyncio.gather(*asks) == [CountedPods((BROKEN,))] * 9
    server.clock = 1e9
    assert await it.counted("ml", OWNER) == CountedPods((BROKEN,))
    assert server.read == [SELECTORS]


async def test_each_kind_is_read_where_it_is_served() -> None:
    """Whatever version the pod's author writes."""
    for (group, kind), resource in SELECTING.items():
        server = Server(replica_set())
        found = await objects(server).counted("ml", Owner(f"{group}/v0", kind, "web-1", "u1"))
        assert found == CountedPods((BROKEN,))
        assert server.read == [f"/apis/{group}/v1/namespaces/ml/{resource}/web-1"]


async def test_the_ordinals_of_a_stateful_set_hold_for_a_minute() -> None:
    """Its owner may change them."""
    document = replica_set()
    document["spec"]["ordinals"] = {"start": 5}
    server, owner = Server(document), Owner("apps/v1", "StatefulSet", "web-1", "u1")
    it = objects(server)
    assert await it.counted("ml", owner) == CountedPods((BROKEN,), 5)
    document["spec"]["ordinals"] = {"start": 7}
    server.clock = 59.0
    assert (await it.counted("ml", owner)).first == 5
    server.clock = 61.0
    assert (await it.counted("ml", owner)).first == 7


@pytest.mark.parametrize(
    "server",
    [Server(ClusterError("gone", status=404)), Server(replica_set(uid="another"))],
    ids=["gone", "made again"],
)
async def test_an_owner_that_does_not_exist_counts_no_pods(server: Server) -> None:
    """It is asked for again some seconds later."""
    it = objects(server)
    assert await it.counted("ml", OWNER) == CountedPods()
    assert await it.counted("ml", OWNER._replace(name="../secrets/x")) == CountedPods()
    assert server.read == [SELECTORS]
    server.clock = 6.0
    server.found = replica_set()
    assert await it.counted("ml", OWNER) == CountedPods((BROKEN,))


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ClusterError("GET /apis: 403", status=403), "the webhook may not get replicasets"),
        (ClusterError("away", status=503), "away"),
    ],
)
async def test_a_selector_that_cannot_be_read_is_an_error(error: Exception, text: str) -> None:
    """With its reason, in a few words."""
    with pytest.raises(ClusterError, match=text):
        await objects(Server(error)).counted("ml", OWNER)


async def test_a_pod_waits_for_a_selector_for_half_a_second_at_most() -> None:
    """Then it is as if it could not be read."""
    server = Server(replica_set())
    server.seconds = 60.0
    with pytest.raises(ClusterError, match=r"no answer in 0\.5 s"):
        await objects(server).counted("ml", OWNER)


async def test_no_namespace_takes_all_reads_of_selectors() -> None:
    """An author with ever new owners uses up the reads of one namespace, and no more memory."""
    server = Server(replica_set())
    it = objects(server)

    async def passed(namespace: str, count: int) -> int:
        read = len(server.read)
        for number in range(count):
            with suppress(ClusterError):
                await it.counted(namespace, OWNER._replace(name=f"{namespace}-{number}"))
        return len(server.read) - read

    assert await passed("a", 300) == 100
    assert await passed("b", 80) == 80
    assert await passed("c", 80) == 20, "no more than 200 at once"
    server.clock = 1.0
    assert await passed("a", 300) == 50
    assert await it.led("ml", PADDLE, "train", SHIPPED) is False, "others have reads of their own"


async def test_an_owner_is_not_read_for_each_uid_that_an_author_writes() -> None:
    """It may be large, and its pods are small."""
    server = Server(replica_set())
    it = objects(server)
    for number in range(50):
        with suppress(ClusterError):
            await it.counted("ml", OWNER._replace(uid=f"forged-{number}"))
    assert len(server.read) == 3
    server.clock = 5.0
    assert await it.counted("ml", OWNER) == CountedPods((BROKEN,))


async def test_selectors_have_a_megabyte_of_memory() -> None:
    """An author may write a selector of a megabyte, and many of them."""
    long = replica_set()
    long["spec"]["selector"]["matchExpressions"][1]["key"] = "k" * 300_000
    server = Server(long)
    it = objects(server)
    for number in range(6):
        await it.counted("ml", OWNER._replace(name=f"n{number}"))
    await it.counted("ml", OWNER._replace(name="n5"))
    assert len(server.read) == 6
    await it.counted("ml", OWNER._replace(name="n0"))
    assert len(server.read) == 7
