"""Facts of the cluster, as readiness has them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.admission.reviews import POOL, pod, policy_set
from tests.controller.runs import Api
from tests.kube.fake_api import Answer, Request, client_of, fake_api, until
from tests.kube.nodes_api import listing, node
from tests.kube.scripted import events
from tests.wording import Wording, mentions
from webhook import names
from webhook.api_paths import CollectionPath
from webhook.decision.arrival import Arrival, Cluster
from webhook.decision.engine import decide
from webhook.errors import ClusterError
from webhook.kube.cache import Cache
from webhook.kube.watches import Watches
from webhook.server import cluster_facts
from webhook.server.cluster_facts import ServedNodes, nodes_of, synced
from webhook.server.readiness import Condition, Parts
from webhook.server.webhook_metrics import Metrics


def test_a_cache_without_updates_stays_ready_and_reports_out_of_date() -> None:
    """Nobody else would know more; whoever looks sees since when, and why."""
    now = 0.0
    cache: Cache[int] = Cache(lambda _: 1, clock=lambda: now)
    watch = Watches(Api().client).add(CollectionPath("v1", "things"), cache)
    assert not synced(watch).ready
    watch.last_error = ClusterError("GET /things: no")
    cache.touch()
    cache.replace({})
    fresh = synced(watch)
    now = names.SILENT + 1
    late = synced(watch)
    assert fresh.ready
    assert late.ready
    assert "out of date" not in fresh.reason
    mentions(late.reason, "out of date", "121 s", "GET /things: no")


def said(nodes: ServedNodes) -> str:
    """What is said of a pod that wants the pool experiments."""
    policies = policy_set(POOL)
    decision = decide(Arrival(pod(), "ml-team", {}, "someone"), policies, Cluster())
    return nodes.unplaceable(pod(), decision, policies)


@asynccontextmanager
async def watching(
    handle: Callable[[Request, Answer], Awaitable[None]], folder: Path
) -> AsyncIterator[tuple[ServedNodes, Callable[[], Condition]]]:
    """Nodes as serve has them, and their condition, while their watch of this API runs."""
    async with (
        fake_api(handle) as api,
        client_of(api, folder) as client,
        Watches(client) as watches,
    ):
        parts = Parts(Metrics())
        yield nodes_of(watches, parts), parts.conditions["nodes"]


async def test_unknown_or_stale_nodes_produce_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    """And at no time is that a reason not to serve."""
    listed, changed = asyncio.Event(), asyncio.Event()

    async def handle(request: Request, answer: Answer) -> None:
        if request.is_watch:
            await changed.wait()
            came = ("ADDED", node("b", 11, pool="experiments"))
            await events(came, ends=False)(answer)
        else:
            await listed.wait()
            await answer.json(listing(node("a")))

    async with watching(handle, tmp_path) as (nodes, condition):
        assert (said(nodes), nodes.nodes()) == ("", None)
        assert condition().ready
        mentions(condition().reason, "not listed yet", "no warnings")
        listed.set()
        await until(lambda: nodes.nodes() is not None)
        mentions(said(nodes), "0 of 1 nodes", "pool=experiments")
        assert re.match(r"1 known, .*\b\d+ s ago", condition().reason)
        wording(said(nodes))
        wording(re.sub(r"\d+ s ", "SOME s ", condition().reason))
        with monkeypatch.context() as patch:
            patch.setattr(cluster_facts, "STALE", -1.0)
            assert (said(nodes), nodes.nodes()) == ("", None)
            assert condition().ready
            assert re.match(r"1 known, .*\b\d+ s ago, .*no warnings", condition().reason)
            wording(re.sub(r"\d+ s ", "SOME s ", condition().reason))
        changed.set()
        await until(lambda: said(nodes) == "")


async def test_a_missing_right_is_reported_with_its_cure(tmp_path: Path, wording: Wording) -> None:
    """Ready all the same, and silent of pods."""
    words = 'User "system:serviceaccount:a:b" cannot list resource "nodes" in API group ""'

    async def handle(_: Request, answer: Answer) -> None:
        await answer.status(403, "Forbidden", words)

    async with watching(handle, tmp_path) as (nodes, condition):
        await until(lambda: "may not list nodes" in condition().reason)
        assert condition().ready
        mentions(condition().reason, "not listed yet", "no warnings", "fairlead install --nodes")
        wording(condition().reason)
        assert (said(nodes), nodes.nodes()) == ("", None)
