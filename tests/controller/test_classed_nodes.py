"""Counts of nodes by class, kept as nodes and classes change, beside a model that reads all."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.controller.runs import Json, raw_node
from tests.controller.test_node_health import raw_class
from tests.kube.virtual_time import run
from webhook.controller import classed_nodes, node_health
from webhook.controller.classed_nodes import (
    FEW_SILENT,
    MOST_SILENT,
    ClassedNodes,
    NodeClass,
    WatchedNode,
    compile_classes,
)
from webhook.controller.node_health import Nodes
from webhook.kube.cache import Cache
from webhook.policy.node_settings import is_of
from webhook.times import elapsed, parse_time

NOW = datetime(2026, 11, 21, 20, 15, tzinfo=UTC)
_NAMES = [f"node-{number}" for number in range(8)]
_SINCE = [f"2026-11-21T20:1{minute}:00Z" for minute in range(5)]
_RULES = [
    {"condition": kind, "status": "False", "lasts": lasts}
    for kind in ("Gpu", "Disk")
    for lasts in ("1m", "3m")
]


@st.composite
def raw_nodes(draw: st.DrawFn) -> Json:
    """A node of some pool, silent or not, ill or not."""
    labels = draw(
        st.fixed_dictionaries({"pool": st.sampled_from("ab"), "gpu": st.sampled_from("yn")})
    )
    ready = draw(st.sampled_from([*["True"] * 6, "False", "Unknown"]))
    raw = raw_node(draw(st.sampled_from(_NAMES)), ready=ready, labels=labels)
    raw["metadata"]["creationTimestamp"] = draw(st.sampled_from(_SINCE))
    raw["status"]["conditions"][0]["lastTransitionTime"] = draw(st.sampled_from(_SINCE))
    for kind in draw(st.sampled_from([*[()] * 5, ("Gpu",), ("Disk",), ("Gpu", "Disk")])):
        since = draw(st.sampled_from(_SINCE))
        raw["status"]["conditions"].append(
            {"type": kind, "status": "False", "lastTransitionTime": since}
        )
    raw["spec"]["unschedulable"] = draw(st.booleans())
    return raw


@st.composite
def raw_classes(draw: st.DrawFn) -> Json:
    """A class by a label, or the complement of one."""
    name = draw(st.sampled_from(["c1", "c2", "c3"]))
    spec: Json = {
        "lostAfter": draw(st.sampled_from([None, "5m", "9m"])),
        "interruptible": draw(st.sampled_from([None, True, False])),
        "unhealthy": draw(st.lists(st.sampled_from(_RULES), max_size=2, unique_by=str)) or None,
    }
    if draw(st.booleans()):
        spec["complementOf"] = draw(st.sampled_from(["c1", "c2", "c3"]))
    else:
        key, value = draw(st.sampled_from([("pool", "a"), ("pool", "b"), ("gpu", "y")]))
        spec["nodes"] = [{"labels": {key: value}}]
    return raw_class(name, **{key: each for key, each in spec.items() if each is not None})


_CLASSES = ("c1", "c2", "c3")
_STEPS = st.one_of(
    st.tuples(st.just("put"), st.just("node"), raw_nodes()),
    st.tuples(st.just("offer"), st.just("node"), raw_nodes()),
    st.tuples(st.just("gone"), st.just("node"), st.sampled_from(_NAMES)),
    st.tuples(st.just("list"), st.just("node"), st.lists(raw_nodes(), max_size=8)),
    st.tuples(st.just("put"), st.just("class"), raw_classes()),
    st.tuples(st.just("gone"), st.just("class"), st.sampled_from(_CLASSES)),
    st.tuples(st.just("list"), st.just("class"), st.lists(raw_classes(), max_size=3)),
    st.tuples(st.just("turns"), st.just(""), st.integers(1, 6)),
)
_BEGINNING = st.tuples(
    st.tuples(st.just("list"), st.just("class"), st.lists(raw_classes(), min_size=3, max_size=5)),
    st.tuples(st.just("list"), st.just("node"), st.lists(raw_nodes(), min_size=8, max_size=12)),
)
_STORIES = st.tuples(_BEGINNING, st.lists(_STEPS, min_size=10, max_size=30)).map(
    lambda parts: [*parts[0], *parts[1]]
)


async def follow(
    view: Nodes, steps: Sequence[tuple[str, str, Any]], check: Callable[[], None] = lambda: None
) -> None:
    """Carry out the steps, with a check after each."""
    caches: Mapping[str, Cache[Any]] = {"node": view.cache, "class": view.classes}
    for at, (verb, of, what) in enumerate(steps, 100):
        cache = caches.get(of, view.cache)
        match verb:
            case "put":
                cache.put(what["metadata"]["name"], cache.keep(what), str(at))
            case "offer":
                what["metadata"]["resourceVersion"] = str(at)
                view.health_of_raw(what)
            case "gone":
                cache.put(what, None, str(at))
            case "list":
                for _ in cache.replacing(kept(cache.keep, what), str(at)):
                    await asyncio.sleep(0)
            case "turns":
                for _ in range(what):
                    await asyncio.sleep(0)
        check()


def kept(keep: Callable[[Json], Any], listed: Sequence[Json]) -> dict[str, Any]:
    found = {each["metadata"]["name"]: keep(each) for each in listed}
    return {name: each for name, each in found.items() if each}


def waits(of: NodeClass, nodes: Mapping[str, WatchedNode]) -> tuple[Wait, Wait]:
    """How long a silent node of the class is waited for, and an ill one: by a look at all nodes."""
    members = [each for each in nodes.values() if is_of(of.compiled, each.node)]
    rules = {kind for kind, _ in of.unhealthy}
    silent, ill = list[Member](), list[Member]()
    for each in members:
        is_silent = each.ready == "Unknown"
        since = [each.since, *(at for kind, _, at in each.conditions if kind in rules)]
        silent.append(Member(each.created, None if is_silent else each.since))
        bad = is_silent or any(illnesses(of, each))
        ill.append(Member(each.created, None if bad else max(since)))
    return wait_among(silent), wait_among(ill)


Wait = Callable[[str], float]


class Member(NamedTuple):
    """A node: when it was created, and since when it is well, if it is."""

    created: str
    well: str | None


def wait_among(members: Sequence[Member]) -> Wait:
    """How many seconds after any time no more than a fifth of these were bad, ever since."""

    def too_many(since: str, at: str) -> bool:
        bad = [
            each
            for each in members
            if each.well is None or (each.well >= at and each.created < since)
        ]
        return len(bad) > max(FEW_SILENT, len(members) / MOST_SILENT)

    def wait(since: str) -> float:
        if too_many(since, "9999"):
            return math.inf
        ends = [each.well for each in members if each.well and each.well > since]
        return max(
            (elapsed(since, parse_time(end)) for end in ends if too_many(since, end)), default=0.0
        )

    return wait


def illnesses(of: NodeClass, watched: WatchedNode) -> Iterator[tuple[str, float]]:
    """The illness, and when it is due."""
    for kind, status, since in watched.conditions:
        if (kind, status) in of.unhealthy and since:
            yield f"{kind}={status}", of.unhealthy[kind, status] - elapsed(since, NOW)


def compare(view: Nodes, classes_before: dict[str, str] | None = None) -> None:
    """Whether each node is judged as by a look at all of them, and keeps its class to the end.

    classes_before: by name, the class of each node that is or was there, to be kept by the caller.
    """
    nodes = view.cache.items()
    classes = [each for each in compile_classes(view.classes.items()) if each]
    wait = {each.name: waits(each, nodes) for each in classes}
    curable = set()
    for name in _NAMES:
        if name not in nodes:
            health = view.get(name)
            assert health is None or health.trouble == "NodeGone"
            if classes_before is not None:
                assert (health.capacity_class if health else None) == classes_before.get(name)
            continue
        watched, found = nodes[name], view.get(name)
        assert found is not None
        own = [each for each in classes if is_of(each.compiled, watched.node)]
        first = min(
            own,
            key=lambda each: ((True, False, None).index(each.interruptible), each.name),
            default=None,
        )
        assert found.capacity_class == (first.name if first else "")
        if classes_before is not None:
            classes_before[name] = found.capacity_class
        assert found.interruptible == (first is None or first.interruptible is not False)
        silent = watched.ready == "Unknown"
        after = [each.lost_after for each in own if each.lost_after]
        longer = [wait[each.name][0](watched.since) for each in own if each.lost_after and silent]
        assert found.lost_after == (min(after) + max([0.0, *longer]) if after else None)
        ill = [(due, kind) for each in own for kind, due in illnesses(each, watched)]
        assert bool(found.ill) == bool(ill)
        if ill:
            longer = [
                wait[each.name][1](found.ill_since) for each in own if any(illnesses(each, watched))
            ]
            held = math.isinf(max(longer))
            due = found.ill_after - elapsed(found.ill_since, NOW)
            assert due == min(ill)[0] + max(longer)
            assert found.ill in {kind for at, kind in ill if at == min(ill)[0]}
            assert math.isinf(found.ill_after) == held
            if not (held or silent):
                curable.add(name)
    assert {each.name for each in view.ill()} == curable
    assert set(view.names_leaving()) == {name for name, each in nodes.items() if each.leaving}


@given(_STORIES)
def test_what_is_kept_of_nodes_is_what_a_look_at_all_of_them_finds(
    steps: list[tuple[str, str, Any]],
) -> None:
    """After each of any changes of nodes and classes, lists and answers."""

    async def main() -> None:
        view, classes = Nodes(now=lambda: NOW), dict[str, str]()
        await follow(view, steps, lambda: compare(view, classes))

    run(main())


@given(_STORIES)
def test_what_is_judged_anew_in_slices_is_what_a_look_at_all_nodes_finds(
    steps: list[tuple[str, str, Any]],
) -> None:
    """Whatever changes between two slices, of nodes and of classes."""

    async def main() -> None:
        view = Nodes(now=lambda: NOW)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(node_health, "SLICE", 1)
            task = asyncio.create_task(view.run())
            await follow(view, steps)
            await asyncio.sleep(1)
            compare(view)
            task.cancel()

    run(main())


def steps_of(count: int, verb: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often nodes are judged and counted for one look or one change, a fifth being silent."""
    made = raw_class("c", nodes=[{"labels": {"pool": "a"}}], lostAfter="5m", unhealthy=_RULES[:1])
    view = Nodes()
    view.classes.put("c", view.classes.keep(made))
    for number in range(count):
        ready = "Unknown" if number % 5 == 0 else "True"
        raw = raw_node(f"n{number}", ready=ready, labels={"pool": "a"})
        view.cache.put(f"n{number}", view.cache.keep(raw))
    silent = view.cache.keep(raw_node("n0", ready="Unknown", uid="new", labels={"pool": "a"}))
    view.get("n0")
    steps: list[object] = []
    for name in ("is_of", "_health", "_illnesses"):
        spy = Spy(getattr(classed_nodes, name), steps)
        monkeypatch.setattr(classed_nodes, name, spy)
    if verb == "get":
        view.get("n0")
    elif verb == "ill":
        view.ill()
    else:
        view.cache.put("n0", silent)
    monkeypatch.undo()
    return len(steps)


