"""What a search of live pods finds, and what it may not judge."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tests.cli.live import daemon_sets
from tests.cli.live.test_asking import CLUSTER
from tests.kube.fake_api import Answer, Request, client_of, fake_api
from tests.wording import Wording, mentions
from webhook.cli.live.pod_search import KINDS, Found, Kind, Search, search_pods
from webhook.sandbox.progress import Silent

Json = dict[str, Any]


def found(
    folder: Path,
    more: Mapping[str, Any],
    forbidden: Collection[str] = (),
    *kinds: Kind,
) -> Found:
    """The result for the namespace ml of a cluster with `more`, where some paths are forbidden."""
    cluster = {**CLUSTER, **more}

    async def handle(request: Request, answer: Answer) -> None:
        there = cluster.get(request.path)
        if request.path in forbidden:
            await answer.status(403, "Forbidden", f"you may not read {request.path}")
        elif there is None:
            await answer.status(404, "NotFound", request.path)
        elif isinstance(there, list):
            await answer.json({"metadata": {"resourceVersion": "1"}, "items": there})
        else:
            await answer.json(there)

    async def run() -> Found:
        async with fake_api(handle) as api, client_of(api, folder) as client:
            return await search_pods(client, Search(frozenset(kinds or KINDS), "ml", ()), Silent())

    return asyncio.run(run())


def test_a_daemon_sets_pod_on_a_node_that_a_requirement_excludes_would_be_rejected(
    tmp_path: Path, wording: Wording
) -> None:
    """Its controller creates the next one for the same node."""
    (one,) = found(tmp_path, daemon_sets.PATHS, (), "otherwise").findings
    mentions(one.text, "would be rejected", "policy pool", "node n1", "pool='a'")
    wording(one.text)
    assert one.differences == ()


def test_a_daemon_sets_pod_is_unknown_without_a_right_to_list_nodes(
    tmp_path: Path, wording: Wording
) -> None:
    """Whether the requirement excludes its node decides."""
    result = found(tmp_path, daemon_sets.PATHS, {daemon_sets.NODES}, "otherwise")
    assert not result.findings
    (line,) = [each for each in result.unknown if "nodes" in each]
    mentions(line, "daemonset.apps/agent", "ml", "kubectl auth can-i list nodes")
    wording(line)
