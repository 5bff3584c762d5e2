"""Pools and capacities by the labels of each provider."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.kube.fake_api import Answer, Request, client_of, fake_api
from webhook.cli.run.node_words import NodeWords, fetch_words, words
from webhook.errors import ClusterError


@pytest.mark.parametrize(
    ("labels", "pool", "capacity"),
    [
        ({"cloud.google.com/gke-nodepool": "a", "cloud.google.com/gke-spot": "true"}, "a", "spot"),
        ({"cloud.google.com/gke-preemptible": "true"}, "", "preemptible"),
        (
            {"eks.amazonaws.com/nodegroup": "b", "eks.amazonaws.com/capacityType": "ON_DEMAND"},
            "b",
            "on-demand",
        ),
        ({"karpenter.sh/nodepool": "c", "karpenter.sh/capacity-type": "spot"}, "c", "spot"),
        (
            {
                "kubernetes.azure.com/agentpool": "d",
                "kubernetes.azure.com/scalesetpriority": "spot",
            },
            "d",
            "spot",
        ),
        ({"app.iguazio.com/lifecycle": "preemptible"}, "", "preemptible"),
        ({"kubernetes.io/os": "linux", "cloud.google.com/gke-spot": "false"}, "", ""),
    ],
)
def test_labels_tell_pool_and_capacity(labels: dict[str, str], pool: str, capacity: str) -> None:
    """Whoever the provider is; what no label tells stays empty."""
    assert words(labels) == NodeWords(pool, capacity)


def node(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "labels": {"karpenter.sh/nodepool": f"pool-of-{name}"}}}


@pytest.mark.parametrize("count", [3, 30])
def test_only_the_nodes_that_are_asked_for_are_told(tmp_path: Path, count: int) -> None:
    """One by one, or out of one list; a node that is gone is left out."""

    async def handle(request: Request, answer: Answer) -> None:
        name = request.path.rpartition("/")[2]
        if name == "nodes":
            items = [node(f"n{number}") for number in range(100)]
            await answer.json({"metadata": {"resourceVersion": "1"}, "items": items})
        elif name == "gone":
            await answer.status(404, "NotFound", "gone")
        else:
            await answer.json(node(name))

    async def run() -> None:
        wanted = {f"n{number}" for number in range(count)}
        async with fake_api(handle) as api, client_of(api, tmp_path) as client:
            told = await fetch_words(client, wanted | {"gone"})
            assert set(told) == wanted
            assert told["n1"] == NodeWords("pool-of-n1", "")

    asyncio.run(run())


def test_who_may_not_see_nodes_gets_no_words(tmp_path: Path) -> None:
    """That is usual, and no error; any other refusal is one."""
    codes = iter([403, 500])

    async def refuse(_: Request, answer: Answer) -> None:
        await answer.status(next(codes), "", "no")

    async def run() -> None:
        async with fake_api(refuse) as api, client_of(api, tmp_path) as client:
            assert await fetch_words(client, {"a"}) == {}
            with pytest.raises(ClusterError):
                await fetch_words(client, {"a"})

    asyncio.run(run())