class Spy:
    """A function whose calls are noted."""

    def __init__(self, real: Callable[..., Any], calls: list[object]) -> None:
        self._real = real
        self._calls = calls

    def __call__(self, *given: Any) -> Any:
        self._calls.append(given)
        return self._real(*given)


@pytest.mark.parametrize(("verb", "steps"), [("get", 1), ("ill", 0), ("put", 1)])
def test_a_look_at_one_node_does_not_look_at_the_others(
    verb: str, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an outage of a fifth of the nodes: as many steps beside a hundred as beside a thousand."""
    assert [steps_of(count, verb, monkeypatch) for count in (100, 1000)] == [steps, steps]


def test_classes_of_nodes_that_are_alike_are_looked_for_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Alike by the labels that classes read; and of many kinds not all are remembered."""
    read: list[object] = []
    monkeypatch.setattr(classed_nodes, "is_of", Spy(is_of, read))
    monkeypatch.setattr(classed_nodes, "_MOST_KINDS", 2)
    made = raw_class("c", nodes=[{"labels": {"pool": "a"}}])
    document = Nodes().classes.keep(made)
    assert document is not None
    judged = ClassedNodes(filter(None, compile_classes({"c": document})))
    keep = Nodes().cache.keep
    for number in range(9):
        judged.put(
            f"n{number}", keep(raw_node(f"n{number}", labels={"pool": "a", "x": str(number)}))
        )
    assert len(read) == 1
    for number in range(9):
        judged.put(f"n{number}", keep(raw_node(f"n{number}", labels={"pool": str(number)})))
    assert judged.health("n8") is not None
    assert len(read) > 9 - 2


async def test_a_class_that_changes_is_in_force_some_turns_later() -> None:
    """Until then each node is judged as before, and a change of a node counts at once."""
    view = Nodes()
    for number in range(1000):
        view.cache.put(f"n{number}", view.cache.keep(raw_node(f"n{number}", labels={"pool": "a"})))
    task = asyncio.create_task(view.run())
    spot = raw_class("c", nodes=[{"labels": {"pool": "a"}}], lostAfter="5m")
    await asyncio.sleep(0)
    view.classes.put("c", view.classes.keep(spot))
    turns = 0
    while (health := view.get("n0")) and not health.capacity_class:
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 1000 / node_health.SLICE
    task.cancel()


async def test_a_judgement_that_was_cut_off_is_made_at_the_next_look() -> None:
    """The task that makes it may be started again, or not."""
    view = Nodes()
    for number in range(1000):
        view.cache.put(f"n{number}", view.cache.keep(raw_node(f"n{number}", labels={"pool": "a"})))
    task = asyncio.create_task(view.run())
    spot = raw_class("c", nodes=[{"labels": {"pool": "a"}}])
    view.classes.put("c", view.classes.keep(spot))
    for _ in range(3):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert view.health_of_deleted("none").capacity_class == ""
    health = view.get("n0")
    assert health is not None
    assert health.capacity_class == "c"
