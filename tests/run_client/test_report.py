"""Pool and capacity of the nodes of a Run: read one by one, or in one list, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kube.fake_api import Answer, Request, client_of, fake_api
from webhook.errors import ClusterError
from webhook.run_client.report import NodeSummary, fetch_summaries


def node(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "labels": {"karpenter.sh/nodepool": f"pool-of-{name}"}}}


@pytest.mark.parametrize("count", [3, 30])
async def test_only_the_nodes_that_are_asked_for_are_reported(tmp_path: Path, count: int) -> None:
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

    wanted = {f"n{number}" for number in range(count)}
    async with fake_api(handle) as api, client_of(api, tmp_path) as client:
        told = await fetch_summaries(client, wanted | {"gone"})
        assert set(told) == wanted
        assert told["n1"] == NodeSummary("pool-of-n1", "")


async def test_without_rights_on_nodes_there_is_no_text_about_them(tmp_path: Path) -> None:
    """That is usual, and no error; any other refusal is one."""
    codes = iter([403, 500])

    async def refuse(_: Request, answer: Answer) -> None:
        await answer.status(next(codes), "", "no")

    async with fake_api(refuse) as api, client_of(api, tmp_path) as client:
        assert await fetch_summaries(client, {"a"}) == {}
        with pytest.raises(ClusterError):
            await fetch_summaries(client, {"a"})
