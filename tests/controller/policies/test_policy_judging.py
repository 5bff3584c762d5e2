"""Objects are judged when they change, and nodes when they do; a status is no change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from tests.controller.policies.memory import Cluster, raw_policy
from tests.kube.fake_api import until
from tests.wording import mentions
from webhook.controller.policies.policy_judging import Judging, Overtaken, _pausing
from webhook.judgement.together.effort import STEPS_UNTIL_PAUSE
from webhook.judgement.together.warnings import AT_ONCE, IN_TIME, Budget
from webhook.placement.nodes import Node

PLACE = "placementpolicies/a"
POOL = {"nodeSelector": {"pool": "a"}}


class View:
    """Nodes that are not known before a test says so."""

    def __init__(self) -> None:
        self.known: Sequence[Node] | None = None
        self.said = ""
        self.listeners: list[Callable[[], None]] = []

    def nodes(self) -> Sequence[Node] | None:
        return self.known

    def subscribe(self, listener: Callable[[], None]) -> None:
        self.listeners.append(listener)

    def trouble(self) -> str:
        return self.said

    def become(self, *nodes: Node) -> None:
        self.known = nodes
        for listener in self.listeners:
            listener()


class Classes:
    """Classes of a cluster, of each kind."""

    def __init__(self, **known: Sequence[str]) -> None:
        self.known: dict[str, Sequence[str]] = known
        self.listeners: list[Callable[[], None]] = []

    def by_kind(self) -> Mapping[str, Mapping[str, Any]]:
        return {kind: {name: {} for name in names} for kind, names in self.known.items()}

    def subscribe(self, listener: Callable[[], None]) -> None:
        self.listeners.append(listener)

    def become(self, **known: Sequence[str]) -> None:
        self.known = known
        for listener in self.listeners:
            listener()


@asynccontextmanager
async def started(
    cluster: Cluster, view: View, classes: Classes | None = None, quiet: float = 0.1
) -> AsyncIterator[tuple[Judging, list[int]]]:
    """One that judges, and a list that is as long as there was news."""
    news: list[int] = []
    judging = Judging(
        cluster.watched,
        cast(Any, view),
        cast(Any, classes or Classes()),
        lambda: news.append(1),
        quiet=quiet,
    )
    tasks = [asyncio.create_task(each()) for each in (judging.judge, judging.survey)]
    yield judging, news
    for task in tasks:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def said(judging: Judging) -> tuple[str, str, str]:
    """Version, status and reason of the policy's acceptance."""
    (_, generation), found = judging.acceptance.conditions[PLACE]
    return str(generation), found.status, found.reason


async def test_an_edit_is_judged_and_a_status_is_not() -> None:
    """What the controller writes itself is no news to it."""
    cluster = Cluster(raw_policy("a"))

    async with started(cluster, View()) as (judging, news):
        await until(lambda: PLACE in judging.acceptance.conditions)
        assert said(judging) == ("1", "True", "Accepted")
        cluster.put(raw_policy("a", version=6, status={"podsDecided": 3}))
        await asyncio.sleep(0.5)
        assert len(news) == 1
        edited = raw_policy("a", version=7, priority="high")
        edited["metadata"]["generation"] = 2
        cluster.put(edited)
        await until(lambda: said(judging) == ("2", "False", "InvalidPolicy"))


async def test_nodes_are_waited_for_unless_they_cannot_be_had() -> None:
    """At first nothing is said of them; that they are not known only if that is an answer."""
    cluster, view = Cluster(raw_policy("a")), View()

    async with started(cluster, view) as (judging, _):
        await until(lambda: PLACE in judging.acceptance.conditions)
        await asyncio.sleep(0.5)
        assert judging.satisfied == {}
        view.said = "nodes is forbidden"
        await until(lambda: PLACE in judging.satisfied)
        assert judging.satisfied[PLACE][1].reason == "NodesNotKnown"
        view.said, view.known = "", ()
        await until(lambda: judging.satisfied[PLACE][1].reason == "NoNodes")
        view.become(Node("n", {"pool": "b"}, []))
        await until(lambda: judging.satisfied[PLACE][1].reason == "NoNode")
        view.become(Node("n", {"pool": "b"}, []), Node("m", {"pool": "a"}, []))
        await until(lambda: judging.satisfied[PLACE][1].reason == "NodesFound")
        assert judging.satisfied[PLACE][0] == ("uid-a", 1)


@pytest.mark.parametrize(
    "at_once", [AT_ONCE._replace(proofs=0), AT_ONCE._replace(trials=0)], ids=["proofs", "trials"]
)
async def test_what_the_budget_leaves_out_is_judged_when_it_is_quiet(
    at_once: Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then it is unknown; a change starts again, and the same set is judged whole at once."""
    module = "webhook.controller.policies.policy_judging"
    monkeypatch.setattr(f"{module}.AT_ONCE", at_once)
    cluster, view = Cluster(*(raw_policy(n, requirements=POOL) for n in "ab")), View()
    view.become(Node("n", {"pool": "a"}, []))

    def satisfied(judging: Judging) -> set[tuple[int, str]]:
        return {(version[1], one.reason) for version, one in judging.satisfied.values()}

    async with started(cluster, view, quiet=1.0) as (judging, _):
        await until(lambda: satisfied(judging) == {(1, "NotChecked")})
        await until(lambda: satisfied(judging) == {(1, "NodesFound")})
        monkeypatch.setattr(judging, "quiet", 0.1)
        view.become(Node("n", {"pool": "a"}, []), Node("m", {"pool": "b"}, []))
        for name in "ab":
            edited = raw_policy(name, version=8, requirements=POOL)
            edited["metadata"]["generation"] = 2
            cluster.put(edited)
        await until(lambda: satisfied(judging) == {(2, "NodesFound")})


async def test_a_check_that_takes_minutes_ends_with_the_set_that_it_is_about() -> None:
    """And with the process."""
    changed, ended = asyncio.Event(), asyncio.Event()
    effort = _pausing(IN_TIME, changed, ended).for_trials()
    assert effort.spend(3 * STEPS_UNTIL_PAUSE)
    ended.set()
    with pytest.raises(Overtaken):
        effort.spend(STEPS_UNTIL_PAUSE)


async def test_a_class_that_the_cluster_does_not_have_is_in_the_status() -> None:
    """Every pod that the policy matches is refused, until somebody creates it."""
    policy = raw_policy("a", defaults={"priorityClassName": "urgent"})
    classes = Classes(PriorityClass=["other"])

    async with started(Cluster(policy), View(), classes) as (judging, _news):
        await until(lambda: PLACE in judging.acceptance.conditions)
        assert said(judging) == ("1", "True", "AcceptedWithErrors")
        mentions(judging.acceptance.conditions[PLACE][1].message, "PriorityClass 'urgent'")
        classes.become(PriorityClass=["urgent"])
        await until(lambda: said(judging) == ("1", "True", "Accepted"))
