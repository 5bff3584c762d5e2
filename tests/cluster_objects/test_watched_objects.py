"""Watched collections: nodes, and the default PriorityClass."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.kube.fake_api import Answer, Request, client_of, fake_api, until
from tests.kube.nodes_api import listing, node, viewed
from tests.kube.scripted import events, refused
from webhook.cluster_objects.watched_objects import NodeView, PriorityClasses, value_of_default
from webhook.errors import NotSynced
from webhook.kube.watches import Watches


def names(view: NodeView) -> list[str]:
    return [each.name for each in view.nodes() or ()]


async def test_before_the_first_list_nothing_is_known(tmp_path: Path) -> None:
    """None is not the same as a cluster without nodes."""
    async with viewed(tmp_path, [listing()]) as (_, view):
        assert view.nodes() is None
        await view.cache.wait_synced()
        assert view.nodes() == ()


async def test_of_a_node_only_what_decides_is_kept(tmp_path: Path) -> None:
    """Labels, taints, cordon and allocatable; in the order of names."""
    tainted = node("b", pool="ml")
    tainted["spec"] |= {
        "taints": [{"key": "gpu", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"}],
        "unschedulable": True,
    }

    async with viewed(tmp_path, [listing(tainted, node("a"))]) as (_, view):
        await view.cache.wait_synced()
        assert names(view) == ["a", "b"]
        seen = (view.nodes() or ())[1]
        assert seen._asdict() == {
            "name": "b",
            "labels": {"kubernetes.io/hostname": "b", "pool": "ml"},
            "taints": ({"key": "gpu", "effect": "NoSchedule"},),
            "unschedulable": True,
            "allocatable": {"cpu": 7910, "memory": 28 * 2**30, "pods": 110},
        }


async def test_a_heartbeat_changes_nothing(tmp_path: Path) -> None:
    """Nobody is told, the version stays, and the nodes are the same object."""
    told: list[int] = []
    watch = events(
        *(("MODIFIED", node("a", 11 + beat, beat=beat)) for beat in range(5)),
        ("ADDED", node("z", 20)),
        ends=False,
    )

    async with viewed(tmp_path, [listing(node("a"))], [watch]) as (_, view):
        view.subscribe(lambda: told.append(view.version))
        await until(lambda: len(view.nodes() or ()) == 2)
        assert told == [1, 2]
        assert view.nodes() is view.nodes()


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"labels": {"pool": "other"}}},
        {"spec": {"unschedulable": True}},
        {"spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}},
        {"status": {"allocatable": {"cpu": "7910m", "memory": "28Gi", "nvidia.com/gpu": "8"}}},
    ],
    ids=["label", "cordon", "taint", "allocatable"],
)
async def test_changes_that_affect_decisions_are_announced_at_once(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    changed = node("a", 11)
    for part, fields in change.items():
        changed[part] |= fields

    watch = events(("MODIFIED", changed), ends=False)
    async with viewed(tmp_path, [listing(node("a"))], [watch]) as (_, view):
        await until(lambda: view.version == 2)


@pytest.mark.parametrize(
    ("odd", "path"),
    [
        ({"spec": {"taints": "none"}}, "spec.taints: "),
        (
            {"status": {"allocatable": {"cpu": "many"}}},
            "status.allocatable[cpu]: ",
        ),
        (
            {"status": {"allocatable": {"cpu": {}}}},
            "status.allocatable[cpu]: ",
        ),
    ],
)
async def test_a_node_that_cannot_be_read_breaks_nothing(
    tmp_path: Path, odd: dict[str, Any], path: str
) -> None:
    """It is left out and named; once it can be read it is there."""
    seen: list[str] = []
    watch = events(
        ("MODIFIED", node("a", 11) | odd),
        ("ADDED", node("b", 12)),
        ("MODIFIED", node("a", 13)),
        ends=False,
    )
    async with viewed(tmp_path, [listing(node("a"))], [watch]) as (_, view):

        def note() -> None:
            if view.trouble() not in seen:
                seen.append(view.trouble())

        view.subscribe(note)
        await until(lambda: names(view) == ["a", "b"] and view.trouble() == "")
        assert any(each.startswith(f"a is left out: {path}") for each in seen)


async def test_a_watch_error_is_reported(tmp_path: Path) -> None:
    steps = [refused(403, "Forbidden")]
    async with viewed(tmp_path, [listing(node("a"))], steps) as (_, view):
        await until(
            lambda: (
                "refuses to watch nodes" in view.trouble() or "refuses to list" in view.trouble()
            )
        )
        assert names(view) == ["a"]


async def test_nodes_are_listed_by_small_pages(tmp_path: Path) -> None:
    """A page of whole nodes would take more memory than all that is kept of them."""
    async with viewed(tmp_path, [listing()]) as (api, view):
        await view.cache.wait_synced()
        requests: Sequence[Any] = api.requests
        assert requests[0].query["limit"] == "50"


async def nothing(_: Request, answer: Answer) -> None:
    await answer.status(503, "ServiceUnavailable", "down")


def default_of(folder: Path, *lists: dict[str, int]) -> str | None:
    """The default after these lists of default classes and their values, one after the other."""

    async def run() -> str | None:
        async with fake_api(nothing) as api, client_of(api, folder) as client:
            classes = PriorityClasses(Watches(client))
            for values in lists:
                classes.cache.replace(values)
            return classes.default

    return asyncio.run(run())


def test_there_is_no_answer_before_the_first_list(tmp_path: Path) -> None:
    with pytest.raises(NotSynced, match="not known yet"):
        default_of(tmp_path)


def test_a_cluster_may_have_no_default(tmp_path: Path) -> None:
    assert default_of(tmp_path, {}) is None


def test_the_default_is_known_by_name_and_forgotten_when_it_goes(tmp_path: Path) -> None:
    assert default_of(tmp_path, {"batch": 10}) == "batch"
    assert default_of(tmp_path, {"batch": 10}, {}) is None


def test_of_several_defaults_the_lowest_value_counts(tmp_path: Path) -> None:
    """As in the Priority admission plugin, where a race has left two behind."""
    assert default_of(tmp_path, {"high": 10, "low": -5, "middle": 0}) == "low"


@pytest.mark.parametrize(
    ("seen", "value"),
    [
        ({"globalDefault": True, "value": 7}, 7),
        ({"globalDefault": True}, 0),
        ({"globalDefault": False, "value": 7}, None),
        ({"value": 7}, None),
    ],
)
def test_only_defaults_are_remembered(seen: dict[str, Any], value: int | None) -> None:
    assert value_of_default(seen) == value
